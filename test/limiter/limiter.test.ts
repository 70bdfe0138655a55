/**
 * How a limiter behaves, on the memory store and a clock that stands still until it is moved. Times
 * are milliseconds from 0.
 */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { afterEach, describe, expect, test } from 'vitest'
import {
  createLimiter,
  type DecisionEvent,
  fixedWindow,
  gcra,
  type Limit,
  type LimiterOptions,
  type Limits,
  leakyBucket,
  memoryStore,
  type SyncStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

function setUp<const L extends Limits, P extends string = never>(limits: L, options: LimiterOptions<L, SyncStore, P> = {}) {
  const clock = fakeClock()
  const store = memoryStore()
  return { clock, store, limiter: createLimiter<L, SyncStore, P>(limits, { name: 'api', store, clock, ...options }) }
}

describe('several limits are one decision', () => {
  const limits = { burst: gcra({ rate: '1/s', burst: 2 }), daily: fixedWindow({ limit: 3, window: '1d' }) }

  test('all are charged when all agree', () => {
    const { limiter } = setUp(limits)
    const { parts } = limiter.consume('key')
    expect(parts.burst.remaining).toBe(1)
    expect(parts.daily.remaining).toBe(2)
  })

  test('none is charged when one refuses', () => {
    const { limiter, store } = setUp(limits)
    limiter.consume('key', 2)
    const held = [store.inspect('api', 'burst', 'key'), store.inspect('api', 'daily', 'key')]
    const refused = limiter.consume('key')
    expect(refused.parts.burst.outcome).toBe('limited')
    expect(refused.parts.daily).toMatchObject({ outcome: 'allowed', remaining: 1 })
    expect([store.inspect('api', 'burst', 'key'), store.inspect('api', 'daily', 'key')]).toEqual(held)
  })

  test('none is charged when the cost can never fit one of them', () => {
    const { limiter, store } = setUp(limits)
    const decision = limiter.consume('key', 3)
    expect(decision).toMatchObject({ outcome: 'impossible', allowed: false, policy: 'burst', retryAfterMs: Number.POSITIVE_INFINITY })
    expect(decision.parts.daily.outcome).toBe('allowed')
    expect(store.size).toBe(0)
  })

  test('tryAcquire charges all or none too', () => {
    const { limiter } = setUp(limits)
    expect([1, 1, 1].map((cost) => limiter.tryAcquire('key', cost))).toEqual([true, true, false])
    expect(limiter.peek('key', 0).parts.daily.remaining).toBe(1)
  })
})

describe('the binding limit, which a decision speaks for', () => {
  test('has the fewest remaining when allowed', () => {
    const { limiter } = setUp({ wide: gcra({ rate: '1/s', burst: 10 }), narrow: fixedWindow({ limit: 5, window: '1h' }) })
    expect(limiter.consume('key')).toMatchObject({ policy: 'narrow', limit: 5, remaining: 4 })
  })

  test('is the first of those that have equally few', () => {
    const { limiter } = setUp({ one: gcra({ rate: '1/s', burst: 5 }), two: gcra({ rate: '9/s', burst: 5 }) })
    expect(limiter.consume('key').policy).toBe('one')
  })

  test('has the longest wait when limited, even if another has fewer remaining', () => {
    const { limiter, clock } = setUp({ burst: gcra({ rate: '1/s', burst: 2 }), hourly: fixedWindow({ limit: 3, window: '1h' }) })
    limiter.consume('key', 2)
    clock.setMs(500)
    const { policy, retryAfterMs, remaining, parts } = limiter.consume('key', 2)
    expect(parts.burst).toMatchObject({ outcome: 'limited', remaining: 0, retryAfterMs: 1_500 })
    expect(parts.hourly).toMatchObject({ outcome: 'limited', remaining: 1, retryAfterMs: 3_599_500 })
    expect({ policy, retryAfterMs, remaining }).toEqual({ policy: 'hourly', retryAfterMs: 3_599_500, remaining: 1 })
  })

  test('decides how long to wait: then all agree, and a microsecond earlier they do not', () => {
    const { limiter, clock } = setUp({ burst: gcra({ rate: '3/s', burst: 2 }), log: slidingLog({ limit: 3, window: '2s' }) })
    limiter.consume('key', 2)
    const { retryAfterMs, policy } = limiter.consume('key', 2)
    expect({ retryAfterMs, policy }).toEqual({ retryAfterMs: 2_000, policy: 'log' })
    clock.setUs(1_999_999)
    expect(limiter.peek('key', 2).allowed).toBe(false)
    clock.setUs(2_000_000)
    expect(limiter.consume('key', 2).allowed).toBe(true)
  })
})

describe('a key for each limit', () => {
  const limits = { user: gcra({ rate: '1/s', burst: 2 }), tenant: gcra({ rate: '1/s', burst: 3 }) }

  test('counts users apart and their tenant together', () => {
    const { limiter } = setUp(limits)
    expect(limiter.consume({ user: 'u1', tenant: 't9' }, 2)).toMatchObject({ allowed: true, policy: 'user' })
    const second = limiter.consume({ user: 'u2', tenant: 't9' })
    expect(second).toMatchObject({ allowed: true, policy: 'tenant', remaining: 0 })
    expect(second.parts.user.remaining).toBe(1)
    expect(limiter.consume({ user: 'u2', tenant: 't9' })).toMatchObject({ outcome: 'limited', policy: 'tenant' })
    expect(limiter.consume({ user: 'u2', tenant: 't1' }).allowed).toBe(true)
  })

  test('charges neither key when one refuses', () => {
    const { limiter } = setUp(limits)
    limiter.consume({ user: 'u1', tenant: 't9' }, 2)
    limiter.consume({ user: 'u1', tenant: 't1' })
    expect(limiter.peek({ user: 'u2', tenant: 't1' }, 0).parts.tenant.remaining).toBe(3)
  })

  test('the same text is another key under another limit, and one text means both', () => {
    const { limiter, store } = setUp(limits)
    limiter.consume({ user: 'same', tenant: 'other' })
    expect(store.inspect('api', 'tenant', 'same')).toBeUndefined()
    limiter.consume('same')
    expect(limiter.peek('same', 0).parts).toMatchObject({ user: { remaining: 0 }, tenant: { remaining: 2 } })
  })
})

describe('a cost for each limit', () => {
  const limits = { requests: gcra({ rate: '1/s', burst: 5 }), tokens: tokenBucket({ capacity: 1_000, refill: '100/s' }) }

  test('is charged to each', () => {
    const { limiter } = setUp(limits)
    const { parts } = limiter.consume('key', { requests: 1, tokens: 800 })
    expect([parts.requests.remaining, parts.tokens.remaining]).toEqual([4, 200])
    expect(limiter.consume('key', { requests: 1, tokens: 300 })).toMatchObject({ policy: 'tokens', retryAfterMs: 1_000 })
    expect(limiter.peek('key', 0).parts.requests.remaining).toBe(4)
  })

  test('of 0 takes a limit out of the decision and creates no key there', () => {
    const { limiter, store } = setUp(limits)
    limiter.consume('key', { requests: 0, tokens: 1_000 })
    expect(store.inspect('api', 'requests', 'key')).toBeUndefined()
    expect(limiter.consume('key', { requests: 5, tokens: 0 }).allowed).toBe(true)
  })

  test('is what a refund gives back to each', () => {
    const { limiter } = setUp(limits)
    limiter.consume('key', { requests: 2, tokens: 800 })
    limiter.refund('key', { requests: 0, tokens: 300 })
    expect(limiter.peek('key', 0).parts).toMatchObject({ requests: { remaining: 3 }, tokens: { remaining: 500 } })
  })
})

describe('plans', () => {
  const free = gcra({ rate: '1/s', burst: 2 })
  const pro = gcra({ rate: '10/s', burst: 20 })

  test('decide by their own numbers', () => {
    const { limiter } = setUp(free, { plans: { pro } })
    expect(limiter.consume('key', 1, { plan: 'pro' })).toMatchObject({ limit: 20, remaining: 19 })
    expect(limiter.tryAcquire('key', 19, { plan: 'pro' })).toBe(true)
    expect(limiter.tryAcquire('key', 1, { plan: 'pro' })).toBe(false)
  })

  test('share the state: what was used stays used when a user changes plan', () => {
    const { limiter } = setUp(free, { plans: { pro } })
    limiter.consume('key', 2)
    expect(limiter.consume('key', 1, { plan: 'pro' })).toMatchObject({ allowed: true, remaining: 17 })
    // 3 are in use, at the pace of the last that was charged: until 1 is left takes 200 ms.
    expect(limiter.consume('key')).toMatchObject({ outcome: 'limited', limit: 2, remaining: 0, retryAfterMs: 200 })
  })

  test('peek and reserve by the plan, too', () => {
    const { limiter } = setUp(free, { plans: { pro } })
    limiter.consume('key', 20, { plan: 'pro' })
    expect(limiter.peek('key', 1, { plan: 'pro' }).retryAfterMs).toBe(100)
    expect(limiter.reserve('key', 1, { plan: 'pro' }).delayMs).toBe(100)
  })

  test('of several limits name them in any order', () => {
    const daily = fixedWindow({ limit: 3, window: '1d' })
    const { limiter } = setUp({ free, daily }, { plans: { more: { daily: fixedWindow({ limit: 9, window: '1d' }), free: pro } } })
    const { parts } = limiter.consume('key', 1, { plan: 'more' })
    expect([parts.free.remaining, parts.daily.remaining]).toEqual([19, 8])
  })
})

const STEADY: readonly Limit[] = [
  gcra({ rate: '5/s', burst: 5 }),
  tokenBucket({ capacity: 5, refill: '5/s' }),
  leakyBucket({ capacity: 5, leak: '5/s' }),
]
const EVERY: readonly Limit[] = [
  ...STEADY,
  fixedWindow({ limit: 5, window: '1s' }),
  slidingWindow({ limit: 5, window: '1s' }),
  slidingLog({ limit: 5, window: '1s' }),
]

describe('refund', () => {
  test.each(EVERY)('$type gets back what is in use', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 4)
    limiter.refund('key', 3)
    expect(limiter.peek('key', 0).remaining).toBe(4)
  })

  test.each(EVERY)('$type never rises above idle', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 2)
    limiter.refund('key', 5)
    limiter.refund('key', 5)
    expect(limiter.peek('key', 0)).toMatchObject({ remaining: 5, resetAfterMs: 0 })
  })

  test.each(EVERY)('$type takes no time: a call is given back by its decision', (limit) => {
    const { limiter } = setUp(limit)
    const { atMs } = limiter.consume('key', 2)
    expect(() => limiter.refund('key', 2, { atMs } as never)).toThrow('"atMs" is not an option: it has plan')
    expect(limiter.peek('key', 0).remaining).toBe(3)
  })

  test.each(EVERY)('$type does not create a key, nor does a refund of 0 do anything', (limit) => {
    const { limiter, store } = setUp(limit)
    limiter.refund('key', 5)
    expect(store.size).toBe(0)
    limiter.consume('key', 2)
    limiter.refund('key', 0)
    expect(limiter.peek('key', 0).remaining).toBe(3)
  })

  test.each([slidingWindow({ limit: 5, window: '1s' }), slidingLog({ limit: 5, window: '1s' })])(
    '$type gives the newest back first',
    (limit) => {
      const { limiter, clock } = setUp(limit)
      limiter.consume('key', 2)
      const { resetAfterMs } = limiter.peek('key', 0)
      clock.setMs(400)
      limiter.consume('key', 2)
      limiter.refund('key', 2)
      expect(limiter.peek('key', 0)).toMatchObject({ remaining: 3, resetAfterMs: resetAfterMs - 400 })
    },
  )
})

