/**
 * knee on data files, through `govern`, beside the best fixed limit. Seeds: SLUICE_SEED and
 * SLUICE_TRACES.
 */
import { expect, test } from 'vitest'
import { type ChangeEvent, knee } from '../../src/govern/index.ts'
import { governedGate, scenarios, searched } from './judge.ts'
import { fixedGate, percentile, type Result, type Scenario, type Stream, simulate } from './simulation.ts'

const first = Number(process.env.SLUICE_SEED ?? 11)
const seeds = Array.from({ length: Number(process.env.SLUICE_TRACES ?? 1) }, (_, k) => first + k)

const byKnee = () => governedGate(knee({ min: 1, max: 1_000 }))

test.each(scenarios)('$name: $why', ({ best, ...scenario }) => {
  for (const seed of seeds) {
    const governed = simulate(scenario, seed, byKnee())
    const fixed = simulate(scenario, seed, fixedGate(best))
    expect(governed.goodput / fixed.goodput, `goodput with seed ${seed}`).toBeGreaterThanOrEqual(0.9)
    expect(governed.p99Ms / fixed.p99Ms, `p99 with seed ${seed}`).toBeLessThanOrEqual(3)
  }
})

/** A window is half a second at least; each change of the limit adds what it takes to settle. */
const WINDOWS_S = 30 * 0.7

test.each(scenarios.filter(({ steps = [] }) => steps.some(({ atS }) => atS > 0)))('$name: back within 30 windows of each step', (data) => {
  const { best, ...scenario } = data
  for (const seed of seeds) {
    const governed = simulate(scenario, seed, byKnee())
    const fixed = simulate(scenario, seed, fixedGate(best))
    for (const { atS } of scenario.steps ?? []) {
      const [from, to] = [atS + WINDOWS_S, atS + 30]
      const [ours, theirs] = [within(governed, from, to), within(fixed, from, to)]
      expect(ours.goodput / theirs.goodput, `seed ${seed}, step at ${atS} s`).toBeGreaterThanOrEqual(0.85)
      expect(ours.p99Ms / theirs.p99Ms, `seed ${seed}, step at ${atS} s`).toBeLessThanOrEqual(3)
    }
  }
})

function within({ answers }: Result, fromS: number, toS: number) {
  const took = answers.filter(([atMs]) => atMs >= fromS * 1000 && atMs < toS * 1000).map(([, tookMs]) => tookMs)
  return { goodput: took.length, p99Ms: percentile(took, 0.99) }
}

test('workers that leave while the limit falls are not taken for slower calls', () => {
  const scenario = { ...(scenarios.find(({ name }) => name === 'jitter') as Scenario), seconds: 42, steps: [{ atS: 22, workers: 8 }] }
  // Seeds by which the limit is falling at 22 s.
  for (const seed of [10, 12]) {
    const changes: ChangeEvent[] = []
    simulate(
      { ...scenario, streams: [{ ...scenario.streams[0], perSecond: 700 } as Stream] },
      seed,
      governedGate(knee({ min: 1, max: 200 }), changes),
    )
    const limits = changes.filter(({ window }) => window.atMs > 30_000).map(({ to }) => to)
    expect(Math.max(...limits), `seed ${seed}`).toBeLessThanOrEqual(16)
  }
})

const all = process.env.SLUICE_SEARCH === 'all'

test.each(scenarios.filter(({ name }) => all || name === 'knee'))('$name: a search finds the best limit that its file names', (data) => {
  const { best, ...scenario } = data
  if (all) console.log(data.name, searched(scenario))
  else expect(searched(scenario)).toBe(best)
})

test('the same seed gives the same changes of the limit, and each has its reason', () => {
  const scenario = scenarios.find(({ name }) => name === 'jitter') as Scenario
  const play = () => {
    const changes: ChangeEvent[] = []
    simulate({ ...scenario, seconds: 20 }, 3, governedGate(knee({ min: 1, max: 1_000 }), changes))
    return changes
  }
  const changes = play()
  expect(play()).toEqual(changes)
  expect(changes.length).toBeGreaterThan(3)
  for (const { reason, from, to } of changes) expect([reason.length > 0, from === to]).toEqual([true, false])
})

test('work is conserved: all in flight over time is the sum of all stays', () => {
  const scenario = { ...(scenarios.find(({ name }) => name === 'jitter') as Scenario), seconds: 10 }
  let [area, stays, inflight, lastMs] = [0, 0, 0, 0]
  simulate(scenario, 5, (time) => {
    const gate = fixedGate(30)(time)
    const step = (by: number) => {
      area += inflight * (time.nowMs - lastMs)
      lastMs = time.nowMs
      inflight += by
    }
    return {
      tryEnter: () => {
        const isIn = gate.tryEnter()
        if (isIn) step(1)
        if (isIn) stays -= time.nowMs
        return isIn
      },
      leave: (heldMs, outcome) => {
        step(-1)
        stays += time.nowMs
        gate.leave(heldMs, outcome)
      },
    }
  })
  expect(area).toBeCloseTo(stays + inflight * lastMs, 3)
})
