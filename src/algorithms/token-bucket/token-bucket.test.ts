import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { SluiceError } from '../../errors.ts'
import { COMPILE, type EncodedState } from '../algorithm.ts'
import type { LevelRule } from '../level.ts'
import { decodeTokenBucket, type TokenBucketOptions, tokenBucket, tokenBucketAlgorithm } from './token-bucket.ts'

const SECOND = 1_000_000

function ruleOf(options: TokenBucketOptions, maxAheadUs = 0): LevelRule {
  return tokenBucket(options)[COMPILE](maxAheadUs) as LevelRule
}

class Key extends HeldKey {
  get hash(): EncodedState {
    return this.state
  }
}

describe('the number line of a capacity of 2 at 1/s', () => {
  test('allows two at 0.1 s, refuses the third for a second, and allows the next at 1.5 s', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }))
    expect([key.take(100_000), key.remaining(100_000)]).toEqual([0, 1])
    expect([key.take(100_000), key.remaining(100_000)]).toEqual([0, 0])
    expect([key.take(100_000), key.remaining(100_000)]).toEqual([SECOND, 0])
    expect([key.take(1_500_000), key.remaining(1_500_000)]).toEqual([0, 0])
    expect(key.resetUs(1_500_000)).toBe(1_600_000)
  })

  test('keeps the 0.4 tokens that are left at 1.5 s as a part', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(100_000, 2)
    key.take(1_500_000)
    expect(key.hash).toEqual({ tokens: '0', part: '400000', time: '1500000', limit: '2 1 1000000' })
  })

  test('limits one microsecond before the wait is over and allows at its end', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    expect([key.take(SECOND - 1), key.take(SECOND)]).toEqual([1, 0])
  })

  test('waits for as many as are asked for', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    expect([key.waitUs(0, 1), key.waitUs(0, 2), key.waitUs(1_500_000, 2)]).toEqual([SECOND, 2 * SECOND, 500_000])
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const [once, twice] = [new Key(ruleOf({ capacity: 5, refill: '7/s' })), new Key(ruleOf({ capacity: 5, refill: '7/s' }))]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.s).toEqual(twice.s)
  })

  test('is as if never used once its time to reset is over', () => {
    const key = new Key(ruleOf({ capacity: 3, refill: '7/s' }))
    key.take(0, 2)
    const idleUs = key.resetUs(0)
    expect(idleUs).toBe(285_715)
    expect([key.resetUs(idleUs - 1), key.resetUs(idleUs), key.remaining(idleUs)]).toEqual([1, 0, 3])
  })

  test('never holds more tokens than its capacity', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0)
    key.take(1_000 * SECOND)
    expect(key.hash).toEqual({ tokens: '1', part: '0', time: '1000000000', limit: '2 1 1000000' })
  })
})

test('7 per second is exact: the k-th token comes after k / 7 of a second, rounded up, and nothing adds up over 10,000 of them', () => {
  const key = new Key(ruleOf({ capacity: 2, refill: '7/s' }))
  key.take(0, 2)
  for (let k = 1; k <= 10_000; k++) {
    const nowUs = Math.ceil((k * SECOND) / 7)
    expect([key.take(nowUs - 1), key.take(nowUs)]).toEqual([1, 0])
  }
})

