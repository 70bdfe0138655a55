/**
 * gcra and the buckets book ahead: random schedules against the model, to the microsecond and to
 * the last permit.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Limit } from '../../src/index.ts'
import type { OracleKind, OracleNumbers } from '../../src/testing/index.ts'
import { Coverage } from '../model/against-oracle.ts'
import { levelLimit, limitName } from '../model/run-trace.ts'
import { SEED, traceCount } from '../model/trace.ts'
import { WaitModel } from './model.ts'
import { Run, type Schedule, schedules } from './schedule.ts'
import { noUnhandledRejections } from './support.ts'

noUnhandledRejections()

/**
 * What must make up at least so much of the steps: a run that never meets these proves nothing. A
 * close ends a schedule of some 35 steps.
 */
const HARD_CASES: Readonly<Record<string, number>> = {
  'booked at once': 0.07,
  'outside at first': 0.05,
  'several are booked': 0.08,
  'some booked, some outside': 0.05,
  'served from booked': 0.05,
  'served from outside': 0.02,
  'served from entering': 0.03,
  'aborted from booked': 0.03,
  'aborted from outside': 0.02,
  'several leave at once': 0.007,
  'TIMEOUT at once': 0.03,
  'TIMEOUT from outside': 0.01,
  'QUEUE_FULL at once': 0.015,
  'IMPOSSIBLE at once': 0.01,
  'refund with waiters': 0.03,
  'update with waiters': 0.015,
  'reset with waiters': 0.01,
  'close with waiters': 0.003,
}

/**
 * How long one permit takes: whole microseconds. Where it takes a part of one, a booking that is
 * split comes due up to a microsecond later than the model says.
 */
const interval = fc.oneof(fc.constantFrom(1, 7, 1_000_000, 86_400_000_000), fc.integer({ min: 5, max: 1_000_000 }))
const someNumbers: fc.Arbitrary<OracleNumbers> = fc
  .tuple(interval, fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 1, max: 200 })))
  .map(([periodUs, capacity]) => ({ permits: 1, periodUs, capacity }))

type Numbers = readonly OracleNumbers[]

async function compareSchedules(numbers: fc.Arbitrary<Numbers>, kinds: readonly OracleKind[], count: number): Promise<void> {
  const coverage = new Coverage()
  const property = fc.asyncProperty(
    schedules(numbers, (each) => windowUsOf(each[0] as OracleNumbers)),
    (schedule) => {
      const atOnePace = { ...schedule, palette: schedule.palette.map((numbers) => atPaceOf(schedule.palette[0] as Numbers, numbers)) }
      return new Run(atOnePace, limitsOf(atOnePace, kinds), modelOf(atOnePace, kinds), coverage).check()
    },
  )
  await fc.assert(property, { seed: SEED, numRuns: traceCount(count) })
  console.log(coverage.table(`waiting at ${kinds.join(' and ')}`))
  for (const [what, share] of Object.entries(HARD_CASES)) expect(coverage.share(what), what).toBeGreaterThanOrEqual(share)
}

/** Updates change capacities only. */
function atPaceOf(first: Numbers, numbers: Numbers): Numbers {
  return numbers.map(({ capacity }, k) => ({ ...(first[k] as OracleNumbers), capacity }))
}

function windowUsOf({ capacity, permits, periodUs }: OracleNumbers): number {
  return Math.ceil((capacity * periodUs) / permits)
}

function limitsOf({ palette }: Schedule<Numbers>, kinds: readonly OracleKind[]): Record<string, Limit>[] {
  return palette.map((numbers) => Object.fromEntries(kinds.map((kind, k) => [limitName(k), levelLimit(kind, numbers[k] as OracleNumbers)])))
}

function modelOf({ palette, maxAheadUs, maxQueue }: Schedule<Numbers>, kinds: readonly OracleKind[]): WaitModel {
  return new WaitModel(kinds, palette, maxAheadUs, maxQueue)
}

describe.each<OracleKind>(['gcra', 'tokenBucket', 'leakyBucket'])('%s', (kind) => {
  test('every step of 1,000 schedules is that of the model', async () => {
    await compareSchedules(
      someNumbers.map((each) => [each]),
      [kind],
      1_000,
    )
  })
})

/** A second limit that is charged along, but never makes anybody wait. */
const wide = ({ permits, periodUs, capacity }: OracleNumbers) => ({ permits, periodUs, capacity: capacity * 1_000 })

test('permits held for one limit are given back to the other too: every step of 700 schedules is that of the model', async () => {
  const numbers = someNumbers.filter(({ periodUs }) => periodUs <= 1_000_000)
  await compareSchedules(
    numbers.map((each) => [each, wide(each)]),
    ['gcra', 'tokenBucket'],
    700,
  )
})
