/**
 * knee after an outage, in seconds, and under calls that come together. Seeds: SLUICE_SEED and
 * SLUICE_TRACES.
 */
import { describe, expect, test } from 'vitest'
import { knee } from '../../src/govern/index.ts'
import { governedGate } from './judge.ts'
import { fixedGate, type Scenario, type Stream, simulate } from './simulation.ts'

const first = Number(process.env.SLUICE_SEED ?? 1)
const seedsOf = (count: number) => Array.from({ length: Number(process.env.SLUICE_TRACES ?? count) }, (_, k) => first + k)

const MS = 50
const FROM_S = 20
const BACK_S = 5

interface Outage {
  readonly share: number
  readonly afterMs: number
  readonly workers?: number
  readonly downS?: number
}

const WAYS: Readonly<Record<string, Outage>> = {
  'all fail at once': { share: 1, afterMs: 5 },
  'all fail after 300 ms': { share: 1, afterMs: 300 },
  'all time out after 2 s': { share: 1, afterMs: 2_000 },
  'half fail at once': { share: 0.5, afterMs: 5 },
  'half fail after 300 ms': { share: 0.5, afterMs: 300 },
  'nine of ten fail at once': { share: 0.9, afterMs: 5 },
}

/** When answers came after the outage, in seconds, and how many a second the workers can do. */
function after({ share, afterMs, workers = 16, downS = 30 }: Outage, min: number, seed: number) {
  const capacity = (workers * 1000) / MS
  const endS = FROM_S + downS
  const scenario: Scenario = {
    name: 'outage',
    seconds: endS + 2 * BACK_S,
    server: { workers },
    streams: [{ perSecond: 1.25 * capacity, serviceMs: { kind: 'exponential', ms: MS } }],
    steps: [
      { atS: FROM_S, failing: { share, afterMs } },
      { atS: endS, failing: { share: 0, afterMs } },
    ],
  }
  const { answers } = simulate(scenario, seed, governedGate(knee({ min, max: 1_000 })))
  return { capacity, atS: answers.map(([atMs]) => atMs / 1000 - endS) }
}

function expectBack(outage: Outage, min: number, seed: number): void {
  const { capacity, atS } = after(outage, min, seed)
  const count = (fromS: number, toS: number, of = atS) => of.filter((s) => s >= fromS && s < toS).length
  const seconds = Array.from({ length: 4 * BACK_S - 3 }, (_, k) => count(k / 4, k / 4 + 1) / capacity)
  const said = `seed ${seed}: ${seconds.map((each) => each.toFixed(2)).join(' ')}`
  expect(Math.max(...seconds), `a second within the first five, ${said}`).toBeGreaterThanOrEqual(0.9)
  const without = after({ ...outage, share: 0 }, min, seed).atS
  // One dip in five seconds costs a tenth of them.
  const share = count(BACK_S, 2 * BACK_S) / count(BACK_S, 2 * BACK_S, without)
  expect(share, `the five seconds after those, by those without an outage, ${said}`).toBeGreaterThanOrEqual(0.85)
}

describe.each([1, 5])('knee with min %i answers nine tenths of the capacity within 5 s after an outage of 30 s', (min) => {
  test.each(Object.entries(WAYS))('%s', (_, outage) => {
    for (const seed of seedsOf(12)) expectBack(outage, min, seed)
  })
})

test.each<[string, Partial<Outage>]>([
  ['3 s', { downS: 3 }],
  ['5 minutes', { downS: 300 }],
  ['64 workers', { workers: 64 }],
  ['200 workers', { workers: 200 }],
])('and so with an outage of another kind: %s', (_, outage) => {
  for (const way of [WAYS['all fail at once'], WAYS['all fail after 300 ms']] as Outage[]) {
    for (const seed of seedsOf(2)) expectBack({ ...way, ...outage }, 1, seed)
  }
})

/** Batches of 30, for 16 workers with nowhere else to wait. A limit of 320 is the best. */
const stream: Stream = { perSecond: 256, batch: 30, serviceMs: { kind: 'exponential', ms: MS } }
const batches = { name: 'batches', seconds: 120, server: { workers: 16 } }

test.each([
  ['30 at 0.8 of the capacity', stream],
  ['60 at 1.5 of the capacity', { ...stream, perSecond: 480, batch: 60 }],
])('calls that come together are not taken for a queue that stands: batches of %s', (_, each) => {
  for (const seed of seedsOf(3)) {
    const scenario = { ...batches, streams: [each] }
    const governed = simulate(scenario, seed, governedGate(knee({ min: 1, max: 1_000 })))
    const fixed = simulate(scenario, seed, fixedGate(320))
    expect(governed.goodput / fixed.goodput, `seed ${seed}`).toBeGreaterThanOrEqual(0.65)
    expect(governed.p99Ms / fixed.p99Ms, `seed ${seed}`).toBeLessThanOrEqual(1)
  }
})
