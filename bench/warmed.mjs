// A process in which all six algorithms have run: the code that they share is compiled for all of
// them, not for the one that is measured.
import { contestant } from './contestants.mjs'
import { TRY_ACQUIRE } from './jobs.mjs'
import { loopOf } from './loop.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'

/** In turns, so that none of them is compiled for before the others are seen. */
const TURNS = 10
const CALLS_PER_TURN = 50_000

/**
 * Calls a limiter of each algorithm, as the one that is measured will be called, on 10,000 keys.
 */
export async function warmUpAll(scenario) {
  const { limits } = SCENARIOS[scenario]
  const { key, ...shape } = SCENARIOS['keys-10k']
  const traffic = trafficOf(shape)
  const loops = []
  for (const name of TRY_ACQUIRE) loops.push(loopOf(await contestant(name, limits), traffic, key))
  for (let turn = 0; turn < TURNS; turn++) for (const loop of loops) loop(turn * CALLS_PER_TURN, CALLS_PER_TURN)
}
