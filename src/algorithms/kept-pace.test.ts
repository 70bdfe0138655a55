/** Whole numbers up to 2^52 are the measure, `BigInt` and plain searches are the oracles. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SluiceError } from '../errors.ts'
import { greatestCommonDivisor } from './arithmetic.ts'
import { gcraAlgorithm } from './gcra/gcra.ts'
import { bookedAhead, fittingPace, keptRule } from './kept-pace.ts'
import type { LevelRule } from './level.ts'
import { DEFAULT_AHEAD_US, type Pace, paceOf, type Rate } from './rate.ts'
import { tokenBucketAlgorithm } from './token-bucket/token-bucket.ts'

const DAY_US = 86_400_000_000
const UNITS_US = { s: 1_000_000, min: 60_000_000, h: 3_600_000_000, d: DAY_US }

function lowest(permits: number, periodUs: number): Pace {
  const divisor = greatestCommonDivisor(permits, periodUs)
  return { permits: permits / divisor, periodUs: periodUs / divisor }
}

const kept = (rate: Rate, capacity: number, aheadUs = DEFAULT_AHEAD_US): LevelRule =>
  keptRule(gcraAlgorithm, capacity, paceOf(rate, 'rate'), aheadUs)

/** What it is refused with; undefined if it is not. */
function refusal(make: () => unknown): SluiceError | undefined {
  try {
    make()
    return undefined
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    return error as SluiceError
  }
}

const isCountable = ({ capacity, permits, periodUs }: LevelRule, aheadUs = DEFAULT_AHEAD_US) =>
  2n * BigInt(capacity) * BigInt(periodUs) + BigInt(aheadUs) * BigInt(permits) < 2n ** 52n

/** How much slower one pace is than another, in parts of 10^9. */
function slowerBy(found: Pace, asked: Pace): number {
  const wanted = BigInt(asked.permits) * BigInt(found.periodUs)
  const less = wanted - BigInt(found.permits) * BigInt(asked.periodUs)
  return (Number(less) / Number(wanted)) * 1e9
}

/** Every number of one or two digits and zeros behind them. */
function roundNumbers(most: number): number[] {
  const numbers = new Set<number>()
  for (let unit = 1; unit <= most; unit *= 10) for (let digits = 1; digits <= 99; digits++) numbers.add(digits * unit)
  return [...numbers].filter((number) => number <= most)
}

describe('a rate of two digits and zeros', () => {
  test('over 1 to 30 s, min, h or d is kept as asked with any burst up to 8 times its permits', () => {
    const seen = { below1e9: 0, with1e9: 0, changed: 0, leastFactor: Number.POSITIVE_INFINITY }
    for (const unitUs of Object.values(UNITS_US)) {
      for (let units = 1; units <= 30; units++) {
        for (const permits of roundNumbers(1_000_000_000)) {
          const periodUs = units * unitUs
          if (permits > 10 * periodUs) continue
          if (permits < 1_000_000_000) seen.below1e9 += 1
          seen.with1e9 += 1
          const pace = lowest(permits, periodUs)
          // As long as it is the same object it is as asked: what fits with a burst fits with a smaller one.
          if (fittingPace(8 * permits, pace, DEFAULT_AHEAD_US) !== pace) seen.changed += 1
          const factor = (2 ** 52 - DEFAULT_AHEAD_US * pace.permits) / (2 * permits * pace.periodUs)
          seen.leastFactor = Math.min(seen.leastFactor, factor)
        }
      }
    }
    expect(seen).toEqual({ below1e9: 84_531, with1e9: 84_620, changed: 0, leastFactor: expect.closeTo(8.956, 3) })
  })

  test('is kept with a burst of 0, which admits nothing', () => {
    for (const rate of ['7/s', '1/366d', '10000000/s', '999983/d'] as const) expect(kept(rate, 0).asked).toBeUndefined()
    expect(kept('999983/d', 0)).toMatchObject({ numbers: '0 999983 86400000000', capacity: 0, windowUs: 0 })
  })

  test('says so in the rule: the figures are its own, and nothing else was asked', () => {
    expect([kept('97/30d', 776).numbers, kept('97/30d', 776).asked]).toEqual(['776 97 2592000000000', undefined])
    expect(kept('10/s', 20).numbers).toBe('20 1 100000')
  })
})