describe('cancel gives back what of the call still counts', () => {
  test.each(EVERY)('$type: all of it at once, and nothing a second time', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 1)
    const decision = limiter.consume('key', 3)
    decision.cancel()
    decision.cancel()
    decision.settle(2)
    expect(limiter.peek('key', 0).remaining).toBe(4)
  })

  test.each(EVERY)('$type: of a refused call nothing', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 3)
    limiter.consume('key', 3).cancel()
    expect(limiter.peek('key', 0).remaining).toBe(2)
  })

  test.each(STEADY)('$type gives nothing back once the charge has drained, and does a microsecond earlier', (limit) => {
    const givenBackAfterUs = (us: number): number => {
      const { limiter, clock } = setUp(limit)
      const past = limiter.consume('key', 5)
      clock.setUs(us)
      const { remaining } = limiter.consume('key', 4)
      past.cancel()
      return limiter.peek('key', 0).remaining - remaining
    }
    expect(givenBackAfterUs(999_999)).toBe(1)
    expect(givenBackAfterUs(1_000_000)).toBe(0)
  })

  test('a fixed window that has passed is past', () => {
    const { limiter, clock } = setUp(fixedWindow({ limit: 5, window: '1s' }))
    const past = limiter.consume('key', 2)
    clock.setMs(1_000)
    const present = limiter.consume('key', 2)
    past.settle(1)
    expect(limiter.peek('key', 0).remaining).toBe(3)
    present.settle(1)
    expect(limiter.peek('key', 0).remaining).toBe(4)
  })

  test('a sliding window gives it back to its slot, and not to another', () => {
    const { limiter, clock } = setUp(slidingWindow({ limit: 10, window: '1s', slots: 10 }))
    clock.setMs(50)
    const early = limiter.consume('key', 4)
    clock.setMs(250)
    const late = limiter.consume('key', 3)
    late.cancel()
    // Slot 0 still holds its 4 and is felt until slot 10 is over.
    expect(limiter.peek('key', 0)).toMatchObject({ remaining: 6, resetAfterMs: 850 })
    early.cancel()
    expect(limiter.peek('key', 0)).toMatchObject({ remaining: 10, resetAfterMs: 0 })
  })

  test('a slot that has left the sliding window is past', () => {
    const { limiter, clock } = setUp(slidingWindow({ limit: 10, window: '1s', slots: 10 }))
    const past = limiter.consume('key', 4)
    clock.setMs(1_100)
    limiter.consume('key', 3)
    past.cancel()
    expect(limiter.peek('key', 0).remaining).toBe(7)
  })

  test('a sliding log gives it back to its entry, and to nothing where there is none', () => {
    const { limiter, clock } = setUp(slidingLog({ limit: 5, window: '1s' }))
    const early = limiter.consume('key', 2)
    clock.setMs(400)
    const late = limiter.consume('key', 2)
    limiter.settle('key', 0, { of: { atMs: 123, parts: early.parts } })
    expect(limiter.peek('key', 0).remaining).toBe(1)
    early.cancel()
    expect(limiter.peek('key', 0)).toMatchObject({ remaining: 3, resetAfterMs: 1_000 })
    late.settle(1)
    expect(limiter.peek('key', 0)).toMatchObject({ remaining: 4, resetAfterMs: 1_000 })
  })

  test('an entry that has left the log is past', () => {
    const { limiter, clock } = setUp(slidingLog({ limit: 5, window: '1s' }))
    const past = limiter.consume('key', 2)
    clock.setMs(1_000)
    limiter.consume('key', 2)
    past.cancel()
    expect(limiter.peek('key', 0).remaining).toBe(3)
  })
})