describe('the hash in Redis', () => {
  test('shows the tokens that are there, not the ones that are missing', () => {
    const key = new Key(ruleOf({ capacity: 20, refill: '10/s' }))
    key.take(5 * SECOND, 3)
    expect(key.hash).toEqual({ tokens: '17', part: '0', time: '5000000', limit: '20 1 100000' })
  })

  test('shows tokens below zero while some are booked ahead', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }, 60 * SECOND))
    key.reserve(0, 5)
    expect(key.hash).toEqual({ tokens: '-3', part: '0', time: '0', limit: '2 1 1000000' })
    key.reserve(250_000, 1)
    expect(key.hash).toEqual({ tokens: '-4', part: '250000', time: '250000', limit: '2 1 1000000' })
  })

  test.each([
    { tokens: '0', part: '400000', time: '1500000', limit: '2 1 1000000' },
    { tokens: '2', part: '0', time: '0', limit: '2 1 1000000' },
    { tokens: '-4', part: '250000', time: '250000', limit: '2 1 1000000' },
    { tokens: '999999', part: '86399999999', time: '1763200000000000', limit: '1000000 999983 86400000000' },
  ])('reads back as it was written: %o', (hash) => {
    const s = Float64Array.of(-7, 0, 0, 0, -7)
    const numbers = decodeTokenBucket(hash, s, 1)
    const rule = tokenBucketAlgorithm.ruleOf(numbers.split(' ').map(Number), 0)
    expect(tokenBucketAlgorithm.encode(rule, s, 1)).toEqual(hash)
    expect([s[0], s[4]]).toEqual([-7, -7])
  })

  test.each([
    'hello',
    {},
    { tokens: '1', part: '0', time: '5' },
    { tokens: '1', time: '5', limit: '2 1 1000' },
    { tokens: '1.5', part: '0', time: '5', limit: '2 1 1000' },
    { tokens: '1', part: '-1', time: '5', limit: '2 1 1000' },
    { tokens: '1', part: '0', time: 'now', limit: '2 1 1000' },
    { tokens: '1', part: '0', time: '5', limit: '2 1' },
    { water: '1', part: '0', time: '5', limit: '2 1 1000' },
  ])('is refused if the token bucket did not write it: %j', (foreign) => {
    const call = () => decodeTokenBucket(foreign as EncodedState, new Float64Array(3), 0)
    expect(call).toThrow(SluiceError)
    expect(call).toThrow(/^tokenBucket state .+ must be a hash of tokens, part, time and limit$/)
  })
})

describe('a clock that steps back', () => {
  const rule = ruleOf({ capacity: 2, refill: '1/s' })

  test('by at most one window finds time standing still: used stays used, and the state is not written', () => {
    const key = new Key(rule, 100 * SECOND)
    key.take(100 * SECOND, 2)
    const before = key.s.slice()
    for (const stepUs of [1, SECOND, 2 * SECOND]) {
      const nowUs = 100 * SECOND - stepUs
      expect([key.settle(nowUs), key.remaining(nowUs), key.waitUs(nowUs)]).toEqual([false, 0, stepUs + SECOND])
    }
    expect(key.s).toEqual(before)
  })

  test('by more than one window finds the state dated to now, with what was used, and that is written', () => {
    const key = new Key(rule, 100 * SECOND)
    key.take(100 * SECOND)
    const nowUs = 98 * SECOND - 1
    expect([key.settle(nowUs), key.s]).toEqual([true, Float64Array.of(nowUs + SECOND, 0, nowUs)])
    expect([key.remaining(nowUs), key.resetUs(nowUs)]).toEqual([1, SECOND])
    expect(key.settle(nowUs)).toBe(false)
  })

  test('and takes meanwhile are charged at the time that stands still', () => {
    const key = new Key(rule, 100 * SECOND)
    key.take(100 * SECOND)
    expect([key.take(99 * SECOND), key.s]).toEqual([0, Float64Array.of(102 * SECOND, 0, 100 * SECOND)])
    expect(key.take(99 * SECOND)).toBe(2 * SECOND)
  })

  test('and a leap forward is just time passing', () => {
    const key = new Key(rule)
    key.take(0, 2)
    expect([key.settle(1e9 * SECOND), key.remaining(1e9 * SECOND)]).toEqual([false, 2])
  })
})

test('a level above what may be booked ahead is cut down to it', () => {
  const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }, 60 * SECOND))
  key.reserve(0, 40)
  expect([key.settle(0, ruleOf({ capacity: 2, refill: '1/s' }, 3 * SECOND)), key.s]).toEqual([true, Float64Array.of(5 * SECOND, 0, 0)])
})

test.each([40 * SECOND, 5_500_001])('the short form cuts a level that drains in %i microseconds down too', (drainedInUs) => {
  const rule = ruleOf({ capacity: 2, refill: '1/s' }, 3.5 * SECOND)
  const s = Float64Array.of(drainedInUs, 0, 0)
  expect([tokenBucketAlgorithm.tryTake(rule, s, 0, 0, 1), s]).toEqual([false, Float64Array.of(5_500_000, 0, 0)])
})

