// Decisions per second with 256 in flight on 10,000 keys, and what each decision costs the server.
import { interleaved } from '../rounds.mjs'
import { ownProcess } from './callers.mjs'
import { costWatch } from './costs.mjs'

/** For each contestant: what rounds.mjs measures, and the costs of each round. */
export default async function throughput({ client, contestants, port, rounds, roundMs }) {
  const watch = await costWatch(port)
  const lanes = []
  // A database each: the server has 10,000 keys to look among, not those of all contestants.
  for (const [database, name] of contestants.entries()) lanes.push({ name, ...watch(await ownProcess({ name, client, port, database })) })
  const speeds = await interleaved(
    lanes.map(({ name, watched }) => [name, watched]),
    rounds,
    roundMs,
  )
  return Object.fromEntries(lanes.map(({ name, costs }) => [name, { ...speeds[name], costs: costs.slice(-rounds) }]))
}