describe('reset', () => {
  test('forgets the key and no other', () => {
    const { limiter, store } = setUp(gcra({ rate: '1/s', burst: 5 }))
    limiter.consume('one', 5)
    limiter.consume('two', 5)
    limiter.reset('one')
    expect(limiter.consume('one', 5).allowed).toBe(true)
    expect(limiter.consume('two').allowed).toBe(false)
    limiter.reset('one')
    limiter.reset('never seen')
    expect(store.size).toBe(1)
  })

  test('forgets all limits of a key, or those of the keys given', () => {
    const limit = gcra({ rate: '1/s', burst: 5 })
    const { limiter, store } = setUp({ user: limit, tenant: limit })
    limiter.consume({ user: 'u1', tenant: 't9' }, 5)
    limiter.reset({ user: 'u1', tenant: 'other' })
    expect(store.inspect('api', 'user', 'u1')).toBeUndefined()
    expect(store.inspect('api', 'tenant', 't9')).toBeDefined()
    limiter.reset('t9')
    expect(store.size).toBe(0)
  })
})

describe('update', () => {
  test('takes effect with the next call, and what was used stays used', () => {
    const { limiter } = setUp(tokenBucket({ capacity: 10, refill: '10/s' }))
    limiter.consume('key', 8)
    limiter.update(tokenBucket({ capacity: 20, refill: '1/s' }))
    expect(limiter.consume('key')).toMatchObject({ limit: 20, remaining: 11 })
    limiter.update(tokenBucket({ capacity: 5, refill: '1/s' }))
    // 9 stay in use: until 4 are left takes 5 s.
    expect(limiter.consume('key')).toMatchObject({ outcome: 'limited', limit: 5, remaining: 0, retryAfterMs: 5_000 })
  })

  test('of the pace takes effect with the next call that is charged: until then the key drains at its old pace', () => {
    const { limiter, store, clock } = setUp(gcra({ rate: '1/s', burst: 2 }))
    limiter.consume('key', 2)
    const held = store.inspect('api', 'default', 'key')
    limiter.update(gcra({ rate: '10/s', burst: 2 }))
    expect(limiter.peek('key')).toMatchObject({ retryAfterMs: 1_000, resetAfterMs: 2_000 })
    expect(limiter.consume('key')).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000, resetAfterMs: 2_000 })
    expect(store.inspect('api', 'default', 'key')).toEqual(held)
    clock.advanceMs(1_000)
    expect(limiter.consume('key')).toMatchObject({ outcome: 'allowed', remaining: 0, resetAfterMs: 200 })
    clock.advanceMs(100)
    expect(limiter.consume('key')).toMatchObject({ outcome: 'allowed', remaining: 0, resetAfterMs: 200 })
  })

  test('tryAcquire follows it', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 1 }))
    expect([limiter.tryAcquire('key'), limiter.tryAcquire('key')]).toEqual([true, false])
    limiter.update(gcra({ rate: '1/s', burst: 2 }))
    expect([limiter.tryAcquire('key'), limiter.tryAcquire('key')]).toEqual([true, false])
  })

  test('of several limits may name them in any order', () => {
    const { limiter } = setUp({ a: gcra({ rate: '1/s', burst: 1 }), b: fixedWindow({ limit: 1, window: '1s' }) })
    limiter.update({ b: fixedWindow({ limit: 7, window: '1s' }), a: gcra({ rate: '1/s', burst: 6 }) })
    expect(limiter.peek('key').parts).toMatchObject({ a: { limit: 6 }, b: { limit: 7 } })
  })

  test('leaves plans as they are, unless they are given', () => {
    const limit = (burst: number) => gcra({ rate: '1/s', burst })
    const { limiter } = setUp(limit(1), { plans: { pro: limit(2) } })
    limiter.update(limit(3))
    expect([limiter.peek('key').limit, limiter.peek('key', 1, { plan: 'pro' }).limit]).toEqual([3, 2])
    limiter.update(limit(4), { pro: limit(5) })
    expect([limiter.peek('key').limit, limiter.peek('key', 1, { plan: 'pro' }).limit]).toEqual([4, 5])
  })
})

