/**
 * Law 8 judged from the outside: calls under several sets of numbers on one key, forward in time,
 * and what was admitted is counted. Nothing here knows how a state is kept.
 */
import { describe, expect, test } from 'vitest'
import type { Rule } from '../../src/algorithms/algorithm.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { Part, Step } from '../../src/stores/step.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import type { WindowKind, WindowNumbers } from '../../src/testing/window-oracle.ts'
import { Fork } from './fork.ts'
import { PureStore } from './pure-store.ts'
import { Random } from './random.ts'
import { ruleOf } from './run-trace.ts'
import { inDomain, LATEST_US, SEED, someNumbers, type TraceNumbers, traceCount } from './trace.ts'
import { dividedBy, someWindow, WINDOW_KINDS, windowRule } from './window-trace.ts'

const LEVELS: readonly OracleKind[] = ['gcra', 'tokenBucket', 'leakyBucket']
const START_US = 1_700_000_000_000_000
const CALLS = 150
const SCOPE = { name: 'mixed', limits: [] }

/** What one caller was admitted. */
interface Admitted {
  readonly by: number
  readonly atUs: number
  /** When it may act: later than `atUs` for a reservation. */
  readonly actUs: number
  readonly cost: number
}

interface Life {
  readonly admitted: readonly Admitted[]
  /** The longest wait that any call was told. */
  readonly longestUs: number
  readonly refused: number
}

/**
 * Lives through calls of several callers on one key. Every refusal is tried: when it was told to
 * come again, and one microsecond before.
 */
function live(random: Random, rules: readonly Rule[], aheadUs: number): Life {
  const store = new PureStore()
  const admitted: Admitted[] = []
  let nowUs = START_US + random.whole(0, 1_000_000)
  let longestUs = 0
  let refused = 0
  for (let k = 0; k < CALLS; k++) {
    const by = random.whole(0, rules.length - 1)
    const rule = rules[by] as Rule
    const ahead = aheadUs > 0 && random.chance(0.3) ? random.whole(0, aheadUs) : -1
    const op = random.chance(0.15) ? 'ask' : 'take'
    const cost = someCost(random, store, rule, nowUs)
    const before = copyOf(store)
    const { outcome, retryUs, delayUs } = call(store, op, rule, cost, nowUs, ahead)
    if (outcome === 'allowed' && op === 'take') admitted.push({ by, atUs: nowUs, actUs: nowUs + delayUs, cost })
    else expectUnchanged(store, before)
    if (outcome === 'limited') {
      expectExactRetry(store, rule, cost, nowUs, ahead, retryUs)
      longestUs = Math.max(longestUs, retryUs)
      refused += 1
    }
    const leapUs = someLeapUs(random, rules)
    nowUs += random.pick([0, 0, 1, outcome === 'limited' ? retryUs : 1, outcome === 'limited' ? retryUs - 1 : 0, leapUs])
    if (nowUs > LATEST_US) break
  }
  return { admitted, longestUs, refused }
}

/** Mostly what just fits, or is just too much. */
function someCost(random: Random, store: PureStore, rule: Rule, nowUs: number): number {
  const { remaining } = call(store, 'ask', rule, 0, nowUs, -1)
  return random.pick([1, Math.max(1, remaining), Math.min(rule.capacity, remaining + 1), random.whole(1, rule.capacity)])
}

function someLeapUs(random: Random, rules: readonly Rule[]): number {
  return random.magnitude(1, 2 * random.pick(rules).windowUs)
}

function call(store: PureStore, op: 'take' | 'ask', rule: Rule, cost: number, nowUs: number, aheadUs: number): Verdict {
  const step = new Step(op, SCOPE, [new Part('a', rule, 'k', cost)], aheadUs, -1, nowUs)
  return (store.apply(step) as readonly [Verdict])[0]
}

/** The bytes of the state, and its numbers. */
function copyOf(store: PureStore): string {
  const held = store.held('mixed', 'a', 'k')
  return held === undefined ? '' : `${held.own.numbers}: ${held.words.join(' ')}`
}

function expectUnchanged(store: PureStore, before: string): void {
  if (copyOf(store) !== before) expect(copyOf(store), 'the state after a question or a refusal').toBe(before)
}