describe('what does not fit is kept a little slower', () => {
  test('and the rule tells the pace and the window that were asked for', () => {
    const rule = kept('99991/d', 99_991)
    expect(rule.asked).toEqual({ permits: 99_991, periodUs: DAY_US, windowUs: DAY_US })
    expect(rule.numbers).toBe('99991 14442 12479011111')
    // A full bucket is free again a microsecond after a day.
    expect(rule.windowUs).toBe(DAY_US + 1)
    expect(Object.isFrozen(rule)).toBe(true)
  })

  test('never faster, and by less than one part in 10^9', () => {
    let slower = 0
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(UNITS_US), 30 * DAY_US),
        fc.integer({ min: 1, max: 100_000_000 }),
        (periodUs, number) => {
          const permits = Math.min(number, 10 * periodUs)
          const pace = lowest(permits, periodUs)
          let rule: LevelRule
          try {
            rule = keptRule(gcraAlgorithm, permits, pace)
          } catch {
            return
          }
          expect(isCountable(rule)).toBe(true)
          expect(slowerBy(rule, pace)).toBeGreaterThanOrEqual(0)
          expect(slowerBy(rule, pace)).toBeLessThan(1)
          if (rule.asked === undefined) expect(slowerBy(rule, pace)).toBe(0)
          else slower += 1
        },
      ),
      { numRuns: 10_000, seed: 21 },
    )
    expect(slower).toBeGreaterThan(5_000)
  })

  test.each([1e3, 1e4, 1e5, 1e6])('and no whole number of permits up to %d with as large a burst is refused', (most) => {
    const refused: string[] = []
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(UNITS_US), 7 * DAY_US, 30 * DAY_US),
        fc.integer({ min: 1, max: most }),
        (periodUs, permits) => {
          if (refusal(() => keptRule(gcraAlgorithm, permits, lowest(permits, periodUs))) !== undefined)
            refused.push(`${permits}/${periodUs}us`)
        },
      ),
      { numRuns: 6_000, seed: 22 },
    )
    expect(refused).toEqual([])
  })
})

describe('the walk finds the fastest pace that fits', () => {
  const pace = fc.record({ permits: fc.integer({ min: 1, max: 400 }), periodUs: fc.integer({ min: 1, max: 400 }) })
  /** So that there is room for few periods, or few permits, in some runs. */
  const capacity = fc.integer({ min: 0, max: 52 }).map((bits) => Math.min(1_000_000_000, Math.floor(2 ** 52 / 2 ** bits)))
  const aheadUs = fc.oneof(
    fc.constant(0),
    fc.integer({ min: 44, max: 52 }).map((bits) => 2 ** bits - 1),
  )
  const longUs = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 1_000_000 }))

  test('as a plain search does', () => {
    const seen = { slower: 0, none: 0, asked: 0 }
    fc.assert(
      fc.property(pace, capacity, aheadUs, longUs, ({ permits, periodUs }, burst, ahead, times) => {
        const asked = lowest(permits, periodUs * times)
        const room = 2n ** 52n - 1n
        const fits = (a: number, b: number) => 2n * BigInt(burst) * BigInt(b) + BigInt(ahead) * BigInt(a) <= room
        let best: Pace | undefined
        for (let a = 1; a <= asked.permits; a++) {
          // The shortest period that is no faster.
          const b = Math.ceil((a * asked.periodUs) / asked.permits)
          if (fits(a, b) && (best === undefined || a * best.periodUs > best.permits * b)) best = { permits: a, periodUs: b }
        }
        const found = fittingPace(burst, asked, ahead)
        expect(found).toEqual(best)
        seen[found === undefined ? 'none' : found === asked ? 'asked' : 'slower'] += 1
      }),
      { numRuns: 5_000, seed: 23 },
    )
    for (const [way, times] of Object.entries(seen)) expect(times, way).toBeGreaterThan(200)
  })
})

