/** Scenarios from data files, the best fixed limit for each, and a governor in its place. */
import { readdirSync, readFileSync } from 'node:fs'
import { type ChangeEvent, type Governor, type GovernorState, govern } from '../../src/govern/index.ts'
import { HandMadeLimiter } from './hand-made-limiter.ts'
import { fixedGate, type GateOf, type Scenario, simulate } from './simulation.ts'

const folder = new URL('./scenarios/', import.meta.url)

export interface Data extends Scenario {
  /** What it is about. */
  readonly why: string
  /** The best fixed limit, by `searched`. */
  readonly best: number
}

export const scenarios: readonly Data[] = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Data)

const CANDIDATES = [1, 2, 3, 4, 6, 8, 10, 12, 14, 17, 20, 22, 24, 26, 28, 32, 36, 42, 50, 60, 80, 110, 150, 200]

/** The lowest limit whose goodput is within half a hundredth of the best. */
export function searched(scenario: Scenario, seed = 1): number {
  const found = CANDIDATES.map((limit) => ({ limit, goodput: simulate(scenario, seed, fixedGate(limit)).goodput }))
  const most = Math.max(...found.map(({ goodput }) => goodput))
  return (found.find(({ goodput }) => goodput >= 0.995 * most) as { limit: number }).limit
}

/** A hand-made limiter in front of the server, and a governor that sets it. */
export function governedGate<S extends GovernorState>(by: Governor<S>, changes: ChangeEvent[] = []): GateOf {
  return (time) => {
    const limiter = new HandMadeLimiter(by.initial.limit)
    govern(limiter, { limit: 'inflight', by, clock: time, onChange: (event) => changes.push(event) })
    return { tryEnter: () => limiter.tryAcquire(), leave: (heldMs, outcome) => limiter.release(heldMs, outcome) }
  }
}
