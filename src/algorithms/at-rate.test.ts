import { describe, expect, test } from 'vitest'
import { RULE, type Rule } from './algorithm.ts'
import { fixedWindow, gcra, slidingLog, slidingWindow } from './all.ts'
import { atRate, checkRate, rateOf } from './at-rate.ts'
import { fittingPace } from './kept-pace.ts'

const bucket = gcra({ rate: '7/s', burst: 5 })[RULE]
const window = slidingWindow({ limit: 30, window: '1min', slots: 4 })[RULE]

describe('a limit that drains keeps its burst', () => {
  test.each([
    [7, '5 7 1000000'],
    [1, '5 1 1000000'],
    [0.5, '5 1 2000000'],
    // Ten thousand steps are enough, and more are not taken.
    [1.000_05, '5 10001 10000000000'],
    [12_345.4, '5 2469 200000'],
    [1e6, '5 1 1'],
    [1e-6, '5 1 1000000000000'],
    // The longest period that a power of ten is.
    [1e-9, '5 1 10000000000000'],
  ])('at %d permits a second', (permitsPerSecond, numbers) => {
    expect(atRate(bucket, permitsPerSecond).numbers).toBe(numbers)
  })
})

describe('a window keeps its length, and admits one at least', () => {
  test.each([
    [1, '60 60000000 4'],
    [0.51, '31 60000000 4'],
    [0.02, '1 60000000 4'],
    [0.0001, '1 60000000 4'],
  ])('at %d permits a second', (permitsPerSecond, numbers) => {
    expect(atRate(window, permitsPerSecond).numbers).toBe(numbers)
  })

  test('and no more than there may be', () => {
    expect(() => checkRate(window, 1e9, 'max')).toThrow('max: the limit of a window at this rate 60000000000 must be at most 1,000,000,000')
    expect(atRate(window, 1e9).capacity).toBe(1e9)
    expect(atRate(window, 1e9 / 60).capacity).toBe(1e9)
  })

  test('nor, of a log, than it may keep', () => {
    const log = slidingLog({ limit: 90_000, window: '1min' })[RULE]
    expect(() => checkRate(log, 3_000, 'max')).toThrow('max: the limit of a window at this rate 180000 must be at most 100,000')
    expect(atRate(log, 3_000).capacity).toBe(100_000)
    expect(atRate(log, 100_000 / 60).capacity).toBe(100_000)
  })
})

/** Whether `followLoad` would not begin with it. */
function isTooSlow(rule: Rule, perSecond: number, aheadUs: number): boolean {
  try {
    checkRate(rule, perSecond, 'min', aheadUs)
    return false
  } catch (error) {
    expect((error as Error).message).toMatch(/^min: gcra burst \d+ must be at most \d+ at this rate.*, to be counted exactly$/)
    return true
  }
}

describe('a rate that follows the load is never refused while it runs', () => {
  const DAY_US = 86_400_000_000
  const AHEAD_US = [0, 60_000_000, DAY_US, 366 * DAY_US]
  const BURSTS = [0, 1, 2, 7, 10, 100, 999, 1_000, 9_999, 26_064, 99_991, 100_000, 999_983, 1_000_000]
  /** From ten million a second to one a day, evenly over all magnitudes. */
  const rates = Array.from({ length: 300 }, (_, k) => 1e7 * (1 / 86_400 / 1e7) ** (k / 299))

  test.each(AHEAD_US)('with any burst up to 1e6, and bookings %d microseconds ahead', (aheadUs) => {
    const seen = { exact: 0, near: 0, slowest: 0 }
    for (const burst of BURSTS) {
      const limit = gcra({ rate: '1/s', burst })[RULE]
      for (const perSecond of rates) {
        const rule = atRate(limit, perSecond, aheadUs)
        const [capacity, permits, periodUs] = rule.figures as [number, number, number]
        expect(capacity).toBe(burst)
        expect(2n * BigInt(capacity) * BigInt(periodUs) + BigInt(aheadUs) * BigInt(permits)).toBeLessThan(2n ** 52n)
        expect(rule.algorithm.isLimit(rule.figures)).toBe(true)
        const ratio = rateOf(rule) / perSecond
        // The slowest rates have few steps, and with bookings of a year all have 142 at most.
        const step = 1 / Math.min(1e7 * perSecond, aheadUs > DAY_US ? 71 : 1_000)
        expect(ratio).toBeGreaterThan(1 - step)
        if (ratio <= 1 + step && !isTooSlow(limit, perSecond, aheadUs)) {
          seen[ratio > 0.9999 ? 'exact' : 'near'] += 1
          continue
        }
        // It is the slowest that there is with such a burst.
        expect([permits, fittingPace(capacity, { permits: 1, periodUs: periodUs + 1 }, Math.max(aheadUs, 60_000_000))]).toEqual([
          1,
          undefined,
        ])
        expect(isTooSlow(limit, perSecond, aheadUs)).toBe(true)
        seen.slowest += 1
      }
    }
    expect(seen.exact + seen.near + seen.slowest).toBe(BURSTS.length * rates.length)
    expect(seen.exact).toBeGreaterThan(2_000)
    expect(seen.slowest).toBeGreaterThan(100)
  })
})

test('the rate of a limit is permits per second', () => {
  expect([bucket, window, fixedWindow({ limit: 10, window: '4s' })[RULE]].map(rateOf)).toEqual([7, 0.5, 2.5])
})
