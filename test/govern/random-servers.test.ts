/**
 * knee on servers that none of its constants was chosen by. Seeds: SLUICE_SEED and SLUICE_TRACES.
 */
import { expect, test } from 'vitest'
import { knee } from '../../src/govern/index.ts'
import { governedGate } from './judge.ts'
import { randomServer } from './random-servers.ts'
import { fixedGate, type Result, type Scenario, simulate } from './simulation.ts'

const first = Number(process.env.SLUICE_SEED ?? 300)
const count = Number(process.env.SLUICE_TRACES ?? 8)

/**
 * The lowest of these limits whose goodput is within half a hundredth of the best. As shares of the
 * workers.
 */
const CANDIDATES = [0.5, 1, 1.2, 1.5, 2, 4, 10]

function best(scenario: Scenario): Result {
  const { workers } = scenario.server
  const found = CANDIDATES.map((share) => simulate(scenario, 1, fixedGate(Math.ceil(share * workers))))
  const most = Math.max(...found.map(({ goodput }) => goodput))
  return found.find(({ goodput }) => goodput >= 0.995 * most) as Result
}

test('nine of ten servers made at random have nine tenths of the best goodput and three times the p99, and none less than three quarters', () => {
  const missed: string[] = []
  for (let seed = first; seed < first + count; seed++) {
    const scenario = randomServer(seed)
    const fixed = best(scenario)
    const governed = simulate(scenario, 1, governedGate(knee({ min: 1, max: 1_000 })))
    const share = governed.goodput / fixed.goodput
    expect(share, scenario.name).toBeGreaterThan(0.75)
    if (share < 0.9 || governed.p99Ms > 3 * fixed.p99Ms) missed.push(`${scenario.name}: ${share.toFixed(3)} ${JSON.stringify(scenario)}`)
  }
  expect(missed.length, missed.join('\n')).toBeLessThanOrEqual(count / 10)
})
