// One decision at a time: how long each takes, from the call to its answer.
import { interleaved } from '../rounds.mjs'
import { ownProcess } from './callers.mjs'

/** For each contestant the median latency of every round, in nanoseconds, and the share that was allowed. */
export default async function latency({ client, contestants, port, rounds, roundMs }) {
  const lanes = []
  for (const name of contestants) lanes.push({ name, ...noted(await ownProcess({ name, client, port, oneByOne: true })) })
  const speeds = await interleaved(
    lanes.map(({ name, round }) => [name, round]),
    rounds,
    roundMs,
    { firstCalls: 100 },
  )
  return Object.fromEntries(lanes.map(({ name, medians }) => [name, { ...speeds[name], ns: medians.slice(-rounds) }]))
}

function noted(roundOf) {
  const medians = []
  const round = async (from, calls) => {
    const { allowed, medianNs } = await roundOf(from, calls)
    medians.push(medianNs)
    return allowed
  }
  return { round, medians }
}
