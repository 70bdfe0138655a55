/**
 * Law 11 on windows and logs: a decision that is settled upwards is charged the difference when it
 * is settled, so every unit counts in some window and none in the past. Downwards it is given back
 * what of it still counts.
 */
import { describe, expect, test } from 'vitest'
import { createLimiter, type Decision, fixedWindow, slidingLog, slidingWindow } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from './random.ts'
import { SEED, traceCount } from './trace.ts'

const KEY = 'k'
const LIMIT = 20
const WINDOW_US = 1_000_000
const START_US = 1_700_000_000_000_000
const MOST_IN_A_WINDOW = 4_294_967_295
const WIDE = 100_000
/** Less than any share of a permit that is in use. */
const TINY = 1e-9

/** What was charged at one time: by a decision, or by settling one upwards. */
interface Entry {
  readonly atUs: number
  /** Where windows begin with a first call: when this one's began. */
  readonly startUs: number
  permits: number
}

/** `used`: of what was charged, so much counts. `most`: no more than that lands. */
const WINDOWS = [
  {
    type: 'fixedWindow',
    limitOf: (limit: number) => fixedWindow({ limit, window: '1s' }),
    used: usedInFixedWindow,
    most: MOST_IN_A_WINDOW,
  },
  {
    type: 'fixedWindow from the first call on',
    limitOf: (limit: number) => fixedWindow({ limit, window: '1s', anchor: 'first' }),
    used: usedSinceFirst,
    most: MOST_IN_A_WINDOW,
  },
  {
    type: 'slidingWindow',
    limitOf: (limit: number) => slidingWindow({ limit, window: '1s', slots: 10 }),
    used: usedInSlidingWindow,
    most: MOST_IN_A_WINDOW,
  },
  { type: 'slidingLog', limitOf: (limit: number) => slidingLog({ limit, window: '1s' }), used: usedInLog, most: 2 * LIMIT },
]

type Kind = (typeof WINDOWS)[number]

/** The charges of a key, kept in a list beside the limiter. */
class Ledger {
  readonly #entries: Entry[] = []
  readonly #of: Kind
  /** How many charges did not land whole. */
  cut = 0

  constructor(of: Kind) {
    this.#of = of
  }

  inUse(nowUs: number): number {
    return this.#of.used(this.#entries, nowUs)
  }

