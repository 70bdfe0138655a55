/**
 * The laws of the design, each as a property of its own, through what a user holds wherever the
 * law speaks of that. laws-gcra.test.ts and laws-token-bucket.test.ts hold every step of long
 * traces against the oracle, which covers laws 1 to 6, 8, 10 and 11 at once; here each law is said
 * alone. Law 7 (same tape, same decisions on every store) is stores-agree.test.ts.
 */

import { describe, expect, test } from 'vitest'
import type { Rule } from '../../src/algorithms/algorithm.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { createLimiter, gcra, type Limit, memoryStore, SluiceError, tokenBucket } from '../../src/index.ts'
import type { Scope } from '../../src/stores/store.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import type { OracleKind, OracleNumbers } from '../../src/testing/oracle.ts'
import { Coverage, compareTraces } from './against-oracle.ts'
import { Fork } from './fork.ts'
import { type HeldState, PureStore } from './pure-store.ts'
import { Random } from './random.ts'
import { runTrace, scopesOf } from './run-trace.ts'
import { LATEST_US, SEED, someNumbers, Trace, traceCount } from './trace.ts'

const KINDS: readonly OracleKind[] = ['gcra', 'tokenBucket']
const START_US = 1_700_000_000_000_000
const DAY_US = 86_400_000_000
const KEY = 'k'

/**
 * A moment in the life of a key: who calls, what it holds, and under which rule that was written.
 */
interface Situation {
  readonly random: Random
  readonly rule: Rule
  readonly own: Rule
  readonly held: HeldState | undefined
  readonly fork: Fork
  readonly nowUs: number
  readonly maxAheadUs: number
}

/**
 * Calls `visit` with what a key looks like after every step of some traces: states of every kind
 * that calls can lead to.
 */
function forEverySituation(kind: OracleKind, usualTraces: number, visit: (situation: Situation) => void): void {
  for (let k = 0; k < traceCount(usualTraces); k++) {
    const trace = new Trace(SEED + k, [kind])
    const store = new PureStore()
    const random = new Random(SEED - k)
    const scopes = scopesOf(trace, 'laws')
    runTrace(trace, store, scopes, KEY, ({ call: { nowUs, numbers } }) => {
      // The caller that comes next may have other numbers than the one before.
      const index = random.chance(0.5) ? numbers : random.whole(0, scopes.length - 1)
      const { rule } = (scopes[index] as Scope).limits[0] as Scope['limits'][number]
      const held = store.held('laws', 'a', KEY)
      const fork = new Fork([{ rule, held }])
      // A charge under a shorter window may leave a state that is dated more than that window
      // ahead: the next contact repairs it.
      answer(fork, 'ask', nowUs, 0)
      visit({ random, rule, own: held?.own ?? rule, held: fork.held, fork, nowUs, maxAheadUs: trace.maxAheadUs })
    })
  }
}

/** The answer of a step on one limit, as a value of its own. */
function answer(fork: Fork, op: 'take' | 'ask' | 'give', nowUs: number, cost: number, aheadUs = -1): Verdict {
  fork.step(op, nowUs, [cost], aheadUs)
  return { ...(fork.verdicts[0] as Verdict) }
}

/** `expect` is too slow for a million comparisons: this is it for the common case. */
function same(actual: unknown, expected: unknown, what: string): void {
  const equal = actual === expected || JSON.stringify(actual) === JSON.stringify(expected)
  if (!equal) expect(actual, what).toEqual(expected)
}

function limitOf(kind: OracleKind, { capacity, permits, periodUs }: OracleNumbers): Limit {
  const rate = { permits, per: `${periodUs}us` } as const
  return kind === 'gcra' ? gcra({ burst: capacity, rate }) : tokenBucket({ capacity, refill: rate })
}

/** A limiter of its own for some numbers, with its clock and its store. */
function limiterOf(kind: OracleKind, numbers: OracleNumbers, maxAheadMs = 0) {
  const clock = fakeClock(START_US / 1000)
  const store = memoryStore()
  const limiter = createLimiter(limitOf(kind, numbers), { name: 'laws', store, clock, maxAheadMs })
  return { limiter, clock, store, held: () => store.inspect('laws', 'default', KEY) }
}

const usOf = (ms: number) => Math.round(ms * 1000)

