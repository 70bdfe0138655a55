import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import type { LevelRule } from '../level.ts'
import { type TokenBucketOptions, tokenBucket, tokenBucketAlgorithm } from './token-bucket.ts'

const SECOND = 1_000_000

function ruleOf(options: TokenBucketOptions): LevelRule {
  return tokenBucket(options)[RULE] as LevelRule
}

describe('the number line of a capacity of 2 at 1/s', () => {
  test('allows two at 0.1 s, refuses the third for a second, and allows the next at 1.5 s', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    expect([key.take(100_000), key.remaining(100_000)]).toEqual([0, 1])
    expect([key.take(100_000), key.remaining(100_000)]).toEqual([0, 0])
    expect([key.take(100_000), key.remaining(100_000)]).toEqual([SECOND, 0])
    expect([key.take(1_500_000), key.remaining(1_500_000)]).toEqual([0, 0])
    expect(key.resetUs(1_500_000)).toBe(1_600_000)
  })

  test('keeps the 0.4 tokens that are left at 1.5 s as a part', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(100_000, 2)
    key.take(1_500_000)
    expect(key.state).toEqual({ tokens: 0, part: 400000, atUs: 1500000 })
  })

  test('limits one microsecond before the wait is over and allows at its end', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    expect([key.take(SECOND - 1), key.take(SECOND)]).toEqual([1, 0])
  })

  test('waits for as many as are asked for', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    expect([key.waitUs(0, 1), key.waitUs(0, 2), key.waitUs(1_500_000, 2)]).toEqual([SECOND, 2 * SECOND, 500_000])
  })

  test('leaves the same state after one take of 2 as after two takes of 1', () => {
    const [once, twice] = [new HeldKey(ruleOf({ capacity: 5, refill: '7/s' })), new HeldKey(ruleOf({ capacity: 5, refill: '7/s' }))]
    once.take(40, 2)
    twice.take(40)
    twice.take(40)
    expect(once.s).toEqual(twice.s)
  })

  test('is as if never used once its time to reset is over', () => {
    const key = new HeldKey(ruleOf({ capacity: 3, refill: '7/s' }))
    key.take(0, 2)
    const idleUs = key.resetUs(0)
    expect(idleUs).toBe(285_715)
    expect([key.resetUs(idleUs - 1), key.resetUs(idleUs), key.remaining(idleUs)]).toEqual([1, 0, 3])
  })

  test('never holds more tokens than its capacity', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0)
    key.take(1_000 * SECOND)
    expect(key.state).toEqual({ tokens: 1, part: 0, atUs: 1000000000 })
  })
})

test('7 per second is exact: the k-th token comes after k / 7 of a second, rounded up, and nothing adds up over 10,000 of them', () => {
  const key = new HeldKey(ruleOf({ capacity: 2, refill: '7/s' }))
  key.take(0, 2)
  for (let k = 1; k <= 10_000; k++) {
    const nowUs = Math.ceil((k * SECOND) / 7)
    expect([key.take(nowUs - 1), key.take(nowUs)]).toEqual([1, 0])
  }
})

describe('what people see', () => {
  test('is the tokens that are there, not the ones that are missing', () => {
    const key = new HeldKey(ruleOf({ capacity: 20, refill: '10/s' }))
    key.take(5 * SECOND, 3)
    expect(key.state).toEqual({ tokens: 17, part: 0, atUs: 5000000 })
  })

  test('is all of them once everything was given back', () => {
    const key = new HeldKey(ruleOf({ capacity: 20, refill: '1/s' }))
    key.take(5 * SECOND, 3)
    key.give(6 * SECOND, 3)
    expect(key.state).toEqual({ tokens: 20, part: 0, atUs: 6_000_000 })
  })

  test('is whole tokens, and the rest as a part, to the microsecond', () => {
    const key = new HeldKey(ruleOf({ capacity: 20, refill: '1/s' }))
    key.take(0)
    key.take(999_999)
    expect(key.state).toEqual({ tokens: 18, part: 999_999, atUs: 999_999 })
  })

  test('is tokens below zero while some are booked ahead', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.reserve(0, 5)
    expect(key.state).toEqual({ tokens: -3, part: 0, atUs: 0 })
    key.reserve(250_000, 1)
    expect(key.state).toEqual({ tokens: -4, part: 250000, atUs: 250000 })
  })
})