function expectExactRetry(store: PureStore, rule: Rule, cost: number, nowUs: number, aheadUs: number, retryUs: number): void {
  const isAllowedAt = (atUs: number) => new Fork([{ rule, held: store.held('mixed', 'a', 'k') }]).step('ask', atUs, [cost], aheadUs)
  if (!isAllowedAt(nowUs + retryUs)) expect.fail(`${rule.numbers}: limited at ${nowUs} + ${retryUs}`)
  if (isAllowedAt(nowUs + retryUs - 1)) expect.fail(`${rule.numbers}: allowed before ${nowUs} + ${retryUs}`)
}

function several<T>(random: Random, some: () => T): T[] {
  return Array.from({ length: random.whole(2, 4) }, some)
}

/**
 * Numbers that are near enough to each other to matter to each other, of unlike paces; and some
 * from anywhere.
 */
function mixedLevels(random: Random): TraceNumbers[] {
  if (random.chance(0.25)) return several(random, () => someNumbers(random))
  const unitUs = random.pick([1, 1_000, 1_000_000])
  return several(random, () => {
    const [permits, periodUs] = random.pick([
      [1, 1],
      [7, 10],
      [10, 7],
      [13, 97],
      [1, 60],
      [999_983, 1_000_003],
    ] as const)
    const capacity = random.pick([random.whole(1, 10), random.whole(1, 100), 1_000])
    return inDomain({ capacity, permits, periodUs: periodUs * unitUs })
  })
}

interface Pace {
  readonly permits: number
  readonly periodUs: number
}

function fastest(numbers: readonly Pace[]): Pace {
  return numbers.reduce((most, each) =>
    BigInt(each.permits) * BigInt(most.periodUs) > BigInt(most.permits) * BigInt(each.periodUs) ? each : most,
  )
}

/**
 * By how much of the bound the fullest span of all fills it; above 1 it is broken. `slackUs` of the
 * pace are allowed on top of each span.
 */
function fillOf(
  times: readonly (readonly [us: number, cost: number])[],
  capacity: number,
  { permits, periodUs }: Pace,
  slackUs: number,
): number {
  const [p, q] = [BigInt(permits), BigInt(periodUs)]
  const bound = BigInt(capacity) * q + BigInt(slackUs) * p
  // sum(from..to) x q - p x (to - from), over all spans, by the least of all beginnings.
  let sum = 0n
  let least: bigint | undefined
  let most = 0n
  for (const [us, cost] of [...times].sort(([a], [b]) => a - b)) {
    const start = sum * q - p * BigInt(us)
    if (least === undefined || start < least) least = start
    sum += BigInt(cost)
    const over = sum * q - p * BigInt(us) - least
    if (over > most) most = over
  }
  return Number((most * 1_000_000n + bound - 1n) / bound) / 1_000_000
}