describe('reserve', () => {
  const limit = gcra({ rate: '1/s', burst: 2 })

  test('takes at once what is there', () => {
    const { limiter } = setUp(limit)
    expect(limiter.reserve('key', 2)).toMatchObject({ allowed: true, delayMs: 0, remaining: 0 })
  })

  test('books ahead, each behind the one before, and says when to act', () => {
    const { limiter, clock } = setUp(limit)
    limiter.consume('key', 2)
    expect([1, 1, 2].map((cost) => limiter.reserve('key', cost).delayMs)).toEqual([1_000, 2_000, 4_000])
    clock.setMs(500)
    expect(limiter.reserve('key').delayMs).toBe(4_500)
    expect(limiter.consume('key')).toMatchObject({ outcome: 'limited', retryAfterMs: 5_500 })
  })

  test('takes nothing if acting would have to wait longer than maxWaitMs, and says how long until it would not', () => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 2)
    expect(limiter.reserve('key', 1, { maxWaitMs: 999.999 })).toMatchObject({ outcome: 'limited', delayMs: 0, retryAfterMs: 0.001 })
    expect(limiter.reserve('key', 1, { maxWaitMs: 1_000 })).toMatchObject({ outcome: 'allowed', delayMs: 1_000 })
  })

  test('books no further ahead than maxAheadMs, whatever is asked', () => {
    const { limiter } = setUp(limit, { maxAheadMs: 1_000 })
    limiter.consume('key', 2)
    expect(limiter.reserve('key').delayMs).toBe(1_000)
    expect(limiter.reserve('key', 1, { maxWaitMs: Number.POSITIVE_INFINITY })).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000 })
  })

  test('of more than the burst is impossible', () => {
    expect(setUp(limit).limiter.reserve('key', 3)).toMatchObject({ outcome: 'impossible', retryAfterMs: Number.POSITIVE_INFINITY })
  })

  test('a leaky bucket says how long the water before takes to leak', () => {
    const { limiter } = setUp(leakyBucket({ capacity: 2, leak: '1/s' }))
    expect([1, 1].map((cost) => limiter.consume('key', cost).delayMs)).toEqual([0, 1_000])
    expect(limiter.reserve('key').delayMs).toBe(2_000)
  })

  test('a leaky bucket is bounded by maxWaitMs as a queue: what counts is the water before', () => {
    const { limiter } = setUp(leakyBucket({ capacity: 10, leak: '1/s' }))
    limiter.consume('key', 5)
    expect(limiter.reserve('key', 1, { maxWaitMs: 4_999.999 })).toMatchObject({ outcome: 'limited', retryAfterMs: 0.001 })
    expect(limiter.reserve('key', 1, { maxWaitMs: 5_000 })).toMatchObject({ outcome: 'allowed', delayMs: 5_000 })
  })

  test('maxWaitMs is exact to the microsecond', () => {
    const { limiter } = setUp(gcra({ rate: '1/1001us', burst: 1 }))
    limiter.consume('key')
    const { retryAfterMs } = limiter.peek('key')
    expect(retryAfterMs).toBe(1.001)
    expect(limiter.reserve('key', 1, { maxWaitMs: retryAfterMs }).allowed).toBe(true)
  })
})

