/** Runs of the simulation: counts, cells and the explanation of single calls. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { simulate } from '../../src/cli/simulate.ts'
import { TRAFFIC } from '../../src/cli/traffic.ts'
import { fixedWindow, leakyBucket, slidingLog } from '../../src/index.ts'
import { Cursor } from '../src/simulation/cursor.ts'
import { explained } from '../src/simulation/explain.ts'
import { equalLimits, TYPES } from '../src/simulation/limits.ts'
import { fullestWindow, play, type Row, type Run } from '../src/simulation/run.ts'
import { TAPES, tapeArrivals } from '../src/simulation/tapes.ts'
import { type Arrivals, arrivalsOf } from '../src/simulation/traffic.ts'
import type { LimitData } from '../src/sluice.ts'
import { en } from '../src/text/en.ts'
import { zh } from '../src/text/zh.ts'

const LIMITS = equalLimits(10, '1s')
const ALL = TYPES.map((type) => LIMITS[type])
const boundary = () => arrivalsOf({ kind: 'boundary', count: 10, atSecond: 1, after: 0 })
const sum = (counts: Uint32Array) => counts.reduce((total, count) => total + count, 0)
const rowOf = ({ rows }: Run, type: string) => rows.find((row) => row.type === type) as Row

/** Times that lie close together, with costs. */
const arrivals: fc.Arbitrary<Arrivals> = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 3_000_000 }), fc.integer({ min: 1, max: 3 })), { minLength: 1, maxLength: 80 })
  .map((calls) => calls.sort(([a], [b]) => a - b))
  .map((calls) => ({
    atUs: Float64Array.from(calls, ([us]) => us),
    cost: Float64Array.from(calls, ([, cost]) => cost),
    lengthUs: 4_000_000,
  }))

test('only the fixed window lets twenty pass around the boundary', () => {
  const { rows } = play(boundary(), ALL)
  expect(rows.map(({ type, totals }) => [type, totals.admitted, totals.refused, totals.mostInWindow])).toEqual([
    ['fixedWindow', 20, 0, 20],
    ['slidingWindow', 10, 10, 10],
    ['slidingLog', 10, 10, 10],
    ['tokenBucket', 10, 10, 10],
    ['gcra', 10, 10, 10],
    ['leakyBucket', 10, 10, 10],
  ])
})

test('limits of 0 let nothing pass, say so of each call, and draw a line at 0', () => {
  const none = equalLimits(0, '1s')
  const { rows } = play(
    boundary(),
    TYPES.map((type) => none[type]),
  )
  for (const { totals, ceiling, high, capacity } of rows) {
    expect([totals.admitted, totals.refused, totals.mostInWindow, ceiling, capacity]).toEqual([0, 20, 0, 0, 0])
    expect([...high].every((value) => value === 0)).toBe(true)
  }
  const moments = new Cursor(
    boundary(),
    TYPES.map((type) => none[type]),
  ).at(3)
  for (const moment of moments) expect(explained(moment, en)).toBe('needs 1, but there are never more than 0')
})

test('it counts what the simulation in the terminal counts', () => {
  const limits = {
    fixedWindow: fixedWindow({ limit: 10, window: '1s' }),
    slidingLog: slidingLog({ limit: 10, window: '1s' }),
    leakyBucket: leakyBucket({ capacity: 10, leak: '10/s' }),
  }
  for (const traffic of TRAFFIC) {
    const atUs = Float64Array.from(traffic.arrivalsMs, (ms) => ms * 1000)
    const run = play({ atUs, cost: new Float64Array(atUs.length).fill(1), lengthUs: traffic.lengthMs * 1000 }, ALL)
    for (const [type, limit] of Object.entries(limits)) {
      const { admitted, refused } = simulate(traffic, { name: type, limit, explanation: '' }, 60)
      const { totals } = rowOf(run, type)
      expect([totals.admitted, totals.refused]).toEqual([admitted, refused].map((counts) => counts.reduce((a, b) => a + b, 0)))
    }
  }
})

test('every call is drawn once, as long as it acts before the axis ends', () => {
  const run = play(boundary(), ALL)
  expect(sum(run.arrived)).toBe(20)
  for (const { admitted, refused } of run.rows) expect(sum(admitted) + sum(refused)).toBe(20)
})

test('a leaky bucket spreads a burst out, and says how long the last one waits', () => {
  const { admitted, totals } = rowOf(play(boundary(), ALL), 'leakyBucket')
  expect(admitted.filter((count) => count > 0)).toEqual(new Uint32Array(10).fill(1))
  expect(totals.longestWaitUs).toBe(900_000)
})

test('the state of each limit stays between zero and its ceiling', () => {
  fc.assert(
    fc.property(arrivals, (calls) => {
      for (const { low, high, ceiling } of play(calls, ALL).rows) {
        expect(low.every((least, cell) => least >= -1e-9 && least <= (high[cell] as number))).toBe(true)
        expect(high.every((most) => most <= ceiling + 1e-9)).toBe(true)
      }
    }),
    { numRuns: 100 },
  )
})

