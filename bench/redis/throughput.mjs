// Decisions per second of one algorithm with so many in flight on 10,000 keys, and what each
// decision costs the server.
import { interleaved } from '../rounds.mjs'
import { ownProcess } from './callers.mjs'
import { costWatch } from './costs.mjs'
import { MAIN } from './in-flight.mjs'

/**
 * By how many are in flight, for each contestant: what rounds.mjs measures, and the costs of each
 * round.
 */
export default async function throughput({ algorithm, client, contestants, others, atOnce, port, ...lengths }) {
  const watch = await costWatch(port)
  const callers = {}
  // A database each: the server has 10,000 keys to look among, not those of all contestants.
  for (const [database, name] of [...contestants, ...others].entries())
    callers[name] = await ownProcess({ name, algorithm, client, port, database })
  const measured = {}
  // The main one first, for which everything is warmed up at length.
  for (const count of [MAIN, ...atOnce.filter((each) => each !== MAIN)]) {
    const names = count === MAIN ? [...contestants, ...others] : contestants
    measured[count] = await measuredAt(count, names, callers, watch, count === MAIN ? lengths.main : lengths.besides)
  }
  return measured
}

async function measuredAt(count, names, callers, watch, { rounds, roundMs, ...options }) {
  const watches = names.map((name) => ({ name, ...watch((from, calls) => callers[name].round(from, calls, count)) }))
  const loops = watches.map(({ name, watched }) => [name, watched, callers[name].refill])
  const speeds = await interleaved(loops, rounds, roundMs, options)
  return Object.fromEntries(watches.map(({ name, costs }) => [name, { ...speeds[name], costs: costs.slice(-rounds) }]))
}
