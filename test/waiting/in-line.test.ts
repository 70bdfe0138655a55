/**
 * Windows, logs and several limits cannot be booked ahead: their waiters stand in line. Random
 * schedules against the model.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { fixedWindow, gcra, type Limit, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { Coverage } from '../model/against-oracle.ts'
import { SEED, traceCount } from '../model/trace.ts'
import { Run, schedules } from './schedule.ts'
import { noUnhandledRejections } from './support.ts'
import { WindowModel } from './window-model.ts'

noUnhandledRejections()

const HARD_CASES: Readonly<Record<string, number>> = {
  'outside at first': 0.15,
  'served from outside': 0.05,
  'served from entering': 0.03,
  'aborted from outside': 0.05,
  'several leave at once': 0.005,
  'TIMEOUT at once': 0.03,
  'TIMEOUT from outside': 0.01,
  'QUEUE_FULL at once': 0.01,
  'IMPOSSIBLE at once': 0.01,
  'refund with waiters': 0.03,
  'update with waiters': 0.015,
  'reset with waiters': 0.008,
  'close with waiters': 0.003,
}

interface WindowNumbers {
  readonly limit: number
  readonly windowUs: number
  readonly anchor: 'epoch' | 'first' | number
  readonly slots: number
}

const someNumbers: fc.Arbitrary<WindowNumbers> = fc.record({
  limit: fc.oneof(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 60 })),
  windowUs: fc.oneof(
    fc.integer({ min: 20, max: 10_000 }).map((n) => n * 7),
    fc.constantFrom(1_000_000, 60_000_000),
  ),
  anchor: fc.constantFrom<WindowNumbers['anchor'][]>('epoch', 'first', 3),
  // The limit of a state's size does not change with an update: all have as many slots.
  slots: fc.constant(7),
})

type Build = (numbers: WindowNumbers) => Record<string, Limit>

const window = ({ windowUs }: WindowNumbers) => `${windowUs}us` as const

const LIMITS: Readonly<Record<string, Build>> = {
  fixedWindow: (numbers) => ({ only: fixedWindow({ limit: numbers.limit, window: window(numbers), anchor: anchorOf(numbers) }) }),
  slidingWindow: (numbers) => ({ only: slidingWindow({ limit: numbers.limit, window: evenly(numbers), slots: numbers.slots }) }),
  slidingLog: (numbers) => ({ only: slidingLog({ limit: numbers.limit, window: window(numbers) }) }),
  'gcra and fixedWindow': (numbers) => ({
    fast: gcra({ burst: Math.ceil(numbers.limit / 2), rate: { permits: numbers.limit, per: `${Math.ceil(numbers.windowUs / 2)}us` } }),
    slow: fixedWindow({ limit: numbers.limit, window: window(numbers) }),
  }),
  'slidingLog and tokenBucket': (numbers) => ({
    log: slidingLog({ limit: numbers.limit, window: window(numbers) }),
    bucket: tokenBucket({ capacity: numbers.limit, refill: { permits: numbers.limit, per: window(numbers) } }),
  }),
}

function anchorOf({ anchor, windowUs }: WindowNumbers): 'epoch' | 'first' | number {
  return typeof anchor === 'number' ? Math.min(anchor / 1000, (windowUs - 1) / 1000) : anchor
}

function evenly({ windowUs, slots }: WindowNumbers): `${number}us` {
  return `${Math.ceil(windowUs / slots) * slots}us`
}

test.each(Object.entries(LIMITS))('%s: every step of 500 schedules is that of the model', async (name, limitsOf) => {
  const coverage = new Coverage()
  const all = schedules(someNumbers, ({ windowUs }) => windowUs)
  const property = fc.asyncProperty(all, (schedule) => {
    const palette = schedule.palette.map(limitsOf)
    const model = new WindowModel(palette, schedule.maxAheadUs, schedule.maxQueue)
    return new Run(schedule, palette, model, coverage).check()
  })
  await fc.assert(property, { seed: SEED, numRuns: traceCount(500) })
  console.log(coverage.table(`waiting at ${name}`))
  for (const [what, share] of Object.entries(HARD_CASES)) expect(coverage.share(what), what).toBeGreaterThanOrEqual(share)
})
