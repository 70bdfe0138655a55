// Everything that is measured: one job is one process, beside the one server that all share.
import { CLIENTS } from './clients.mjs'
import { contestantsOf, othersOf } from './contestants.mjs'
import { INCR } from './floors.mjs'
import { GROWTHS } from './growth-cases.mjs'
import { IN_FLIGHT } from './in-flight.mjs'
import { ALGORITHMS } from './limits.mjs'

/**
 * A job: the part, which is the module that measures; the algorithm and the client, if it is for
 * one; and what that part needs.
 */
export function allJobs(quick) {
  return [
    ...forEach('throughput', (algorithm, client) => ({
      contestants: contestantsOf(algorithm, client),
      others: othersOf(algorithm),
      atOnce: IN_FLIGHT,
      main: quick ? { rounds: 3, roundMs: 40 } : { rounds: 15, roundMs: 300 },
      besides: { warmUpRounds: 1, trialRounds: 1, ...(quick ? { rounds: 3, roundMs: 30 } : { rounds: 7, roundMs: 200 }) },
    })),
    ...forEach('latency', (algorithm, client) => ({
      contestants: [...contestantsOf(algorithm, client), ...(algorithm === 'gcra' ? [INCR] : [])],
      roundCalls: 20,
      ...(quick ? { rounds: 20, warmUpRounds: 5 } : { rounds: 700, warmUpRounds: 150 }),
    })),
    ...CLIENTS.map((client) => ({ part: 'denied', client, ...(quick ? { rounds: 5, roundMs: 50 } : { rounds: 15, roundMs: 200 }) })),
    { part: 'bytes', client: 'node-redis' },
    ...Object.keys(GROWTHS).map((growth) => ({ part: 'growth', growth, client: 'ioredis', quick })),
  ]
}

function forEach(part, rest) {
  return CLIENTS.flatMap((client) => ALGORITHMS.map((algorithm) => ({ part, algorithm, client, ...rest(algorithm, client) })))
}
