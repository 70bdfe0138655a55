// One decision at a time: how long each takes, from the call to its answer.
import { interleaved } from '../rounds.mjs'
import { SCENARIOS, trafficOf } from '../scenarios.mjs'
import { spreadOf } from '../statistics.mjs'
import { contestant } from './contestants.mjs'

const SCENARIO = SCENARIOS['keys-10k']

/** For each contestant the median latency of every round, in nanoseconds, and the share that was allowed. */
export default async function latency({ client, contestants, port, rounds, roundMs }) {
  const { keys, order, mask } = trafficOf(SCENARIO)
  const lanes = []
  for (const name of contestants) {
    const made = await contestant(name, client, port, SCENARIO.limits)
    lanes.push({ name, ...oneAtATime(made, (at) => keys[order[at & mask]]) })
  }
  const speeds = await interleaved(
    lanes.map(({ name, round }) => [name, round]),
    rounds,
    roundMs,
    { firstCalls: 100 },
  )
  return Object.fromEntries(lanes.map(({ name, medians }) => [name, { ...speeds[name], ns: medians.slice(-rounds) }]))
}

function oneAtATime({ ask, isAllowed }, keyAt) {
  const medians = []
  const round = async (from, calls) => {
    const ns = []
    let allowed = 0
    for (let at = from; at < from + calls; at++) {
      const startMs = performance.now()
      const answer = await ask(keyAt(at))
      ns.push((performance.now() - startMs) * 1e6)
      if (isAllowed(answer)) allowed++
    }
    medians.push(spreadOf(ns).median)
    return allowed
  }
  return { round, medians }
}