test('a cost that never fits is a wait for ever', () => {
  const { totals } = rowOf(play({ atUs: Float64Array.of(5), cost: Float64Array.of(11), lengthUs: 10 }, ALL), 'gcra')
  expect(totals).toMatchObject({ admitted: 0, refused: 1, longestWaitUs: Number.POSITIVE_INFINITY })
})

test('the fullest window is the fullest of all, wherever they begin', () => {
  const calls = fc.array(fc.tuple(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 1, max: 4 })), { maxLength: 30 })
  fc.assert(
    fc.property(calls, fc.integer({ min: 1, max: 30 }), (unordered, window) => {
      const ordered = unordered.sort(([a], [b]) => a - b)
      const within = (from: number) =>
        ordered.filter(([at]) => at >= from && at < from + window).reduce((total, [, permits]) => total + permits, 0)
      const most = Math.max(0, ...Array.from({ length: 100 }, (_, k) => within(k - 30)))
      expect(
        fullestWindow(
          ordered.map(([at]) => at),
          ordered.map(([, permits]) => permits),
          window,
        ).mostInWindow,
      ).toBe(most)
    }),
  )
})

describe('one call, closely', () => {
  test('moving back and forth gives the same answers as going straight', () => {
    const calls = arrivalsOf({ kind: 'poisson', perSecond: 30, seconds: 3, seed: 5 })
    const cursor = new Cursor(calls, ALL)
    const fresh = (call: number) => new Cursor(calls, ALL).at(call)
    for (const call of [4, 5, 40, 3, 3, 60, 0]) expect(cursor.at(call)).toEqual(fresh(call))
  })

  test('the sum of a sliding window is what the library has in use', () => {
    fc.assert(
      fc.property(arrivals, (calls) => {
        const cursor = new Cursor(calls, [LIMITS.slidingWindow])
        for (let call = 0; call < calls.atUs.length; call++) {
          const [{ overlap, before, capacity }] = cursor.at(call) as [ReturnType<Cursor['at']>[number]]
          const { oldest, share, newer } = overlap as NonNullable<typeof overlap>
          // In use are whole permits: a part of one counts as one.
          expect(Math.ceil(oldest * share + newer - 1e-9) + 0).toBe(capacity - before.remaining)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('in words', () => {
    const words = (call: number) => new Cursor(boundary(), ALL).at(call).map((moment) => explained(moment, en))
    expect(words(0)).toEqual([
      'window 0 – 1 s: 0 so far + 1 = 1 ≤ 10',
      'oldest sub-window 0 × 0.1 + newer 0 = 0; + 1 = 1 ≤ 10',
      '0 in the last 1 s + 1 = 1 ≤ 10',
      'a full bucket, 10 tokens; needs 1, leaves 9',
      'max(now 0.99, TAT 0.99) = 0.99; + 1 × 0.1 s = 1.09, 0.1 s ahead of now; at most 1 s: the new TAT',
      'an empty bucket, water 0; + 1 = 1 ≤ 10: acts in 0 s',
    ])
    expect(words(10)).toEqual([
      'window 1 – 2 s: 0 so far + 1 = 1 ≤ 10',
      'oldest sub-window 0 × 0.9 + newer 10 = 10; + 1 = 11 > 10: fits in 0.9 s',
      '10 in the last 1 s + 1 = 11 > 10: enough have left in 0.98 s',
      '0 tokens + 0.02 s × 10/s = 0.2; needs 1, 0.8 missing: enough in 0.08 s',
      'max(now 1.01, TAT 1.99) = 1.99; + 1 × 0.1 s = 2.09, 1.08 s ahead of now; more than 1 s: fits in 0.08 s',
      'water 10 − 0.02 s × 10/s = 9.8; + 1 = 10.8 > 10: fits in 0.08 s',
    ])
  })

  test('in words to the microsecond, where everything is over in a millisecond', () => {
    const fast: LimitData[] = [
      { type: 'tokenBucket', capacity: 5, refill: '5000/s' },
      { type: 'gcra', burst: 5, rate: '5000/s' },
    ]
    const calls = arrivalsOf({ kind: 'steady', perSecond: 20_000, seconds: 1 })
    expect(new Cursor(calls, fast).at(6).map((moment) => explained(moment, en))).toEqual([
      '0.25 tokens + 0.00005 s × 5000/s = 0.5; needs 1, 0.5 missing: enough in 0.0001 s',
      'max(now 0.0003, TAT 0.0012) = 0.0012; + 1 × 0.0002 s = 0.0014, 0.0011 s ahead of now; more than 0.001 s: fits in 0.0001 s',
    ])
  })

  test('every tape is named and explained in both languages, without a hole in the sentence', () => {
    for (const tape of Object.values(TAPES).flat()) {
      expect(en.example.tape(tape.id)).toMatch(/^[A-Z]/)
      expect(zh.example.tape(tape.id)).not.toBe(tape.id)
      const calls = tapeArrivals(tape)
      const cursor = new Cursor(calls, [tape.limit])
      for (let call = 0; call < calls.atUs.length; call++) {
        const [moment] = cursor.at(call) as [ReturnType<Cursor['at']>[number]]
        for (const texts of [en, zh]) expect(explained(moment, texts)).not.toMatch(/undefined|NaN|Infinity|object/)
      }
    }
  })
})