describe('cancel of a reservation', () => {
  const bookable: readonly Limit[] = [
    gcra({ rate: '1/s', burst: 2 }),
    tokenBucket({ capacity: 2, refill: '1/s' }),
    leakyBucket({ capacity: 2, leak: '1/s' }),
  ]

  test.each(bookable)('$type: before its time the cost is given back', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 2)
    const turn = limiter.reserve('key')
    expect(limiter.peek('key').retryAfterMs).toBe(2_000)
    turn.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_000)
  })

  test.each(bookable)('$type: a second time it does nothing', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 2)
    const turn = limiter.reserve('key')
    turn.cancel()
    turn.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_000)
  })

  test.each(bookable)('$type: at its time what still counts of it is given back', (limit) => {
    const { limiter, clock } = setUp(limit)
    limiter.consume('key', 2)
    const turn = limiter.reserve('key')
    clock.setMs(turn.delayMs)
    const before = limiter.peek('key', 2).retryAfterMs
    turn.cancel()
    expect(limiter.peek('key', 2).retryAfterMs).toBe(before - 1_000)
  })

  test.each(bookable)('$type: once it has drained it is too late', (limit) => {
    const { limiter, clock } = setUp(limit)
    limiter.consume('key', 2)
    const turn = limiter.reserve('key')
    clock.setMs(2_500)
    limiter.consume('key', 1)
    const before = limiter.peek('key', 2).retryAfterMs
    turn.cancel()
    expect(limiter.peek('key', 2).retryAfterMs).toBe(before - 500)
    clock.setMs(3_000)
    const other = limiter.reserve('key')
    clock.setMs(30_000)
    limiter.consume('key', 2)
    other.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_000)
  })

  test.each(bookable)('$type: a microsecond before its time all of it', (limit) => {
    const { limiter, clock } = setUp(limit)
    limiter.consume('key', 2)
    const turn = limiter.reserve('key')
    clock.setUs(Math.round(turn.delayMs * 1000) - 1)
    const before = limiter.peek('key', 2).retryAfterMs
    turn.cancel()
    expect(limiter.peek('key', 2).retryAfterMs).toBeCloseTo(Math.max(0, before - 1_000), 6)
  })

  test('leaves nothing charged on the limits that had room', () => {
    const limits = {
      pace: gcra({ rate: '1/s', burst: 1 }),
      spare: tokenBucket({ capacity: 10, refill: '1/s' }),
      daily: fixedWindow({ limit: 10, window: '1d' }),
      recent: slidingLog({ limit: 10, window: '1h' }),
    }
    const { limiter } = setUp(limits)
    limiter.consume('key')
    const turn = limiter.reserve('key')
    expect(turn.delayMs).toBe(1_000)
    turn.cancel()
    const { parts } = limiter.peek('key', 0)
    expect(Object.values(parts).map(({ remaining }) => remaining)).toEqual([0, 9, 9, 9])
  })

  test('in a queue gives back only what nobody stands behind', () => {
    const { limiter } = setUp(leakyBucket({ capacity: 10, leak: '1/s' }))
    const [, second, third] = [1, 1, 1].map((cost) => limiter.reserve('key', cost))
    second?.cancel()
    expect(limiter.peek('key', 0).remaining).toBe(7)
    third?.cancel()
    expect(limiter.peek('key', 0).remaining).toBe(8)
  })

  test('is not confused by a listener that uses the limiter', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 1 }), { onDecision: () => limiter.peek('other') })
    limiter.consume('key')
    limiter.reserve('key').cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_000)
  })

  test('works for a plan that was dropped since', () => {
    const limit = gcra({ rate: '1/s', burst: 1 })
    const { limiter } = setUp(limit, { plans: { pro: limit } })
    limiter.consume('key', 1, { plan: 'pro' })
    const turn = limiter.reserve('key', 1, { plan: 'pro' })
    limiter.update(limit, {} as never)
    turn.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_000)
  })

  test.each(bookable)('$type: those who booked behind it keep their times', (limit) => {
    const { limiter } = setUp(limit)
    limiter.consume('key', 2)
    const first = limiter.reserve('key', 2)
    limiter.reserve('key', 1)
    first.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(3_000)
  })

  test('of a refused reservation does nothing', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 2 }))
    limiter.consume('key', 2)
    limiter.reserve('key', 1, { maxWaitMs: 0 }).cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_000)
  })

  test('after an update gives its cost back, until the key was charged at the new pace', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 2 }))
    limiter.consume('key', 2)
    const first = limiter.reserve('key')
    const second = limiter.reserve('key')
    limiter.update(gcra({ rate: '2/s', burst: 2 }))
    second.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(2_000)
    limiter.charge('key', 1)
    // 4 in use, at 2/s from now on.
    first.cancel()
    expect(limiter.peek('key').retryAfterMs).toBe(1_500)
  })

  test('gives back to every limit that it booked', () => {
    const { limiter } = setUp({ a: gcra({ rate: '1/s', burst: 1 }), b: tokenBucket({ capacity: 1, refill: '1/s' }) })
    limiter.consume('key')
    limiter.reserve('key').cancel()
    expect(limiter.peek('key').parts).toMatchObject({ a: { retryAfterMs: 1_000 }, b: { retryAfterMs: 1_000 } })
  })
})

