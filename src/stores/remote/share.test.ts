import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { RULE, type Rule } from '../../algorithms/algorithm.ts'
import { fixedWindow, gcra, leakyBucket } from '../../algorithms/all.ts'
import { fittingPace } from '../../algorithms/kept-pace.ts'
import { shareOf } from './share.ts'

const DAY_US = 86_400_000_000
const figuresOf = (rule: Rule) => rule.figures as readonly [capacity: number, permits: number, periodUs: number]

test('a share of a limit has a share of its permits, which come back at a share of its pace', () => {
  expect(shareOf(gcra({ rate: '10/s', burst: 20 })[RULE], 0.25).numbers).toBe('5 1 400000')
  expect(shareOf(leakyBucket({ leak: '3/s', capacity: 10 })[RULE], 0.3).numbers).toBe('3 3 3333334')
  expect(shareOf(fixedWindow({ limit: 100, window: '1min' })[RULE], 0.5).numbers).toBe('50 60000000 0 0')
  expect(shareOf(gcra({ rate: '10/s', burst: 2 })[RULE], 0.01).numbers).toBe('1 1 10000000')
})

test('of a limit that admits nothing a share admits nothing', () => {
  expect(shareOf(gcra({ rate: '10/s', burst: 0 })[RULE], 0.25).numbers).toBe('0 1 400000')
  expect(shareOf(fixedWindow({ limit: 0, window: '1min' })[RULE], 0.5).numbers).toBe('0 60000000 0 0')
})

test('a share of one is the limit itself', () => {
  const rule = gcra({ rate: '99991/d', burst: 99_991 })[RULE]
  expect(shareOf(rule, 1)).toBe(rule)
})

test('a year is the longest period: a smaller share has fewer permits in it', () => {
  expect(shareOf(gcra({ rate: '10/366d', burst: 70 })[RULE], 0.2).numbers).toBe('14 1 15811200000000')
  expect(shareOf(gcra({ rate: '7/366d', burst: 70 })[RULE], 0.5).numbers).toBe('35 1 10540800000000')
})

describe('a share of what is kept is counted exactly', () => {
  const limit = fc.record({
    permits: fc.integer({ min: 1, max: 1_000_000 }),
    unit: fc.constantFrom('s', 'min', 'h', 'd', '30d'),
    times: fc.constantFrom(1e-6, 0.01, 1, 8, 1_000),
  })

  test('whatever the share is', () => {
    const seen = { slower: 0, slowest: 0 }
    fc.assert(
      fc.property(limit, fc.double({ min: 1e-6, max: 1, minExcluded: true, noNaN: true }), ({ permits, unit, times }, share) => {
        const burst = Math.min(1_000_000_000, Math.ceil(permits * times))
        let rule: Rule
        try {
          rule = gcra({ rate: `${permits}/${unit}` as `1/${'s'}`, burst })[RULE]
        } catch {
          return
        }
        const [capacity, p, q] = figuresOf(shareOf(rule, share))
        const [, permitsOfAll, periodOfAll] = figuresOf(rule)
        expect(capacity).toBe(Math.max(1, Math.floor(burst * share)))
        expect(2n * BigInt(capacity) * BigInt(q)).toBeLessThan(2n ** 52n)
        const ratio = p / q / (permitsOfAll / periodOfAll) / share
        if (ratio <= 1 + 1e-12) {
          seen.slower += 1
          return
        }
        // It is the slowest that there is, or one permit in the longest period.
        expect(p).toBe(1)
        expect(q === 366 * DAY_US || fittingPace(capacity, { permits: 1, periodUs: q + 1 }, 0) === undefined).toBe(true)
        seen.slowest += 1
      }),
      { numRuns: 5_000, seed: 31 },
    )
    expect(seen.slower).toBeGreaterThan(3_000)
    expect(seen.slowest).toBeGreaterThan(10)
  })

  test('at the slowest pace that there is, where a share of the pace would be slower yet', () => {
    // A permit every 2.2 s, a thousand million of them.
    const rule = gcra({ rate: { permits: 1, per: '2251768us' }, burst: 1_000_000_000 })[RULE]
    const [capacity, permits, periodUs] = figuresOf(shareOf(rule, 0.3))
    expect([capacity, permits, periodUs]).toEqual([300_000_000, 1, 7_505_894])
    expect(fittingPace(capacity, { permits, periodUs: periodUs + 106 }, 0)).toBeUndefined()
  })
})