describe('a clock that steps back', () => {
  const rule = ruleOf({ capacity: 2, refill: '1/s' })

  test('by at most one window finds time standing still: used stays used, and the state is not written', () => {
    const key = new HeldKey(rule)
    key.take(100 * SECOND, 2)
    const before = key.s.slice()
    for (const stepUs of [1, SECOND, 2 * SECOND]) {
      const nowUs = 100 * SECOND - stepUs
      expect([key.repair(nowUs), key.remaining(nowUs), key.waitUs(nowUs)]).toEqual([false, 0, stepUs + SECOND])
    }
    expect(key.s).toEqual(before)
  })

  test('by more than one window finds the state dated to now, with what was used, and that is written', () => {
    const key = new HeldKey(rule)
    key.take(100 * SECOND)
    const nowUs = 98 * SECOND - 1
    expect([key.repair(nowUs), key.s]).toEqual([true, Float64Array.of(nowUs + SECOND, 0, nowUs)])
    expect([key.remaining(nowUs), key.resetUs(nowUs)]).toEqual([1, SECOND])
    expect(key.repair(nowUs)).toBe(false)
  })

  test('and takes meanwhile are charged at the time that stands still', () => {
    const key = new HeldKey(rule)
    key.take(100 * SECOND)
    expect([key.take(99 * SECOND), key.s]).toEqual([0, Float64Array.of(102 * SECOND, 0, 100 * SECOND)])
    expect(key.take(99 * SECOND)).toBe(2 * SECOND)
  })

  test('and a leap forward is just time passing', () => {
    const key = new HeldKey(rule)
    key.take(0, 2)
    expect([key.repair(1e9 * SECOND), key.remaining(1e9 * SECOND)]).toEqual([false, 2])
  })
})

describe('other numbers', () => {
  test('of the caller are held against what is used, which drains at its own pace, and the state stays as it is', () => {
    const key = new HeldKey(ruleOf({ refill: '1/s', capacity: 10 }))
    key.take(0, 4)
    const before = key.s.slice()
    key.under(ruleOf({ refill: '1000/s', capacity: 3 }))
    expect([key.remaining(0), key.take(0), key.take(0, 2), key.resetUs(0)]).toEqual([0, 2 * SECOND, 3 * SECOND, 4 * SECOND])
    key.under(ruleOf({ refill: '1/d', capacity: 5 }))
    expect([key.remaining(0), key.remaining(SECOND), key.take(0, 2)]).toEqual([1, 2, SECOND])
    expect([key.s, key.numbers]).toEqual([before, '10 1 1000000'])
  })

  test('give no free refill, and a larger capacity is had at once', () => {
    const key = new HeldKey(ruleOf({ refill: '1/s', capacity: 5 }))
    key.take(0, 5)
    key.under(ruleOf({ refill: '1/s', capacity: 8 }))
    expect([key.remaining(0), key.take(0, 3), key.used(0)]).toEqual([3, 0, 8])
    key.under(ruleOf({ refill: '1/s', capacity: 5 }))
    expect([key.remaining(0), key.take(0), key.take(4 * SECOND)]).toEqual([0, 4 * SECOND, 0])
  })

  test('keep every permit with a charge, and drain at the new pace from there', () => {
    const key = new HeldKey(ruleOf({ refill: '1/s', capacity: 10 }))
    key.take(0, 5)
    key.under(ruleOf({ refill: '1/d', capacity: 10 })).take(SECOND)
    expect([key.used(SECOND), key.resetUs(SECOND), key.numbers]).toEqual([5, 5 * 86_400 * SECOND, '10 1 86400000000'])
  })

  test('round what was used up to the new unit', () => {
    const key = new HeldKey(ruleOf({ refill: '1/3us', capacity: 10 }))
    key.take(0)
    // Two thirds of a permit are left to drain. Over 7 microseconds that is 4 2/3 of 7 parts, so 5.
    key.under(ruleOf({ refill: '1/7us', capacity: 10 })).take(1)
    expect(key.resetUs(1)).toBe(12)
  })

  test('that are the same numbers change nothing', () => {
    const key = new HeldKey(ruleOf({ refill: '10/s', capacity: 5 }))
    key.take(0)
    expect(key.under(ruleOf({ refill: '100/10s', capacity: 5 })).numbers).toBe(ruleOf({ refill: '100/10s', capacity: 5 }).numbers)
  })

  test('tell a reservation when it may act: when it fits at its own pace', () => {
    const key = new HeldKey(ruleOf({ refill: '1/s', capacity: 10 }))
    key.take(0, 10)
    key.under(ruleOf({ refill: '10/s', capacity: 4 }))
    expect([key.dueUs(0, 1), key.dueUs(0, 4), key.waitUs(0, 1)]).toEqual([700_000, SECOND, 7 * SECOND])
  })

  test('of another pace leave a ticket nothing to give back', () => {
    const slow = ruleOf({ refill: '1/s', capacity: 2 })
    const key = new HeldKey(slow)
    const ticket = key.reserve(0, 5)
    key.under(ruleOf({ refill: '2/s', capacity: 20 })).take(0)
    expect([key.under(slow).cancel(0, 5, ticket), key.used(0)]).toEqual([false, 6])
    const raised = ruleOf({ refill: '1/s', capacity: 20 })
    const other = new HeldKey(slow)
    const same = other.reserve(0, 5)
    other.under(raised).take(0)
    expect([other.under(slow).cancel(0, 5, same), other.used(0)]).toEqual([true, 2])
  })

  test('give back by the pace of the state, whatever that of the caller is', () => {
    const key = new HeldKey(ruleOf({ refill: '1/s', capacity: 10 }))
    key.take(0, 10)
    key.under(ruleOf({ refill: '10/s', capacity: 1 }))
    expect([key.give(9 * SECOND, 10, 0), key.used(9 * SECOND), key.numbers]).toEqual([true, 0, '10 1 1000000'])
  })
})

