import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import type { LevelRule } from '../level.ts'
import { type TokenBucketOptions, tokenBucket } from './token-bucket.ts'

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

  test('never holds more tokens than its capacity', () => {
    const key = new HeldKey(ruleOf({ capacity: 2, refill: '1/s' }))
    key.take(0)
    key.take(1_000 * SECOND)
    expect(key.state).toEqual({ tokens: 1, part: 0, atUs: 1000000000 })
  })
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
    key.book(0, 5)
    expect(key.state).toEqual({ tokens: -3, part: 0, atUs: 0 })
    key.book(250_000, 1)
    expect(key.state).toEqual({ tokens: -4, part: 250000, atUs: 250000 })
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