describe.each(LEVELS)('%s under any mixture of numbers', (kind) => {
  test('admits in any span at most the largest capacity and the fastest rate, and limits nobody for longer than the longest window', () => {
    let fullest = 0
    let refused = 0
    for (let k = 0; k < traceCount(400); k++) {
      const random = new Random(SEED + k)
      const numbers = mixedLevels(random)
      const rules = numbers.map((each) => ruleOf(kind, each))
      const life = live(random, rules, 0)
      const capacity = Math.max(...numbers.map((each) => each.capacity))
      const times = life.admitted.map(({ atUs, cost }) => [atUs, cost] as const)
      const fill = fillOf(times, capacity, fastest(numbers), 0)
      if (fill > 1) expect.fail(`trace ${k}: ${fill} of the bound, ${JSON.stringify(numbers)}`)
      expectNoLongerThan(life.longestUs, rules, 0, k)
      fullest = Math.max(fullest, fill)
      refused += life.refused
    }
    // The bound is reached, and refusals were tried.
    expect([fullest, refused > 10 * traceCount(400)]).toEqual([1, true])
  })

  test('books and acts in any span at most that, and what is booked ahead', () => {
    let booked = 0
    for (let k = 0; k < traceCount(400); k++) {
      const random = new Random(SEED + k)
      const numbers = mixedLevels(random)
      const rules = numbers.map((each) => ruleOf(kind, each))
      const mostAheadUs = Math.min(...numbers.map((each) => each.mostAheadUs))
      const aheadUs = Math.min(mostAheadUs, random.magnitude(1, Math.max(1, 2 * (rules[0] as Rule).windowUs)))
      const { admitted, longestUs } = live(random, rules, aheadUs)
      const capacity = Math.max(...numbers.map((each) => each.capacity))
      const chargedAt = admitted.map(({ atUs, cost }) => [atUs, cost] as const)
      const actedAt = admitted.map(({ actUs, cost }) => [actUs, cost] as const)
      // In a queue also calls that are not reserved act later.
      const queuedUs = kind === 'leakyBucket' ? Math.max(...rules.map(({ windowUs }) => windowUs)) : 0
      const charged = fillOf(chargedAt, capacity, fastest(numbers), aheadUs)
      const acted = fillOf(actedAt, capacity, fastest(numbers), aheadUs + queuedUs)
      if (charged > 1 || acted > 1) expect.fail(`trace ${k}: ${charged} and ${acted} of the bound, ${JSON.stringify(numbers)}`)
      expectNoLongerThan(longestUs, rules, aheadUs, k)
      booked += admitted.filter(({ atUs, actUs }) => actUs > atUs).length
    }
    expect(booked).toBeGreaterThan(4 * traceCount(400))
  })
})

function expectNoLongerThan(longestUs: number, rules: readonly Rule[], aheadUs: number, trace: number): void {
  const mostUs = Math.max(...rules.map(({ windowUs }) => windowUs)) + aheadUs
  if (longestUs > mostUs) expect.fail(`trace ${trace}: limited for ${longestUs}, the longest window is ${mostUs}`)
}

/** Windows of unlike lengths, anchors and slots, near enough to each other to matter. */
function mixedWindows(kind: WindowKind, random: Random): WindowNumbers[] {
  if (random.chance(0.25)) return several(random, () => someWindow(kind, random))
  const unitUs = random.pick([1, 60, 1_000_000])
  return several(random, () => {
    const slots = random.pick([1, 2, 7, 10])
    const lengthUs = dividedBy(kind === 'slidingWindow' ? slots : 1, random.pick([1, 2, 7, 24, 60, 61, 97]) * unitUs)
    const anchor = random.pick<WindowNumbers['anchor']>([0, 0, 'first', random.whole(0, lengthUs - 1)])
    return { limit: random.pick([random.whole(1, 10), random.whole(1, 100)]), lengthUs, anchor, slots }
  })
}

/** The most that lie in one span of `lengthUs`, both ends included. */
function mostWithin(admitted: readonly Admitted[], lengthUs: number): number {
  let most = 0
  let sum = 0
  let first = 0
  for (const { atUs, cost } of admitted) {
    sum += cost
    while (atUs - (admitted[first] as Admitted).atUs > lengthUs) {
      sum -= (admitted[first] as Admitted).cost
      first += 1
    }
    most = Math.max(most, sum)
  }
  return most
}

/** The most that lie in one of the windows that lie side by side from an offset on. */
function mostPerWindow(admitted: readonly Admitted[], lengthUs: number, offsetUs: number): number {
  const sums = new Map<number, number>()
  for (const { atUs, cost } of admitted) {
    const window = Math.floor((atUs - offsetUs) / lengthUs)
    sums.set(window, (sums.get(window) ?? 0) + cost)
  }
  return Math.max(0, ...sums.values())
}

function livesOf(
  kind: WindowKind,
  some: (random: Random) => WindowNumbers[],
  check: (numbers: WindowNumbers[], life: Life, trace: number) => void,
) {
  for (let k = 0; k < traceCount(400); k++) {
    const random = new Random(SEED + k)
    const numbers = some(random)
    const rules = numbers.map((each) => windowRule(kind, each))
    const life = live(random, rules, 0)
    expectNoLongerThan(life.longestUs, rules, 0, k)
    check(numbers, life, k)
  }
}