describe('windows cannot be booked ahead: there reserve is consume', () => {
  const windows: readonly Limit[] = [
    fixedWindow({ limit: 2, window: '1s' }),
    slidingWindow({ limit: 2, window: '1s' }),
    slidingLog({ limit: 2, window: '1s' }),
  ]

  test.each(windows)('$type', (limit) => {
    const reserving = setUp(limit).limiter
    const consuming = setUp(limit).limiter
    for (const cost of [1, 2, 1, 1, 3]) {
      const decision = reserving.reserve('key', cost, { maxWaitMs: 5_000 })
      expect(decision).toEqual(consuming.consume('key', cost))
      expect(decision.delayMs).toBe(0)
    }
  })

  test.each(windows)('$type: cancel gives back as it does of any call', (limit) => {
    const { limiter } = setUp(limit)
    limiter.reserve('key', 2).cancel()
    expect(limiter.peek('key', 0).remaining).toBe(2)
  })

  test('beside a limit that can be booked, both must agree', () => {
    const { limiter, clock } = setUp({ pace: gcra({ rate: '1/s', burst: 1 }), hourly: fixedWindow({ limit: 2, window: '1h' }) })
    limiter.consume('key')
    expect(limiter.reserve('key')).toMatchObject({ allowed: true, delayMs: 1_000 })
    clock.setMs(500)
    expect(limiter.reserve('key')).toMatchObject({ outcome: 'limited', policy: 'hourly', retryAfterMs: 3_599_500 })
  })
})