test.each([
  { above: 'a part', tatUs: SECOND + 285_714, part: 3 },
  { above: 'far', tatUs: SECOND + 400_000, part: 0 },
])('the short form cuts a level that was $above above the ceiling when it was written like the long one', ({ tatUs, part }) => {
  const rule = ruleOf({ capacity: 2, refill: '7/s' })
  for (const nowUs of [SECOND, SECOND + 1, SECOND + 142_857, SECOND + 142_858, SECOND + 200_000]) {
    const [short, long] = [Float64Array.of(tatUs, part, SECOND), Float64Array.of(tatUs, part, SECOND)]
    tokenBucketAlgorithm.settle(rule, rule, long, 0, nowUs)
    const fits = tokenBucketAlgorithm.waitUs(rule, long, 0, nowUs, 1) === 0
    if (fits) tokenBucketAlgorithm.take(rule, long, 0, nowUs, 1)
    expect([tokenBucketAlgorithm.tryTake(rule, short, 0, nowUs, 1), short]).toEqual([fits, long])
  }
})

describe('changed numbers', () => {
  test('keep what was used, not what was left', () => {
    const key = new Key(ruleOf({ capacity: 10, refill: '1/s' }))
    key.take(0, 4)
    expect(key.settle(0, ruleOf({ capacity: 5, refill: '2/s' }))).toBe(true)
    expect(key.hash).toEqual({ tokens: '1', part: '0', time: '0', limit: '5 1 500000' })
  })

  test('give no free refill when the capacity grows', () => {
    const key = new Key(ruleOf({ capacity: 5, refill: '1/s' }))
    key.take(0, 5)
    key.settle(0, ruleOf({ capacity: 8, refill: '1/s' }))
    expect(key.remaining(0)).toBe(3)
  })

  test('clamp to the new capacity when it shrinks, so that no key is stuck', () => {
    const key = new Key(ruleOf({ capacity: 100, refill: '1/s' }))
    key.take(0, 100)
    key.settle(0, ruleOf({ capacity: 5, refill: '1/s' }))
    expect([key.remaining(0), key.waitUs(0), key.resetUs(0)]).toEqual([0, SECOND, 5 * SECOND])
  })

  test('drain at the old pace until the first contact', () => {
    const key = new Key(ruleOf({ capacity: 10, refill: '1/s' }))
    key.take(0, 4)
    key.settle(SECOND, ruleOf({ capacity: 10, refill: '1/d' }))
    expect(key.remaining(SECOND)).toBe(7)
  })

  test('round what was used up to the new unit', () => {
    const key = new Key(ruleOf({ capacity: 10, refill: '1/3us' }))
    key.take(0)
    // Two thirds of a permit are left to drain. Over 7 microseconds that is 4 2/3 of 7 parts, so 5.
    key.settle(1, ruleOf({ capacity: 10, refill: '1/7us' }))
    expect([key.s, key.resetUs(1)]).toEqual([Float64Array.of(6, 0, 1), 5])
  })

  test('round what was used up to a whole token where that is the unit', () => {
    const key = new Key(ruleOf({ capacity: 10, refill: '1/3us' }))
    key.take(0)
    key.settle(1, ruleOf({ capacity: 10, refill: '1/us' }))
    expect(key.hash).toEqual({ tokens: '9', part: '0', time: '1', limit: '10 1 1' })
  })

  test('that are the same numbers change nothing', () => {
    const key = new Key(ruleOf({ capacity: 5, refill: '10/s' }))
    key.take(0)
    expect(key.settle(0, ruleOf({ capacity: 5, refill: '100/10s' }, SECOND))).toBe(false)
  })
})

