// A contestant in a process of its own, which calls it when it is told to. Started by callers.mjs with { name, client, port, oneByOne }.
import { SCENARIOS, trafficOf } from '../scenarios.mjs'
import { contestant } from './contestants.mjs'
import { inFlight, oneAtATime } from './in-flight.mjs'

/** The traffic and the limits of the bench in process: no key of so many is refused. */
const SCENARIO = SCENARIOS['keys-10k']

const { name, client, port, oneByOne } = JSON.parse(process.argv[2])
const { keys, order, mask } = trafficOf(SCENARIO)
const made = await contestant(name, client, port, SCENARIO.limits)
// Every key once before the first round: what is measured is the use of keys, not their arrival.
await inFlight(made, (at) => keys[at])(0, keys.length)
const round = (oneByOne ? oneAtATime : inFlight)(made, (at) => keys[order[at & mask]])

process.on('message', async ({ from, calls }) => {
  globalThis.gc({ type: 'minor' })
  process.send(await round(from, calls))
})
process.send('ready')
