// Decisions per second with 256 in flight on 10,000 keys, and what each decision costs the server.
import { interleaved } from '../rounds.mjs'
import { SCENARIOS, trafficOf } from '../scenarios.mjs'
import { contestant } from './contestants.mjs'
import { costWatch } from './costs.mjs'
import { inFlight } from './in-flight.mjs'

/** The traffic and the limits of the bench in process: no key of so many is refused. */
const SCENARIO = SCENARIOS['keys-10k']

/** For each contestant: what rounds.mjs measures, and the costs of each round. */
export default async function throughput({ client, contestants, port, rounds, roundMs }) {
  const { keys, order, mask } = trafficOf(SCENARIO)
  const watch = await costWatch(port)
  const lanes = []
  for (const name of contestants) {
    const made = await contestant(name, client, port, SCENARIO.limits)
    // Every key once before the first round: what is measured is the use of keys, not their arrival.
    await inFlight(made, (at) => keys[at])(0, keys.length)
    lanes.push({ name, ...watch(inFlight(made, (at) => keys[order[at & mask]])) })
  }
  const speeds = await interleaved(
    lanes.map(({ name, watched }) => [name, watched]),
    rounds,
    roundMs,
  )
  return Object.fromEntries(lanes.map(({ name, costs }) => [name, { ...speeds[name], costs: costs.slice(-rounds) }]))
}