describe('listeners', () => {
  const limit = gcra({ rate: '1/s', burst: 2 })
  const heard: DecisionEvent[] = []
  const listen = (event: unknown) => heard.push(event as DecisionEvent)
  afterEach(() => {
    unsubscribe('sluice:decision', listen)
    heard.length = 0
  })

  const brief = ({ limiter, verb, key, cost, plan, decision }: DecisionEvent) => [limiter, verb, key, cost, plan, decision.outcome]

  function everyVerb(limiter: ReturnType<typeof setUp<typeof limit, 'pro'>>['limiter']): void {
    limiter.tryAcquire('key')
    limiter.consume('key', 1, { plan: 'pro' })
    limiter.tryAcquire('key')
    limiter.consume('key', 3)
    limiter.reserve('key', 1, { maxWaitMs: 1_000 })
    limiter.reserve('key', 1, { maxWaitMs: 1_000 })
    // What takes nothing is told to nobody.
    limiter.peek('key')
    limiter.refund('key')
    limiter.reset('key')
  }

  const told = [
    ['api', 'tryAcquire', 'key', 1, undefined, 'allowed'],
    ['api', 'consume', 'key', 1, 'pro', 'allowed'],
    ['api', 'tryAcquire', 'key', 1, undefined, 'limited'],
    ['api', 'consume', 'key', 3, undefined, 'impossible'],
    ['api', 'reserve', 'key', 1, undefined, 'allowed'],
    ['api', 'reserve', 'key', 1, undefined, 'limited'],
  ]

  test('onDecision hears of every take and every refusal, and of nothing else', () => {
    everyVerb(setUp(limit, { plans: { pro: limit }, onDecision: listen }).limiter)
    expect(heard.map(brief)).toEqual(told)
  })

  test("Node's diagnostics channel 'sluice:decision' hears the same, without the limiter's knowing", () => {
    const { limiter } = setUp(limit, { plans: { pro: limit } })
    limiter.consume('before')
    subscribe('sluice:decision', listen)
    everyVerb(limiter)
    expect(heard.map(brief)).toEqual(told)
    unsubscribe('sluice:decision', listen)
    limiter.consume('after')
    expect(heard).toHaveLength(told.length)
  })

  test('a listener that came later hears the same, until it is ended', () => {
    const { limiter } = setUp(limit, { plans: { pro: limit } })
    limiter.consume('before')
    // As a method of an object, which it may need.
    const listener = {
      heard,
      onDecision: function (event: DecisionEvent) {
        this.heard.push(event)
      },
    }
    const end = limiter.listen(listener)
    everyVerb(limiter)
    expect(heard.map(brief)).toEqual(told)
    end()
    limiter.consume('after')
    expect(heard).toHaveLength(told.length)
  })

  test('the event has the keys and costs as they were given, and the decision that the caller gets', () => {
    const { limiter } = setUp({ user: limit, tenant: limit }, { onDecision: listen })
    const key = { user: 'u1', tenant: 't9' }
    const cost = { user: 1, tenant: 2 }
    const decision = limiter.consume(key, cost)
    expect(heard).toEqual([{ limiter: 'api', verb: 'consume', key, cost, plan: undefined, decision, tookMs: 0 }])
  })

  test('being listened to changes no decision', () => {
    const alone = setUp(limit).limiter
    const heardOf = setUp(limit, { onDecision: listen }).limiter
    for (const cost of [1, 1, 1, 0, 3]) {
      expect(heardOf.consume('key', cost)).toEqual(alone.consume('key', cost))
      expect(heardOf.tryAcquire('other', cost)).toBe(alone.tryAcquire('other', cost))
    }
  })

  test('an onDecision that throws is warned of once, and fails no call', async () => {
    const warnings: Error[] = []
    const warned = (warning: Error) => warnings.push(warning)
    process.on('warning', warned)
    const onDecision = () => {
      throw new Error('the log is full')
    }
    const { limiter } = setUp(limit, { onDecision })
    limiter.listen({ onDecision: listen })
    subscribe('sluice:decision', listen)
    expect(limiter.consume('key').allowed).toBe(true)
    expect(limiter.tryAcquire('other')).toBe(true)
    expect((await limiter.acquire('third')).allowed).toBe(true)
    expect(createLimiter(limit, { clock: fakeClock(), onDecision }).tryAcquire('key')).toBe(true)
    await new Promise(setImmediate)
    process.off('warning', warned)
    expect(heard.length).toBe(7)
    expect(warnings).toEqual([
      expect.objectContaining({
        code: 'SLUICE_LISTENER',
        message: expect.stringMatching(/^onDecision of .* failed: Error: the log is full$/),
      }),
    ])
  })

  test('a listener may be an instance of a class, with fields of its own', () => {
    class Audit {
      online = true
      refused = 0
      onDecision({ decision }: DecisionEvent) {
        if (!decision.allowed) this.refused += 1
      }
    }
    const audit = new Audit()
    const { limiter } = setUp(limit)
    limiter.listen(audit)
    for (let k = 0; k < 3; k++) limiter.consume('key')
    expect(audit.refused).toBe(1)
  })

  test('an async listener that fails is warned of: it is neither an unhandled rejection nor the concern of the caller', async () => {
    const warnings: Error[] = []
    const unhandled: unknown[] = []
    const warned = (warning: Error) => warnings.push(warning)
    const rejected = (reason: unknown) => unhandled.push(reason)
    process.on('warning', warned)
    process.on('unhandledRejection', rejected)
    const fails = async () => {
      throw new Error('the log is full')
    }
    const store = asyncStore({ shared: false, apply: () => Promise.reject(new Error('no connection')) })
    const { limiter } = setUp(limit, { onDecision: fails })
    const remote = createLimiter(limit, { store, onHealth: fails, clock: fakeClock() })
    remote.listen({ onFailure: fails })
    expect(limiter.consume('key').allowed).toBe(true)
    await expect(remote.consume('key')).rejects.toMatchObject({ code: 'STORE' })
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate)
    process.off('warning', warned)
    process.off('unhandledRejection', rejected)
    expect(unhandled).toEqual([])
    const said = (name: string) => ({
      code: 'SLUICE_LISTENER',
      message: expect.stringMatching(`^${name} of .* failed: Error: the log is full$`),
    })
    expect(warnings).toHaveLength(3)
    expect(warnings).toEqual(
      expect.arrayContaining(['onDecision', 'onHealth', 'onFailure'].map((name) => expect.objectContaining(said(name)))),
    )
    remote.close()
  })

  test('who listens twice and ends one of the two still listens', () => {
    const { limiter } = setUp(limit)
    const listener = { onDecision: listen }
    const stop = limiter.listen(listener)
    limiter.listen(listener)
    stop()
    stop()
    limiter.consume('key')
    expect(heard.length).toBe(1)
  })

  test.each([
    [null, 'listener null must be an object with onDecision, onFailure, onHealth, onRelease'],
    ['onDecision', 'listener "onDecision" must be an object with onDecision, onFailure, onHealth, onRelease'],
    [{ onFailure: 5 }, 'onFailure 5 must be a function'],
    [{ onDecision: listen, onHealth: null }, 'onHealth null must be a function'],
    [{ onDecison: listen }, 'listener "onDecison" is not told anything: it has onDecision, onFailure, onHealth, onRelease'],
    [
      { onDecision: listen, onhealth: listen },
      'listener "onhealth" is not told anything: it has onDecision, onFailure, onHealth, onRelease',
    ],
    [{}, 'listener {} must have one of onDecision, onFailure, onHealth, onRelease'],
    [{ decision: listen, onDecision: undefined }, 'listener {} must have one of onDecision, onFailure, onHealth, onRelease'],
  ])('%j is refused and leaves the limiter as it was', (listener, message) => {
    const { limiter } = setUp(limit, { onDecision: listen })
    expect(() => limiter.listen(listener as never)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
    expect(limiter.consume('key').allowed).toBe(true)
  })
})