describe.each(KINDS)('%s', (kind) => {
  test('law 1: nothing inside the domain is refused, everything outside is, with the reason', () => {
    const inside: OracleNumbers[] = [
      { capacity: 0, permits: 1, periodUs: 1 },
      { capacity: 1, permits: 1, periodUs: 1 },
      { capacity: 1_000_000_000, permits: 10, periodUs: 1 },
      { capacity: 1_000_000_000, permits: 1_000_000_000, periodUs: 366 * DAY_US },
      { capacity: 71, permits: 1, periodUs: 366 * DAY_US },
      { capacity: 26_062, permits: 1, periodUs: DAY_US },
    ]
    for (const numbers of inside) {
      const { limiter } = limiterOf(kind, numbers)
      expect(limiter.consume(KEY, numbers.capacity)).toMatchObject({ outcome: 'allowed', remaining: 0 })
    }
    const outside: OracleNumbers[] = [
      { capacity: -1, permits: 1, periodUs: 1 },
      { capacity: 1.5, permits: 1, periodUs: 1 },
      { capacity: 1_000_000_001, permits: 1, periodUs: 1 },
      { capacity: Number.NaN, permits: 1, periodUs: 1 },
      { capacity: 1, permits: 0, periodUs: 1 },
      { capacity: 1, permits: 11, periodUs: 1 },
      { capacity: 1, permits: 1, periodUs: 366 * DAY_US + 1 },
      { capacity: 72, permits: 1, periodUs: 366 * DAY_US },
      { capacity: 26_063, permits: 1, periodUs: DAY_US },
    ]
    for (const numbers of outside) expect(() => limitOf(kind, numbers), JSON.stringify(numbers)).toThrow(/ must be /)
  })

  test('law 2: denied changes nothing, cost 0 is a question, cost above the burst is impossible', () => {
    const outcomes = new Coverage()
    forEverySituation(kind, 200, ({ fork, rule, nowUs, random }) => {
      const before = fork.texts()
      const cost = random.pick([0, rule.capacity, rule.capacity, rule.capacity + 1, 1_000_000_000])
      const { outcome } = answer(fork, cost === 0 ? 'take' : 'ask', nowUs, cost)
      same(outcome === 'impossible', cost > rule.capacity, 'impossible')
      if (cost === 0) same(outcome, 'allowed', 'cost 0')
      if (outcome !== 'allowed') same(answer(fork, 'take', nowUs, cost).outcome, outcome, 'asked and taken')
      same(fork.texts(), before, 'the state')
      outcomes.add(outcome)
    })
    for (const outcome of ['allowed', 'limited', 'impossible']) expect(outcomes.counts.get(outcome)).toBeGreaterThan(1_000)
  })

  test('law 3: retryAfterMs is necessary and sufficient: limited one microsecond earlier, allowed at that time', () => {
    const random = new Random(SEED)
    for (let k = 0; k < 3_000; k++) {
      const numbers = someNumbers(random)
      const { limiter, clock } = limiterOf(kind, numbers)
      limiter.consume(KEY, random.whole(1, numbers.capacity))
      limiter.consume(KEY, limiter.peek(KEY).remaining)
      clock.setUs(START_US + random.whole(0, Math.ceil(numbers.periodUs / numbers.permits)))
      const cost = random.whole(1, numbers.capacity)
      const refused = limiter.consume(KEY, cost)
      const retryUs = usOf(refused.retryAfterMs)
      same(refused.retryAfterMs, retryUs / 1000, 'whole microseconds')
      if (refused.allowed) {
        same(retryUs, 0, 'retryAfterMs of an allowed call')
        continue
      }
      const fromUs = clock.nowUs()
      clock.setUs(fromUs + retryUs - 1)
      const early = limiter.consume(KEY, cost)
      same([early.outcome, early.retryAfterMs], ['limited', 0.001], `${JSON.stringify(numbers)} one microsecond before ${retryUs}`)
      clock.setUs(fromUs + retryUs)
      same(limiter.consume(KEY, cost).outcome, 'allowed', `${JSON.stringify(numbers)} at ${retryUs}`)
    }
  })

  test('law 3: public times are milliseconds exact to the microsecond, rounded up', () => {
    const { limiter } = limiterOf(kind, { capacity: 1, permits: 3, periodUs: 1_000_000 })
    expect(limiter.consume(KEY)).toMatchObject({ allowed: true, resetAfterMs: 333.334 })
    expect(limiter.consume(KEY)).toMatchObject({ allowed: false, retryAfterMs: 333.334 })
  })

  test('law 4: peek answers what consume would', () => {
    forEverySituation(kind, 200, ({ fork, rule, nowUs, random, maxAheadUs }) => {
      const cost = random.pick([0, 1, random.whole(1, rule.capacity), rule.capacity])
      const aheadUs = random.pick([-1, 0, maxAheadUs])
      const before = fork.texts()
      const asked = answer(fork, 'ask', nowUs, cost, aheadUs)
      same(fork.texts(), before, 'the state after asking')
      const taken = answer(fork, 'take', nowUs, cost, aheadUs)
      const { outcome, retryUs, delayUs } = taken
      same({ outcome: asked.outcome, retryUs: asked.retryUs, delayUs: asked.delayUs }, { outcome, retryUs, delayUs }, 'asked')
      // What is there now, less what is taken; ahead of time there may be less than that.
      if (outcome === 'allowed') same(taken.remaining, Math.max(0, asked.remaining - cost), 'remaining')
    })
  })

  test('law 4: at one instant, consume(n) leaves the state that n times consume(1) leaves', () => {
    forEverySituation(kind, 100, ({ fork, nowUs, random }) => {
      const { remaining } = answer(fork, 'ask', nowUs, 0)
      if (remaining === 0) return
      const cost = random.whole(1, Math.min(remaining, 12))
      const one = fork.copy()
      for (let k = 0; k < cost; k++) same(answer(one, 'take', nowUs, 1).outcome, 'allowed', 'one permit')
      same(answer(fork, 'take', nowUs, cost).outcome, 'allowed', `${cost} permits`)
      // Both repaired, where the window of these numbers is shorter than the one that the time
      // stood still for.
      for (const each of [one, fork]) answer(each, 'ask', nowUs, 0)
      same(one.texts(), fork.texts(), `${cost} permits`)
    })
  })

  test('law 5: a clock that steps back gives nothing back, and delays a key by at most the step and at most a window', () => {
    forEverySituation(kind, 200, ({ fork, rule, own: { windowUs }, held, random }) => {
      if (held === undefined) return
      const atUs = held.words[2] as number
      const stepUs = random.pick([1, random.magnitude(1, windowUs), windowUs, windowUs + 1, random.magnitude(1, 3 * windowUs)])
      if (stepUs > atUs) return
      const cost = random.whole(1, rule.capacity)
      const before = answer(fork.copy(), 'ask', atUs, cost)
      const after = answer(fork, 'ask', atUs - stepUs, cost)
      same([after.remaining, after.outcome], [before.remaining, before.outcome], 'used stays used')
      const mostUs = Math.min(stepUs, windowUs)
      const delayedUs = after.resetUs - before.resetUs
      if (delayedUs > mostUs) expect.fail(`a step of ${stepUs} delays by ${delayedUs}, the window is ${windowUs}`)
    })
  })

  test('law 6: an expired key equals a fresh one', () => {
    forEverySituation(kind, 100, ({ fork, rule, nowUs, random, own: { windowUs }, maxAheadUs }) => {
      const { resetUs } = answer(fork.copy(), 'ask', nowUs, 0)
      const fresh = new Fork([{ rule, held: undefined }])
      let thenUs = nowUs + resetUs + random.pick([0, 0, 1, random.magnitude(1, windowUs)])
      for (let k = 0; k < 5; k++) {
        if (thenUs > LATEST_US) return
        const op = random.pick(['take', 'take', 'ask', 'give'] as const)
        const cost = random.whole(0, rule.capacity)
        const aheadUs = op === 'take' ? random.pick([-1, 0, maxAheadUs]) : -1
        same(answer(fork, op, thenUs, cost, aheadUs), answer(fresh, op, thenUs, cost, aheadUs), 'held and fresh')
        thenUs += random.pick([0, 1, random.magnitude(1, windowUs)])
      }
    })
  })

  test('law 6: only what was taken is held: asking, being refused, cost 0 and giving back create no key', () => {
    const { limiter, store } = limiterOf(kind, { capacity: 5, permits: 7, periodUs: 1_000_000 }, 1_000)
    limiter.peek(KEY)
    limiter.consume(KEY, 0)
    limiter.consume(KEY, 6)
    limiter.reserve(KEY, 0).cancel()
    limiter.reserve(KEY, 6).cancel()
    limiter.refund(KEY, 3)
    limiter.reset(KEY)
    expect(store.size).toBe(0)
    limiter.consume(KEY)
    expect(store.size).toBe(1)
    limiter.reset(KEY)
    expect(store.size).toBe(0)
  })

  test('law 8: used belongs to the key, capacity to the caller: never a free refill, never a stuck key', () => {
    const random = new Random(SEED)
    for (let k = 0; k < 3_000; k++) {
      const [before, after] = [someNumbers(random), someNumbers(random)]
      const { limiter, clock } = limiterOf(kind, before)
      const used = random.whole(1, before.capacity)
      const { resetAfterMs } = limiter.consume(KEY, used)
      limiter.update(limitOf(kind, after))
      const updated = random.chance(0.5) ? limiter.peek(KEY) : limiter.consume(KEY, 0)
      const what = `${used} used, ${JSON.stringify([before, after])}`
      same([updated.remaining, updated.resetAfterMs], [Math.max(0, after.capacity - used), resetAfterMs], what)
      clock.setUs(START_US + usOf(resetAfterMs))
      same(limiter.peek(KEY).remaining, after.capacity, `idle after ${resetAfterMs} ms, ${what}`)
    }
  })

  test('law 8: only a charge writes numbers, and it keeps every permit', () => {
    const coverage = new Coverage()
    forEverySituation(kind, 200, ({ fork, rule, own, held, nowUs, random, maxAheadUs }) => {
      if (held === undefined) return
      const op = random.pick(['take', 'take', 'take', 'ask', 'give'] as const)
      const cost = random.pick([0, 1, random.whole(1, rule.capacity), rule.capacity])
      const aheadUs = op === 'give' ? -1 : random.pick([-1, 0, maxAheadUs])
      const before = own.algorithm.used(own, held.words, 0, nowUs)
      const { outcome } = answer(fork, op, nowUs, cost, aheadUs)
      const after = fork.held as HeldState
      const charged = op === 'take' && outcome === 'allowed' && cost > 0
      same(after.own.numbers, charged ? rule.numbers : own.numbers, `${op} ${outcome}`)
      if (charged) same(after.own.algorithm.used(after.own, after.words, 0, nowUs), before + cost, 'permits')
      if (own.numbers !== rule.numbers) coverage.add(charged ? 'charged under other numbers' : 'left under other numbers')
    })
    for (const what of ['charged under other numbers', 'left under other numbers']) {
      expect(coverage.counts.get(what), what).toBeGreaterThan(5 * traceCount(200))
    }
  })

  test('law 9: wrong input is refused before anything is touched', () => {
    const numbers = { capacity: 5, permits: 7, periodUs: 1_000_000 }
    const { limiter, store, held } = limiterOf(kind, numbers, 1_000)
    limiter.consume(KEY, 2)
    const [before, size] = [held(), store.size]
    const refusedWith = (code: string, call: () => unknown) => {
      expect(codeThrownBy(call), `${call}`).toBe(code)
      expect(held()).toEqual(before)
      expect(store.size).toBe(size)
    }
    const wrongCosts = [
      Number.NaN,
      -1,
      0.5,
      1_000_000_001,
      Number.POSITIVE_INFINITY,
      '1',
      null,
      {},
      { other: 1 },
      { default: -1 },
    ] as never[]
    for (const cost of wrongCosts) {
      refusedWith('COST', () => limiter.consume(KEY, cost))
      refusedWith('COST', () => limiter.tryAcquire(KEY, cost))
      refusedWith('COST', () => limiter.peek(KEY, cost))
      refusedWith('COST', () => limiter.reserve(KEY, cost))
      refusedWith('COST', () => limiter.refund(KEY, cost))
    }
    for (const key of ['', 'x'.repeat(1025), undefined, null, 7, {}, { other: KEY }, { default: '' }] as never[]) {
      refusedWith('KEY', () => limiter.consume(key))
      refusedWith('KEY', () => limiter.refund(key))
      refusedWith('KEY', () => limiter.reset(key))
    }
    refusedWith('CONFIG', () => limiter.reserve(KEY, 1, { maxWaitMs: Number.NaN }))
    refusedWith('CONFIG', () => limiter.reserve(KEY, 1, { maxWaitMs: -1 }))
    refusedWith('CONFIG', () => limiter.update({ other: limitOf(kind, numbers) } as never))
    refusedWith('CONFIG', () => limiter.update({} as never))
  })

  test('law 9: bad options are refused', () => {
    const limit = limitOf(kind, { capacity: 5, permits: 7, periodUs: 1_000_000 })
    for (const maxAheadMs of [Number.NaN, -1, 0.0001, 367 * 86_400_000]) {
      expect(codeThrownBy(() => createLimiter(limit, { maxAheadMs }))).toBe('CONFIG')
    }
    for (const name of ['', 'a b', 'x'.repeat(65)]) expect(codeThrownBy(() => createLimiter(limit, { name }))).toBe('CONFIG')
    for (const limits of [{}, { a: {} }, { 'a b': limit }, null, undefined, 7]) {
      expect(codeThrownBy(() => createLimiter(limits as never))).toBe('CONFIG')
    }
  })

  test('law 10: what has drained of a call is not given back with it', () => {
    const { limiter, clock, held } = limiterOf(kind, { capacity: 5, permits: 1, periodUs: 100_000 })
    const [first, second] = [limiter.consume(KEY, 2), limiter.consume(KEY, 3)]
    clock.setUs(START_US + 499_998)
    limiter.consume(KEY, 3)
    const before = held()
    // What was there first drains first: two microseconds' worth of the second are left.
    first.cancel()
    expect(held()).toEqual(before)
    const { resetAfterMs } = limiter.peek(KEY)
    second.cancel()
    expect(Math.round((resetAfterMs - limiter.peek(KEY).resetAfterMs) * 1000)).toBe(2)
  })

  test('law 10: what has drained of a booking before its time is not given back with it', () => {
    const limits = (permits: number) => limitOf(kind, { capacity: 10, permits, periodUs: 1_000_000 })
    const clock = fakeClock(START_US / 1000)
    const limiter = createLimiter(limits(1), { clock, maxAheadMs: 60_000, plans: { fast: limits(100) } })
    limiter.consume(KEY, 10)
    // Its time comes as the state drains now; from now on that drains a hundred times as fast.
    const booked = limiter.reserve(KEY, 10, { plan: 'fast' })
    expect(booked.delayMs).toBe(10_000)
    clock.advanceMs(150)
    limiter.consume(KEY, 2, { plan: 'fast' })
    expect(limiter.peek(KEY, 0).remaining).toBe(3)
    booked.cancel()
    expect(limiter.peek(KEY, 0).remaining).toBe(8)
  })

  test('law 10: refund never creates a key, never goes above idle, and gives back what was taken', () => {
    forEverySituation(kind, 200, ({ fork, rule, nowUs, random }) => {
      const wasHeld = fork.texts()[0] !== undefined
      const before = answer(fork, 'ask', nowUs, 0)
      const cost = random.whole(0, rule.capacity)
      if (answer(fork.copy(), 'ask', nowUs, cost).outcome === 'allowed' && wasHeld) {
        const round = fork.copy()
        answer(round, 'take', nowUs, cost)
        same(answer(round, 'give', nowUs, cost).remaining, before.remaining, 'taken and given back')
      }
      const after = answer(fork, 'give', nowUs, random.pick([cost, 1_000_000_000]))
      same(fork.texts()[0] !== undefined, wasHeld, 'held')
      if (after.remaining > rule.capacity || after.remaining < before.remaining) expect.fail(`remaining ${after.remaining}`)
    })
  })
})

test('several limits are one decision: every limit is charged or none', () => {
  const coverage = new Coverage()
  compareTraces(traceCount(1_000), ['gcra', 'tokenBucket'], coverage)
  console.log(coverage.table('gcra and token bucket as one decision, against two oracles'))
  expect(coverage.share('limited')).toBeGreaterThan(0.05)
})

function codeThrownBy(call: () => unknown): string {
  try {
    call()
  } catch (error) {
    if (error instanceof SluiceError) return error.code
    throw error
  }
  return 'nothing was thrown'
}
