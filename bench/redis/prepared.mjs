// A contestant with its keys: what both ways of calling it, many at once and one at a time, begin with.
import { SCENARIOS, trafficOf } from '../scenarios.mjs'
import { contestant } from './contestants.mjs'
import { inFlight } from './in-flight.mjs'

/** The traffic and the limits of the bench in process: no key of so many is refused. */
const SCENARIO = SCENARIOS['keys-10k']

/** Returns the contestant, and `keyAt(at)`, the key of its call number `at`. */
export async function prepared({ name, client, port, database }) {
  const { keys, order, mask } = trafficOf(SCENARIO)
  const made = await contestant(name, { client, port, database }, SCENARIO.limits)
  // Every key once before the first round: what is measured is the use of keys, not their arrival.
  await inFlight(made, (at) => keys[at])(0, keys.length)
  return { made, keyAt: (at) => keys[order[at & mask]] }
}
