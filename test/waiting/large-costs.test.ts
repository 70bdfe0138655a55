/**
 * Several limiters, as of several processes, share a store, and nothing can be booked ahead. A call
 * with a large cost gets its turn although calls that cost less take each permit as it comes free,
 * nobody is admitted beyond the limit, and the small ones go on.
 */
import { describe, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { emptyVerdict, type Verdict } from '../../src/algorithms/decide.ts'
import { limitFrom } from '../../src/config/index.ts'
import {
  createLimiter,
  gcra,
  type Limit,
  type Limiter,
  memoryStore,
  type Step,
  type Store,
  slidingLog,
  slidingWindow,
} from '../../src/index.ts'
import { claimedParts } from '../../src/stores/queue/claim.ts'
import { SharedQueue } from '../../src/stores/queue/shared-queue.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Part } from '../../src/stores/step.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { stepByStep } from '../support/as-store.ts'
import { Opened } from '../support/opened.ts'
import { storeCases } from '../support/stores.ts'
import { noUnhandledRejections, PATIENT, told } from './support.ts'

noUnhandledRejections()

const LIMIT = 100
const WINDOW_US = 1_000_000
const SLOT_US = WINDOW_US / 10
const ROUND_TRIP_US = 4_000

interface Act {
  readonly atUs: number
  readonly cost: number
}

type Verdicts = readonly Verdict[]

/** One memory for all, at hand. */
function near(): () => Store {
  const memory = memoryStore()
  return () => ({ mode: 'sync', shared: true, queue: SharedQueue, open: (scope, nowUs) => memory.open(scope, nowUs) })
}

/** Threads, each with a store of its own over one memory. */
function threads(_clock: FakeClock, limit: Limit): () => Store {
  const { handle } = sharedStore({ maxKeys: 10, limits: limit })
  return () => sharedStore(handle)
}

/** One memory for all, some milliseconds away: what is asked in one turn is decided at once. */
function far(clock: FakeClock): () => Store {
  const memory = new Opened(memoryStore())
  return () => {
    const apply = (step: Step) =>
      new Promise<Verdicts>((resolve) => {
        clock.setTimer(() => {
          const verdicts = memory.apply(step, clock.nowUs())
          clock.setTimer(() => resolve(verdicts), ROUND_TRIP_US / 2)
        }, ROUND_TRIP_US / 2)
      })
    return stepByStep({ shared: true, apply })
  }
}

class World {
  readonly clock = fakeClock()
  readonly acts: Act[] = []
  readonly #storeOf: () => Store
  readonly #limit: Limit
  readonly #end = new AbortController()

  constructor(storesOf: (clock: FakeClock, limit: Limit) => () => Store, limit: Limit) {
    this.#storeOf = storesOf(this.clock, limit)
    this.#limit = limit
  }

  process(): Limiter<Limit, Store> {
    return createLimiter(this.#limit, { name: 'api', store: this.#storeOf(), clock: this.clock, ...PATIENT })
  }

  /** Callers that come again and again. */
  async busy(limiter: Limiter<Limit, Store>, cost: number): Promise<void> {
    const { signal } = this.#end
    while (!signal.aborted) await this.turn(limiter, cost, signal).catch(() => {})
  }

  async turn(limiter: Limiter<Limit, Store>, cost: number, signal?: AbortSignal): Promise<void> {
    const { atMs } = await limiter.acquire('k', signal === undefined ? { cost } : { cost, signal })
    this.acts.push({ atUs: Math.round(atMs * 1000), cost })
  }

  async runFor(us: number): Promise<void> {
    for (let passedUs = 0; passedUs < us; passedUs += 1_000) {
      this.clock.advanceMs(1)
      await told()
    }
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.runFor(2 * ROUND_TRIP_US)
  }

  served(cost: number, fromUs: number, untilUs: number): number {
    return this.acts.filter((act) => act.cost === cost && act.atUs >= fromUs && act.atUs < untilUs).length
  }

  /** The most that was admitted in any span that is as long as what the limit speaks of. */
  most(spanUs: number): number {
    const acts = this.acts.toSorted((a, b) => a.atUs - b.atUs)
    return Math.max(
      ...acts.map(({ atUs }) => acts.reduce((sum, act) => sum + (act.atUs > atUs - spanUs && act.atUs <= atUs ? act.cost : 0), 0)),
    )
  }
}

// A sliding window may admit as much as its limit twice, if what has begun to fade is counted with
// it: without that slot it never does.
const LIMITS: readonly (readonly [name: string, limit: Limit, spanUs: number])[] = [
  ['sliding window', slidingWindow({ limit: LIMIT, window: '1s', slots: 10 }), WINDOW_US - SLOT_US],
  ['sliding log', slidingLog({ limit: LIMIT, window: '1s' }), WINDOW_US],
]
const STORES = [
  ['at hand', near],
  ['in shared memory', threads],
  ['far away', far],
] as const

/** Two windows, and one more for each other process whose first caller is held up as long. */
function boundUs(others: number): number {
  return (2 + others) * (WINDOW_US + SLOT_US) + ROUND_TRIP_US
}

describe.each(STORES)('on a store %s', (_, storesOf) => {
  test.each(LIMITS.flatMap(([name, limit, spanUs]) => [50, LIMIT].map((cost) => [cost, name, limit, spanUs] as const)))(
    '%d of a %s of 100 are had in time while three processes are busy',
    async (cost, _name, limit, spanUs) => {
      const world = new World(storesOf, limit)
      const small = [1, 2, 3].map(() => world.process())
      for (const limiter of small) for (let k = 0; k < 60; k++) void world.busy(limiter, 1)
      await world.runFor(3_450_000)
      const beganUs = world.clock.nowUs()
      let servedUs = Number.POSITIVE_INFINITY
      void world.turn(world.process(), cost).then(() => {
        servedUs = world.clock.nowUs()
      })
      await world.runFor(boundUs(3))
      expect(servedUs - beganUs).toBeLessThanOrEqual(boundUs(3))
      // Behind it the small ones go on as before.
      const nextUs = world.clock.nowUs() + WINDOW_US
      await world.runFor(3 * WINDOW_US)
      expect(world.served(1, nextUs, nextUs + 2 * WINDOW_US)).toBeGreaterThanOrEqual(1.6 * LIMIT)
      await world.stop()
      expect(world.most(spanUs)).toBeLessThanOrEqual(LIMIT)
    },
  )

  test.each(LIMITS)('of a %s two that need more than half each, and small ones, all have turns', async (_name, limit, spanUs) => {
    const world = new World(storesOf, limit)
    for (let k = 0; k < 60; k++) void world.busy(world.process(), 1)
    for (const cost of [60, 70]) void world.busy(world.process(), cost)
    await world.runFor(20 * WINDOW_US)
    await world.stop()
    for (const cost of [1, 60, 70]) expect(world.served(cost, 0, Number.POSITIVE_INFINITY), `${cost}`).toBeGreaterThanOrEqual(2)
    expect(world.most(spanUs)).toBeLessThanOrEqual(LIMIT)
  })
})

describe('a claim changes nothing else', () => {
  interface Calls {
    admitted: number
    refused: number
  }

  const count = async (calls: Calls, answer: unknown) => {
    if ((await (answer as Promise<{ readonly allowed: boolean }>)).allowed) calls.admitted += 1
    else calls.refused += 1
  }

  test('a caller that waits for its own limit takes nothing of the one that it shares with others', async () => {
    const clock = fakeClock()
    const storeOf = far(clock)
    const limits = { user: slidingLog({ limit: 5, window: '1s' }), tenant: slidingWindow({ limit: 1_000, window: '1s' }) }
    const [busy, waits] = [0, 1].map(() => createLimiter(limits, { name: 'api', store: storeOf(), clock, ...PATIENT })) as [
      Limiter<typeof limits, Store>,
      Limiter<typeof limits, Store>,
    ]
    const others: Calls = { admitted: 0, refused: 0 }
    let isServed = false
    for (let ms = 0; ms < 5_000; ms++) {
      if (ms % 100 === 0) void busy.consume({ user: 'one', tenant: 't' })
      if (ms === 300) void waits.acquire({ user: 'one', tenant: 't' }, { cost: 5 }).then(() => (isServed = true))
      if (ms % 10 === 5) void count(others, busy.consume({ user: `another ${ms}`, tenant: 't' }))
      clock.advanceMs(1)
      await told()
    }
    expect([isServed, others.refused]).toEqual([true, 0])
    for (const limiter of [busy, waits]) limiter.close()
  })

  test.each(STORES)('charges made while it stands are all that is left of it, on a store %s', async (_, storesOf) => {
    const clock = fakeClock()
    const limit = slidingLog({ limit: 10, window: '1s' })
    const storeOf = storesOf(clock, limit)
    const [busy, waits] = [0, 1].map(() => createLimiter(limit, { name: 'api', store: storeOf(), clock, ...PATIENT })) as [
      Limiter<Limit, Store>,
      Limiter<Limit, Store>,
    ]
    let isServed = false
    const base: Calls = { admitted: 0, refused: 0 }
    for (let ms = 0; ms < 8_000; ms++) {
      if (ms === 300) void waits.acquire('k', { cost: 5 }).then(() => (isServed = true))
      if (ms % 50 === 0) void count(base, busy.consume('k'))
      // Once it is claimed, what is charged is debt, and a log adds that to its newest entry.
      if (ms % 400 === 399) void busy.charge('k', 1)
      clock.advanceMs(1)
      await told()
    }
    expect(isServed).toBe(true)
    // Ten in each second, of which two or three are charged and five were waited for.
    expect(base.admitted).toBeGreaterThanOrEqual(40)
    for (const limiter of [busy, waits]) limiter.close()
  })

  test.each([
    ['at hand', near],
    ['far away', far],
  ])('what has drained of it meanwhile is not taken off debt, on a store %s', async (_, storesOf) => {
    const clock = fakeClock()
    const startMs = clock.nowUs() / 1_000
    const storeOf = storesOf(clock)
    // Two kinds of limits, so that nothing can be booked.
    const limits = { level: gcra({ rate: '10/s', burst: 10 }), log: slidingLog({ limit: 1_000, window: '1s' }) }
    const [busy, waits] = [0, 1].map(() => createLimiter(limits, { name: 'api', store: storeOf(), clock, ...PATIENT })) as [
      Limiter<typeof limits, Store>,
      Limiter<typeof limits, Store>,
    ]
    const gone = new AbortController()
    let wait: Promise<unknown> | undefined
    let [used, refusedMs] = [0, Number.NaN]
    for (let ms = 0; ms < 3_000 && !(ms > refusedMs + 800); ms++) {
      if (Number.isNaN(refusedMs) && ms % 100 === 0) {
        const cost = ms === 0 ? 3 : 1
        void Promise.resolve(busy.consume('k', cost)).then(({ allowed }) => {
          if (allowed) used += cost
          else refusedMs = ms
        })
      }
      if (ms === 50) wait = waits.acquire('k', { cost: 10, signal: gone.signal }).catch((reason: Error) => reason.name)
      // It is claimed by now, and lasts longer than what was used before it.
      if (ms === refusedMs + 50) void busy.charge('k', 20)
      if (ms === refusedMs + 700) gone.abort()
      clock.advanceMs(1)
      await told()
    }
    expect([await wait, refusedMs]).toEqual(['AbortError', expect.any(Number)])
    const asked = Promise.resolve(busy.peek('k'))
    for (let k = 0; k < 4; k++) {
      clock.advanceMs(1)
      await told()
    }
    const { atMs, parts } = await asked
    // The key was never idle: all that was used and written down drains, from the beginning on.
    const permits = (atMs + parts.level.resetAfterMs - startMs) / 100
    expect(permits).toBeGreaterThanOrEqual(used + 20)
    expect(permits).toBeLessThan(used + 21)
    for (const limiter of [busy, waits]) limiter.close()
  })

  test.each(STORES)('what others take after a reset is not given back with it, on a store %s', async (_, storesOf) => {
    const clock = fakeClock()
    const limit = slidingLog({ limit: 10, window: '1s' })
    const storeOf = storesOf(clock, limit)
    const [busy, waits] = [0, 1].map(() => createLimiter(limit, { name: 'api', store: storeOf(), clock, ...PATIENT })) as [
      Limiter<Limit, Store>,
      Limiter<Limit, Store>,
    ]
    const gone = new AbortController()
    let [served, taken, refusedMs] = [0, 0, Number.NaN]
    for (let ms = 0; !(ms > refusedMs + 200) && ms < 5_000; ms++) {
      // What the limit admits, and no more: a refusal says that the key is claimed.
      if (Number.isNaN(refusedMs) && ms % 100 === 0) {
        void Promise.resolve(busy.consume('k')).then(({ allowed }) => {
          if (!allowed) refusedMs = ms
        })
      }
      // The key is in full use by then.
      if (ms === 1_050)
        void waits.acquire('k', { cost: 5, signal: gone.signal }).then(
          () => (served = 5),
          () => {},
        )
      if (ms === refusedMs + 20) void busy.reset('k')
      if (ms === refusedMs + 30) void Promise.resolve(busy.consume('k', 5)).then(({ allowed }) => (taken = allowed ? 5 : 0))
      if (ms === refusedMs + 100) gone.abort()
      clock.advanceMs(1)
      await told()
    }
    const left = Promise.resolve(busy.peek('k'))
    for (let k = 0; k < 5; k++) {
      clock.advanceMs(1)
      await told()
    }
    expect([taken, (await left).remaining]).toEqual([5, 5 - served])
    for (const limiter of [busy, waits]) limiter.close()
  })

  test('where callers with a larger capacity keep it from coming true, it ends, and the others go on', async () => {
    const clock = fakeClock()
    const storeOf = far(clock)
    const limit = slidingWindow({ limit: 10, window: '200ms' })
    const plans = { pro: slidingWindow({ limit: 100, window: '200ms' }) }
    const [busy, waits] = [0, 1].map(() => createLimiter(limit, { name: 'api', store: storeOf(), clock, plans, ...PATIENT })) as [
      Limiter<typeof limit, Store, 'pro'>,
      Limiter<typeof limit, Store, 'pro'>,
    ]
    const base: Calls = { admitted: 0, refused: 0 }
    const left = new AbortController()
    for (let ms = 0; ms < 6_000; ms++) {
      if (ms === 400) void Promise.resolve(waits.acquire('k', { cost: 10, signal: left.signal })).catch(() => {})
      if (ms % 50 === 0) void count(base, busy.consume('k'))
      if (ms % 90 === 7) void busy.consume('k', 1, { plan: 'pro' })
      clock.advanceMs(1)
      await told()
    }
    left.abort()
    expect(base.admitted).toBeGreaterThanOrEqual(80)
    for (const limiter of [busy, waits]) limiter.close()
  })

  test.each([
    [slidingLog({ limit: 50_000, window: '1s' }), true],
    [slidingLog({ limit: 100_000, window: '1s' }), false],
    [slidingWindow({ limit: 400_000_000, window: '1s' }), true],
    [slidingWindow({ limit: 1_000_000_000, window: '1s' }), false],
  ])('of %j a claim that others could not read is not made: %s', (limit, isMade) => {
    const part = new Part('default', limit[RULE], 'k', 1)
    const verdict = { ...emptyVerdict(), outcome: 'limited' as const, retryUs: 1 }
    expect(claimedParts([part], [verdict], true) !== undefined).toBe(isMade)
  })
})

const SHORT = [
  { limit: slidingWindow({ limit: 5, window: '1s', slots: 5 }), feltMs: 1_200 },
  { limit: slidingLog({ limit: 5, window: '1s' }), feltMs: 1_000 },
]
const CASES = storeCases.filter(({ name }) => name !== 'memory').flatMap((store) => SHORT.map((short) => ({ ...store, ...short })))

describe.each(CASES)('on $name, of a $limit.type', ({ open, limit, feltMs }) => {
  /**
   * Another process takes each permit as it comes free, until the first caller of this one has
   * claimed the key.
   */
  async function held() {
    const { store, close } = await open()
    const clock = fakeClock(500)
    const [other, limiter] = [0, 1].map(() => createLimiter(limit, { name: 'api', store, clock, ...PATIENT })) as [
      Limiter<Limit, Store>,
      Limiter<Limit, Store>,
    ]
    for (let k = 0; k < 5; k++) {
      await other.consume('k')
      clock.advanceMs(100)
    }
    const left = new AbortController()
    const outcome = limiter.acquire('k', { cost: 5, signal: left.signal }).then(
      () => 'served',
      () => 'left',
    )
    let lastTakenMs = 0
    /** How many permits the other process got meanwhile. */
    const pass = async (ms: number, takes: boolean) => {
      let taken = 0
      for (let passed = 0; passed < ms; passed += 20) {
        clock.advanceMs(20)
        await other.peek('k', 0)
        await told()
        if (!takes || !(await admitted(other, 'k'))) continue
        taken += 1
        lastTakenMs = clock.nowUs() / 1_000
      }
      return taken
    }
    /** Until when what the other process took is felt. */
    const lastFeltMs = () => lastTakenMs + feltMs
    return { lastFeltMs, other, limiter, left, outcome, pass, close }
  }

  test('the whole of a window is had while another process takes each permit', async () => {
    const { other, limiter, outcome, pass, close } = await held()
    expect(await pass(3_500, true)).toBeGreaterThan(0)
    expect(await Promise.race([outcome, 'waits'])).toBe('served')
    for (const each of [limiter, other]) each.close()
    close()
  })

  test.each(['the caller leaves', 'the limiter closes', 'the numbers change', 'the key is reset'])(
    'if %s, nothing is left of a claim',
    async (how) => {
      const { lastFeltMs, other, limiter, left, outcome, pass, close } = await held()
      /**
       * When the key is idle again: later than what the other took last can be felt, if a claim
       * stands.
       */
      const idleAtMs = async () => {
        const { atMs, resetAfterMs } = await other.peek('k', 0)
        return atMs + resetAfterMs
      }
      expect(await pass(1_400, true)).toBeGreaterThan(0)
      await pass(400, false)
      expect(await idleAtMs()).toBeGreaterThan(lastFeltMs())
      if (how === 'the caller leaves') left.abort()
      if (how === 'the limiter closes') limiter.close()
      if (how === 'the numbers change') limiter.update(limitFrom({ ...limit, limit: 4 }))
      if (how === 'the key is reset') await limiter.reset('k')
      const isReset = how === 'the key is reset'
      expect(await outcome).toBe(isReset ? 'served' : 'left')
      // The one that is served has five permits, and not six more.
      if (isReset) expect((await other.peek('k', 5)).retryAfterMs).toBeLessThanOrEqual(feltMs)
      else expect(await idleAtMs()).toBeLessThanOrEqual(lastFeltMs())
      for (const each of [limiter, other]) each.close()
      close()
    },
  )
})