describe('what is slower by more is refused', () => {
  const REFUSED: readonly (readonly [Rate, number, number])[] = [
    ['1/30d', 1_000, 868],
    ['1/366d', 72, 71],
    ['1/d', 100_000, 26_062],
    ['34567/30d', 1_000_000_000, 5_005_012],
  ]

  test.each(REFUSED)('%s with a burst of %i, where at most %i works', (rate, burst, nearest) => {
    const error = refusal(() => kept(rate, burst)) as SluiceError
    expect(error.message).toBe(`gcra burst ${burst} must be at most ${nearest} at this rate, to be counted exactly`)
    expect(error).toMatchObject({ code: 'CONFIG', nearest })
  })

  test('and the nearest burst works, where one more does not', () => {
    let refused = 0
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 366 * DAY_US }), fc.integer({ min: 1, max: 70_000_000 }), (periodUs, permits) => {
        const pace = lowest(Math.min(permits, 10 * periodUs), periodUs)
        const error = refusal(() => keptRule(tokenBucketAlgorithm, 1_000_000_000, pace))
        if (error === undefined) return
        const nearest = error.nearest as number
        expect(error.message).toBe(`tokenBucket capacity 1000000000 must be at most ${nearest} at this rate, to be counted exactly`)
        expect(refusal(() => keptRule(gcraAlgorithm, nearest, pace))).toBeUndefined()
        expect(refusal(() => keptRule(gcraAlgorithm, nearest + 1, pace))).toBeDefined()
        refused += 1
      }),
      { numRuns: 500, seed: 24 },
    )
    expect(refused).toBeGreaterThan(400)
  })

  test('and where no burst works, a rounder rate is told', () => {
    const error = refusal(() => kept('999999999/100s', 5)) as SluiceError
    const nearest = '75059989/7505999us'
    expect(error.message).toBe(`gcra burst 5 needs a rounder rate to be counted exactly, such as ${nearest}`)
    expect(error.nearest).toBe(nearest)
    expect(kept(nearest, 5).asked).toBeUndefined()
  })
})

describe('a limiter that books further ahead than a minute', () => {
  const YEAR_US = 366 * DAY_US
  const rule = kept('999983/d', 99_991)

  test('keeps the pace that leaves room for that, found anew from the one that was asked for', () => {
    const daily = bookedAhead(rule, DAY_US, '') as LevelRule
    expect(isCountable(daily, DAY_US)).toBe(true)
    expect(daily.asked).toEqual(rule.asked)
    expect(daily.numbers).not.toBe(rule.numbers)
    expect(bookedAhead(daily, DAY_US, '').numbers).toBe(daily.numbers)
  })

  test('keeps what fits as it is', () => {
    const round = kept('100/min', 100)
    expect(bookedAhead(round, YEAR_US, '')).toEqual(round)
    expect(bookedAhead(rule, DEFAULT_AHEAD_US, '')).toBe(rule)
    expect(bookedAhead(rule, 0, '')).toBe(rule)
  })

  test('refuses a burst for which there is no room then, with the largest that works', () => {
    const error = refusal(() => bookedAhead(kept('1/30d', 868), YEAR_US, "limit 'a': ")) as SluiceError
    expect(error.message).toBe(
      "limit 'a': gcra burst 868 must be at most 862 at this rate with maxAheadMs 31622400000, to be counted exactly",
    )
    expect(error.nearest).toBe(862)
  })

  test('refuses bookings as far ahead where no burst works, with the furthest that does', () => {
    const error = refusal(() => bookedAhead(rule, YEAR_US, '')) as SluiceError
    const nearest = error.nearest as number
    expect(error.message).toBe(`gcra burst 99991 at this rate allows a maxAheadMs of at most ${nearest}, to be counted exactly`)
    expect(refusal(() => bookedAhead(rule, nearest * 1000, ''))).toBeUndefined()
    expect(refusal(() => bookedAhead(rule, nearest * 1000 + 1, ''))).toBeDefined()
  })
})