/** One window, under several limits. */
function alike(kind: WindowKind, random: Random): WindowNumbers[] {
  const [first] = mixedWindows(kind, random) as [WindowNumbers]
  const anchor = first.anchor === 'first' ? 0 : first.anchor
  return several(random, () => ({ ...first, anchor, limit: random.pick([first.limit, random.whole(1, 100)]) }))
}

describe.each(WINDOW_KINDS)('%s under several limits on one window', (kind) => {
  test('admits at most the largest of them per window', () => {
    let full = 0
    livesOf(
      kind,
      (random) => alike(kind, random),
      (numbers, { admitted }, trace) => {
        const [{ lengthUs, anchor, slots }] = numbers as [WindowNumbers]
        const largest = Math.max(...numbers.map(({ limit }) => limit))
        const most = {
          fixedWindow: () => mostPerWindow(admitted, lengthUs, anchor as number),
          slidingWindow: () => mostWithin(admitted, lengthUs - lengthUs / slots),
          slidingLog: () => mostWithin(admitted, lengthUs - 1),
        }[kind]()
        if (most > largest) expect.fail(`trace ${trace}: ${most} in a window, ${JSON.stringify(numbers)}`)
        if (most === largest) full += 1
      },
    )
    expect(full).toBeGreaterThan(traceCount(400) / 2)
  })
})

describe('fixedWindow under unlike windows', () => {
  test('the calls under one set of numbers never exceed those numbers', () => {
    let full = 0
    livesOf(
      'fixedWindow',
      (random) => mixedWindows('fixedWindow', random),
      (numbers, { admitted }, trace) => {
        for (const [by, { limit, lengthUs, anchor }] of numbers.entries()) {
          const theirs = admitted.filter((each) => each.by === by)
          // Where windows begin with a first call, any span of one touches two at most.
          const most = anchor === 'first' ? Math.ceil(mostWithin(theirs, lengthUs - 1) / 2) : mostPerWindow(theirs, lengthUs, anchor)
          if (most > limit) expect.fail(`trace ${trace}: ${most} under ${by}, ${JSON.stringify(numbers)}`)
          if (most === limit) full += 1
        }
      },
    )
    expect(full).toBeGreaterThan(traceCount(400) / 2)
  })
})

/** The most that these numbers alone may admit in a span, both ends included. */
const ALONE: Readonly<Record<'slidingWindow' | 'slidingLog', (numbers: WindowNumbers, spanUs: number) => number>> = {
  slidingLog: ({ limit, lengthUs }, spanUs) => limit * (Math.floor(spanUs / lengthUs) + 1),
  // As many slots as a window has, side by side, hold the limit at most.
  slidingWindow: ({ limit, lengthUs, slots }, spanUs) => limit * Math.ceil((Math.floor((spanUs * slots) / lengthUs) + 2) / slots),
}

describe.each(['slidingWindow', 'slidingLog'] as const)('%s under unlike windows', (kind) => {
  test('admits in any span at most the sum of what each admits alone', () => {
    livesOf(
      kind,
      (random) => mixedWindows(kind, random),
      (numbers, { admitted }, trace) => {
        for (let from = 0; from < admitted.length; from++) {
          let sum = 0
          for (let to = from; to < admitted.length; to++) {
            sum += (admitted[to] as Admitted).cost
            const spanUs = (admitted[to] as Admitted).atUs - (admitted[from] as Admitted).atUs
            const bound = numbers.reduce((most, each) => most + ALONE[kind](each, spanUs), 0)
            if (sum > bound) expect.fail(`trace ${trace}: ${sum} within ${spanUs} us, ${JSON.stringify(numbers)}`)
          }
        }
      },
    )
  })

  test('admits in any of the shortest windows at most the largest limit', () => {
    livesOf(
      kind,
      (random) => mixedWindows(kind, random),
      (numbers, { admitted }, trace) => {
        const largest = Math.max(...numbers.map(({ limit }) => limit))
        const spans = numbers.map(({ lengthUs, slots }) => (kind === 'slidingLog' ? lengthUs - 1 : lengthUs - lengthUs / slots))
        const most = mostWithin(admitted, Math.min(...spans))
        if (most > largest) expect.fail(`trace ${trace}: ${most}, ${JSON.stringify(numbers)}`)
      },
    )
  })
})
