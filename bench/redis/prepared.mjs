// A contestant with its keys: what both ways of calling it, many at once and one at a time, begin
// with.
import { SCENARIOS, trafficOf } from '../scenarios.mjs'
import { contestant } from './contestants.mjs'
import { copyTemplate } from './held.mjs'
import { inFlight } from './in-flight.mjs'

/** The traffic of the bench in process. */
const SCENARIO = SCENARIOS['keys-10k']
const FILLING = 256

/**
 * Returns the contestant; `keyAt(at)`, the key of its call number `at`; and `refill()`, which makes
 * all keys hold again what they held at first, where calls make it more.
 */
export async function prepared({ name, algorithm, ...place }) {
  const { keys, order, mask } = trafficOf(SCENARIO)
  const made = await contestant(name, algorithm, place)
  const fill = async () => {
    if (made.hold === undefined) await inFlight(made, (at) => keys[at], FILLING)(0, keys.length)
    else await copyTemplate(made.send, 'user:', keys.length)
  }
  await made.hold?.()
  // Every key once before the first round: what is measured is the use of keys, not their arrival.
  await fill()
  const refill = algorithm === 'slidingLog' && made.hold !== undefined ? fill : async () => {}
  return { made, keyAt: (at) => keys[order[at & mask]], refill }
}