describe('giving back', () => {
  test('returns the tokens, never above the capacity', () => {
    const key = new Key(ruleOf({ capacity: 5, refill: '7/s' }))
    key.take(0, 3)
    expect([key.give(0, 1), key.remaining(0)]).toEqual([true, 3])
    expect([key.give(0, 5), key.remaining(0), key.resetUs(0)]).toEqual([true, 5, 0])
    expect(key.give(0, 1)).toBe(false)
  })

  test('of a charge one window old does nothing: it has been refilled', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0)
    key.take(SECOND)
    key.take(2 * SECOND - 1)
    expect(key.give(2 * SECOND, 1, 0)).toBe(false)
    expect(key.give(2 * SECOND - 1, 1, 0)).toBe(true)
  })

  test('cancels the last reservation whole', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }, 60 * SECOND))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    expect([key.cancel(0, 2, ticket), key.s]).toEqual([true, Float64Array.of(2 * SECOND, 0, 0)])
  })

  test('cancels an earlier reservation minus what was reserved after it', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }, 60 * SECOND))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    key.reserve(0)
    expect([key.cancel(0, 2, ticket), key.s]).toEqual([true, Float64Array.of(4 * SECOND, 0, 0)])
  })

  test('cancels nothing when as much was reserved after it', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }, 60 * SECOND))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    key.reserve(0, 2)
    expect([key.cancel(0, 2, ticket), key.s]).toEqual([false, Float64Array.of(6 * SECOND, 0, 0)])
  })

  test('cancels nothing once the time of the reservation has come', () => {
    const key = new Key(ruleOf({ capacity: 2, refill: '1/s' }, 60 * SECOND))
    key.take(0, 2)
    const ticket = key.reserve(0, 1)
    expect(key.cancel(SECOND, 1, ticket)).toBe(false)
    expect(key.cancel(SECOND - 1, 1, ticket)).toBe(true)
  })

  test('cancels exactly while the level drains', () => {
    const key = new Key(ruleOf({ capacity: 1, refill: '7/s' }, 60 * SECOND))
    key.take(0)
    const other = new Key(ruleOf({ capacity: 1, refill: '7/s' }, 60 * SECOND))
    other.take(0)
    const ticket = key.reserve(10, 4)
    expect(key.cancel(12_345, 4, ticket)).toBe(true)
    expect([key.waitUs(12_345), key.resetUs(12_345)]).toEqual([other.waitUs(12_345), other.resetUs(12_345)])
  })
})

describe('a ticket', () => {
  const rule = ruleOf({ capacity: 3, refill: '7/s' }, 60 * SECOND)
  /** A key that at 12,345 microseconds has less than one token missing. */
  const used = () => {
    const key = new Key(rule)
    key.take(0)
    return key
  }

  test.each([1, 2, 3, 4, 10])('of %i tells when its reservation may act: when it would have fitted', (cost) => {
    const key = used()
    const waitUs = key.waitUs(12_345, cost)
    const dueUs = tokenBucketAlgorithm.dueUs?.(rule, key.reserve(12_345, cost), cost) as number
    expect(Math.max(dueUs, 12_345)).toBe(12_345 + waitUs)
  })

  test('of what fits exactly may act at once', () => {
    expect(tokenBucketAlgorithm.dueUs?.(rule, new Key(rule).reserve(10, 3), 3)).toBe(10)
  })

  test.each([1, 2, 3, 4, 5])('without its last %i permits is that of a smaller reservation', (cost) => {
    const smaller = used()
    smaller.reserve(12_345, 5 - cost)
    expect(tokenBucketAlgorithm.shorten?.(rule, used().reserve(12_345, 5), cost)).toEqual(smaller.s)
  })
})

describe('the factory', () => {
  test('returns frozen plain data that JSON carries', () => {
    const limit = tokenBucket({ capacity: 20, refill: '10/s' })
    expect(Object.isFrozen(limit)).toBe(true)
    expect(JSON.parse(JSON.stringify(limit))).toEqual({ type: 'tokenBucket', capacity: 20, refill: '10/s' })
  })

  test('makes the same limit again from its own JSON', () => {
    const limit = tokenBucket({ capacity: 20, refill: { permits: 5, per: '10s' } })
    const again = tokenBucket(JSON.parse(JSON.stringify(limit)))
    expect(again[COMPILE](0)).toEqual(limit[COMPILE](0))
    expect(JSON.stringify(again)).toBe(JSON.stringify(limit))
  })

  test('hides the symbol from keys, spreads and logs', () => {
    const limit = tokenBucket({ capacity: 20, refill: '10/s' })
    expect(Object.keys(limit)).toEqual(['type', 'capacity', 'refill'])
    expect(Object.getOwnPropertySymbols({ ...limit })).toEqual([])
    expect(COMPILE in limit).toBe(true)
  })

  test('compiles to lowest terms, so that equal limits have equal numbers', () => {
    expect(ruleOf({ capacity: 20, refill: '10/s' }).numbers).toBe('20 1 100000')
    expect(ruleOf({ capacity: 20, refill: '600/min' }).numbers).toBe('20 1 100000')
    expect(Object.isFrozen(ruleOf({ capacity: 20, refill: '10/s' }))).toBe(true)
  })
})