describe('close', () => {
  test.each(['close', Symbol.dispose] as const)('%s ends every verb with CLOSED', (end) => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 2 }))
    limiter.tryAcquire('key')
    limiter[end]()
    const verbs = [limiter.tryAcquire, limiter.consume, limiter.peek, limiter.reserve, limiter.refund, limiter.reset]
    for (const verb of verbs as ((key: string) => unknown)[])
      expect(() => verb.call(limiter, 'key')).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    expect(() => limiter.update(gcra({ rate: '1/s', burst: 2 }))).toThrow(expect.objectContaining({ code: 'CLOSED' }))
    expect(() => limiter[end]()).not.toThrow()
  })

  test('leaves the store to others', () => {
    const { limiter, store, clock } = setUp(gcra({ rate: '1/s', burst: 2 }))
    limiter.consume('key')
    limiter.close()
    const successor = createLimiter(gcra({ rate: '1/s', burst: 2 }), { name: 'api', store, clock })
    expect(successor.peek('key', 0).remaining).toBe(1)
  })
})

describe('a name', () => {
  test('keeps limiters apart in one store, or makes them one', () => {
    const store = memoryStore()
    const clock = fakeClock()
    const limit = gcra({ rate: '1/s', burst: 1 })
    const [a, sameAsA, b, unnamed] = [{ name: 'a' }, { name: 'a' }, { name: 'b' }, {}].map((options) =>
      createLimiter(limit, { store, clock, ...options }),
    )
    expect(a?.tryAcquire('key')).toBe(true)
    expect(sameAsA?.tryAcquire('key')).toBe(false)
    expect(b?.tryAcquire('key')).toBe(true)
    expect(unnamed?.tryAcquire('key')).toBe(true)
  })
})

describe('a decision', () => {
  test('says when it was made, to the microsecond', () => {
    const { limiter, clock } = setUp(gcra({ rate: '1/s', burst: 2 }))
    clock.setUs(1_234_567)
    expect(limiter.consume('key').atMs).toBe(1_234.567)
    expect(limiter.peek('key').atMs).toBe(1_234.567)
  })

  test('says how long until every limit is idle again', () => {
    const { limiter, clock } = setUp({ pace: gcra({ rate: '1/s', burst: 5 }), log: slidingLog({ limit: 5, window: '10s' }) })
    const { resetAfterMs, parts, policy } = limiter.consume('key', 2)
    expect([parts.pace.resetAfterMs, parts.log.resetAfterMs]).toEqual([2_000, 10_000])
    expect({ resetAfterMs, policy }).toEqual({ resetAfterMs: 10_000, policy: 'pace' })
    clock.setUs(9_999_999)
    expect(limiter.peek('key').resetAfterMs).toBe(0.001)
    clock.setUs(10_000_000)
    expect(limiter.peek('key').resetAfterMs).toBe(0)
  })

  test('rounds a wait up to the microsecond', () => {
    const { limiter } = setUp(gcra({ rate: '3/s', burst: 1 }))
    limiter.consume('key')
    expect(limiter.consume('key').retryAfterMs).toBe(333.334)
  })

  test('stays as it is when others follow', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 5 }))
    const first = limiter.consume('key')
    const copy = structuredClone(first)
    limiter.consume('key', 3)
    expect(first).toEqual(copy)
  })

  test('peek answers what consume would, but for what consume then takes', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 2 }))
    for (const cost of [1, 2, 3, 1, 1]) {
      const asked = limiter.peek('key', cost)
      const { outcome, retryAfterMs, remaining } = limiter.consume('key', cost)
      expect(asked).toMatchObject({ outcome, retryAfterMs, remaining: remaining + (outcome === 'allowed' ? cost : 0) })
    }
  })

  test('is plain JSON; an endless wait is null there', () => {
    const { limiter } = setUp({ pace: gcra({ rate: '1/s', burst: 2 }) })
    const part = { limit: 2, remaining: 1, retryAfterMs: 0, resetAfterMs: 1_000, delayMs: 0 }
    expect(JSON.parse(JSON.stringify(limiter.consume('key')))).toEqual({
      outcome: 'allowed',
      allowed: true,
      ...part,
      atMs: 0,
      policy: 'pace',
      parts: { pace: { outcome: 'allowed', ...part } },
      degraded: false,
    })
    const impossible = JSON.parse(JSON.stringify(limiter.consume('key', 3)))
    expect(impossible).toMatchObject({ outcome: 'impossible', retryAfterMs: null, parts: { pace: { retryAfterMs: null } } })
  })

  test('of a reservation is the same JSON', () => {
    const { limiter } = setUp(gcra({ rate: '1/s', burst: 2 }))
    const peeked = Object.keys(JSON.parse(JSON.stringify(limiter.peek('key'))))
    expect(Object.keys(JSON.parse(JSON.stringify(limiter.reserve('key'))))).toEqual(peeked)
  })
})
