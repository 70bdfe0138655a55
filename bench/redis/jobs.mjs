// Everything that is measured: one job is one process, beside the one server that all share.
import { CLIENTS } from './clients.mjs'
import { HEADLINE, TWO_LIMITS } from './contestants.mjs'
import { FLOORS, INCR, MINIMAL } from './floors.mjs'
import { PEER_NAMES } from './peers.mjs'

/** A job: the part, which is the module that measures; the client it uses; and what that part needs. */
export function allJobs(quick) {
  return [
    ...CLIENTS.flatMap((client) => [
      {
        part: 'throughput',
        client,
        contestants: throughputOf(client),
        ...(quick ? { rounds: 5, roundMs: 100 } : { rounds: 15, roundMs: 500 }),
      },
      { part: 'latency', client, contestants: latencyOf(client), rounds: quick ? 20 : 1000, roundCalls: 20 },
      { part: 'denied', client, ...(quick ? { rounds: 5, roundMs: 50 } : { rounds: 15, roundMs: 200 }) },
    ]),
    { part: 'bytes', client: 'node-redis' },
  ]
}

function throughputOf(client) {
  return [...Object.keys(FLOORS), HEADLINE, ...TWO_LIMITS, ...PEER_NAMES[client]]
}

function latencyOf(client) {
  return [MINIMAL, INCR, HEADLINE, ...PEER_NAMES[client]]
}