describe('giving back', () => {
  test('returns the tokens, never above the capacity', () => {
    const key = new HeldKey(ruleOf({ capacity: 5, refill: '7/s' }))
    key.take(0, 3)
    expect([key.give(0, 1), key.remaining(0)]).toEqual([true, 3])
    expect([key.give(0, 5), key.remaining(0), key.resetUs(0)]).toEqual([true, 5, 0])
    expect(key.give(0, 1)).toBe(false)
  })

  test('of a charge gives back what has not been refilled of it', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0)
    key.take(SECOND - 1)
    expect([key.give(SECOND, 1, 0), key.resetUs(SECOND)]).toEqual([false, SECOND])
    // Of half of it, half is given back.
    expect([key.give(SECOND - 1, 1, SECOND / 2 - 1), key.resetUs(SECOND - 1)]).toEqual([true, SECOND / 2 + 1])
  })

  test('cancels the last reservation whole', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    expect([key.cancel(0, 2, ticket), key.s]).toEqual([true, Float64Array.of(2 * SECOND, 0, 0)])
  })

  test('cancels an earlier reservation minus what was reserved after it', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    key.reserve(0)
    expect([key.cancel(0, 2, ticket), key.s]).toEqual([true, Float64Array.of(4 * SECOND, 0, 0)])
  })

  test('cancels nothing when as much was reserved after it', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    const ticket = key.reserve(0, 2)
    key.reserve(0, 2)
    expect([key.cancel(0, 2, ticket), key.s]).toEqual([false, Float64Array.of(6 * SECOND, 0, 0)])
  })

  test('cancels nothing once the time of the reservation has come', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0, 2)
    const ticket = key.reserve(0, 1)
    expect(key.cancel(SECOND, 1, ticket)).toBe(false)
    expect(key.cancel(SECOND - 1, 1, ticket)).toBe(true)
  })

  test('cancels exactly while the level drains', () => {
    const key = new HeldKey(ruleOf({ capacity: 1, refill: '7/s' }))
    key.take(0)
    const other = new HeldKey(ruleOf({ capacity: 1, refill: '7/s' }))
    other.take(0)
    const ticket = key.reserve(10, 4)
    expect(key.cancel(12_345, 4, ticket)).toBe(true)
    expect([key.waitUs(12_345), key.resetUs(12_345)]).toEqual([other.waitUs(12_345), other.resetUs(12_345)])
  })
})

describe('a ticket', () => {
  const rule = ruleOf({ capacity: 3, refill: '7/s' })
  /** A key that at 12,345 microseconds has less than one token missing. */
  const used = () => {
    const key = new HeldKey(rule)
    key.take(0)
    return key
  }

  test.each([1, 2, 3, 4, 10])('of %i tells when its reservation may act: when it would have fitted', (cost) => {
    const key = used()
    const waitUs = key.waitUs(12_345, cost)
    const dueUs = tokenBucketAlgorithm.actUs?.(rule, key.reserve(12_345, cost), cost) as number
    expect(Math.max(dueUs, 12_345)).toBe(12_345 + waitUs)
  })

  test('of what fits exactly may act at once', () => {
    expect(tokenBucketAlgorithm.actUs?.(rule, new HeldKey(rule).reserve(10, 3), 3)).toBe(10)
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
    expect(again[RULE]).toEqual(limit[RULE])
    expect(JSON.stringify(again)).toBe(JSON.stringify(limit))
  })

  test('hides the symbol from keys, spreads and logs', () => {
    const limit = tokenBucket({ capacity: 20, refill: '10/s' })
    expect(Object.keys(limit)).toEqual(['type', 'capacity', 'refill'])
    expect(Object.getOwnPropertySymbols({ ...limit })).toEqual([])
    expect(RULE in limit).toBe(true)
  })

  test('compiles to lowest terms, so that equal limits have equal numbers', () => {
    expect(ruleOf({ capacity: 20, refill: '10/s' }).numbers).toBe('20 1 100000')
    expect(ruleOf({ capacity: 20, refill: '600/min' }).numbers).toBe('20 1 100000')
    expect(Object.isFrozen(ruleOf({ capacity: 20, refill: '10/s' }))).toBe(true)
  })
})
