import { describe, expect, test } from 'vitest'
import { HeldKey } from '../../../test/support/held-key.ts'
import { RULE } from '../algorithm.ts'
import type { LevelRule } from '../level.ts'
import { type GcraOptions, gcra } from './gcra.ts'

const SECOND = 1_000_000

function ruleOf(options: GcraOptions): LevelRule {
  return gcra(options)[RULE] as LevelRule
}

class Key extends HeldKey {
  get tatUs(): number {
    return this.s[0] as number
  }
}

test('the number line of 1/s with a burst of 2: two at 0.1 s, the third after a second, the next at 1.5 s', () => {
  const key = new Key(ruleOf({ rate: '1/s', burst: 2 }))
  expect([key.take(100_000), key.tatUs, key.remaining(100_000)]).toEqual([0, 1_100_000, 1])
  expect([key.take(100_000), key.tatUs, key.remaining(100_000)]).toEqual([0, 2_100_000, 0])
  expect([key.take(100_000), key.tatUs, key.remaining(100_000)]).toEqual([SECOND, 2_100_000, 0])
  expect([key.take(1_500_000), key.tatUs, key.remaining(1_500_000)]).toEqual([0, 3_100_000, 0])
  expect(key.resetUs(1_500_000)).toBe(1_600_000)
})

test('7 per second is exact: the interval is 142857 and 1/7 microseconds, and seven of them are a second', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 7 }))
  expect([key.take(0), key.s]).toEqual([0, Float64Array.of(142_857, 1, 0)])
  key.take(0, 6)
  expect(key.s).toEqual(Float64Array.of(SECOND, 0, 0))
  expect([key.take(142_857), key.take(142_858)]).toEqual([1, 0])
})

test('parts that add up to more than a microsecond are waited out to the microsecond', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 7 }))
  key.take(0, 6)
  // 12/7 of a second, less the second that the burst forgives: 714285 and 5/7.
  expect(key.take(0, 6)).toBe(714_286)
})

test('people see the TAT, its part and the date, and the TAT of what is booked ahead', () => {
  const key = new Key(ruleOf({ rate: '7/s', burst: 5 }))
  key.take(100_000)
  expect(key.state).toEqual({ tatUs: 242_857, part: 1, atUs: 100_000 })
  key.book(100_001, 6)
  expect(key.state).toEqual({ tatUs: 1_100_000, part: 0, atUs: 100_001 })
})

describe('the factory', () => {
  test('returns frozen plain data that JSON carries', () => {
    const limit = gcra({ rate: '10/s', burst: 20 })
    expect(Object.isFrozen(limit)).toBe(true)
    expect(JSON.parse(JSON.stringify(limit))).toEqual({ type: 'gcra', rate: '10/s', burst: 20 })
  })

  test('makes the same limit again from its own JSON', () => {
    const limit = gcra({ rate: { permits: 5, per: '10s' }, burst: 20 })
    const again = gcra(JSON.parse(JSON.stringify(limit)))
    expect(again[RULE]).toEqual(limit[RULE])
    expect(JSON.stringify(again)).toBe(JSON.stringify(limit))
  })

  test('hides the symbol from keys, spreads and logs', () => {
    const limit = gcra({ rate: '10/s', burst: 20 })
    expect(Object.keys(limit)).toEqual(['type', 'rate', 'burst'])
    expect(Object.getOwnPropertySymbols({ ...limit })).toEqual([])
    expect(RULE in limit).toBe(true)
  })

  test('compiles to lowest terms, so that equal limits have equal numbers', () => {
    expect(ruleOf({ rate: '10/s', burst: 20 }).numbers).toBe('20 1 100000')
    expect(ruleOf({ rate: '600/min', burst: 20 }).numbers).toBe('20 1 100000')
    expect(Object.isFrozen(ruleOf({ rate: '10/s', burst: 20 }))).toBe(true)
  })
})