  enter(atUs: number, permits: number): Entry {
    const before = this.inUse(atUs)
    const landed = Math.min(permits, this.#of.most - Math.ceil(before - TINY))
    if (landed < permits) this.cut += 1
    const entry = { atUs, startUs: before > 0 ? (this.#entries.at(-1) as Entry).startUs : atUs, permits: landed }
    if (landed > 0) this.#entries.push(entry)
    return entry
  }

  settle(nowUs: number, entry: Entry, actual: number): void {
    if (actual > entry.permits) this.enter(nowUs, actual - entry.permits)
    else entry.permits = actual
  }
}

/** What may be settled. */
interface Open {
  readonly entry: Entry
  readonly decision: Decision & { settle(actual: number): void }
}

describe.each(WINDOWS)('$type', (kind) => {
  test('has in use what was charged, each difference when it was settled, less what was given back', () => {
    const runs = traceCount(100)
    let late = 0
    let cut = 0
    for (let seed = SEED; seed < SEED + runs; seed++) {
      const random = new Random(seed)
      const clock = fakeClock()
      clock.setUs(START_US + random.whole(0, WINDOW_US))
      // Under a plan with room for all of it one sees debt.
      const limiter = createLimiter(kind.limitOf(LIMIT), { clock, plans: { wide: kind.limitOf(WIDE) } })
      const ledger = new Ledger(kind)
      const open: Open[] = []
      for (let n = 0; n < 60; n++) {
        const nowUs = clock.nowUs() + someStepUs(random)
        clock.setUs(nowUs)
        if (open.length > 0 && random.chance(0.5)) {
          const [{ entry, decision }] = open.splice(random.whole(0, open.length - 1), 1) as [Open]
          const actual = random.pick([0, entry.permits, random.whole(0, 30)])
          if (actual > entry.permits && nowUs - entry.atUs > WINDOW_US) late += 1
          decision.settle(actual)
          ledger.settle(nowUs, entry, actual)
        } else {
          const estimate = random.whole(0, 6)
          const decision = limiter.consume(KEY, estimate)
          if (decision.allowed) open.push({ entry: ledger.enter(nowUs, estimate), decision })
        }
        const { remaining, retryAfterMs, allowed } = limiter.peek(KEY)
        const inUse = ledger.inUse(nowUs)
        const told = `seed ${seed}, step ${n}`
        expect(limiter.peek(KEY, 0, { plan: 'wide' }).remaining, told).toBe(WIDE - Math.ceil(inUse - TINY))
        expect([remaining, allowed], told).toEqual([Math.max(0, Math.floor(LIMIT - inUse + TINY)), hasRoom(inUse)])
        const retryUs = nowUs + Math.round(retryAfterMs * 1000)
        if (!allowed) expect([hasRoom(ledger.inUse(retryUs)), hasRoom(ledger.inUse(retryUs - 1))], told).toEqual([true, false])
      }
      cut += ledger.cut
    }
    expect(late).toBeGreaterThan(runs)
    // Only a log is so small that more is charged than it holds.
    expect(cut > runs / 10).toBe(kind.most === 2 * LIMIT)
  })
})

/** Mostly within a window. */
function someStepUs(random: Random): number {
  if (random.chance(0.1)) return random.whole(0, 2 * WINDOW_US)
  return random.pick([0, 1, random.whole(0, 50_000), random.whole(0, 400_000), random.whole(0, 400_000)])
}

function hasRoom(inUse: number): boolean {
  return inUse + 1 <= LIMIT + TINY
}

/**
 * Late settlements moved the end of the window back once: 5,771 a minute passed a limit of 1,000.
 */
test.each(['epoch', 'first'] as const)('calls that last nearly a window and turn out dearer pass no limit: anchor %s', (anchor) => {
  const [minutes, limit, estimate, actual] = [20, 1_000, 20, 25]
  const clock = fakeClock(0)
  const limiter = createLimiter(fixedWindow({ limit, window: '1min', anchor }), { clock })
  const open: { readonly endMs: number; settle(): void }[] = []
  let calls = 0
  for (let ms = 0; ms < minutes * 60_000; ms += 250) {
    clock.setMs(ms)
    while (open[0] !== undefined && open[0].endMs <= ms) open.shift()?.settle()
    const decision = limiter.consume(KEY, estimate)
    if (!decision.allowed) continue
    calls += 1
    open.push({ endMs: ms + 55_000, settle: () => decision.settle(actual) })
  }
  // What is settled when the window is full goes beyond its limit, once.
  expect((calls * actual) / minutes).toBeLessThan(1.15 * limit)
  expect((calls * actual) / minutes).toBeGreaterThan(0.95 * limit)
})

function usedInFixedWindow(entries: readonly Entry[], nowUs: number): number {
  return sumOf(entries, ({ atUs }) => (Math.floor(atUs / WINDOW_US) === Math.floor(nowUs / WINDOW_US) ? 1 : 0))
}

/** All that counts is of the window that the latest lies in. */
function usedSinceFirst(entries: readonly Entry[], nowUs: number): number {
  const startUs = entries.at(-1)?.startUs ?? 0
  return nowUs < startUs + WINDOW_US ? sumOf(entries, (entry) => (entry.startUs === startUs ? 1 : 0)) : 0
}

function usedInSlidingWindow(entries: readonly Entry[], nowUs: number): number {
  const slot = Math.floor(nowUs / 100_000)
  const left = 1 - (nowUs % 100_000) / 100_000
  return sumOf(entries, ({ atUs }) => {
    const age = slot - Math.floor(atUs / 100_000)
    return age < 10 ? 1 : age === 10 ? left : 0
  })
}

function usedInLog(entries: readonly Entry[], nowUs: number): number {
  return sumOf(entries, ({ atUs }) => (nowUs - atUs < WINDOW_US ? 1 : 0))
}

function sumOf(entries: readonly Entry[], weight: (entry: Entry) => number): number {
  return entries.reduce((sum, entry) => sum + entry.permits * weight(entry), 0)
}
