// Jobs per second through the calls that wait, under limits that are never reached: 10,000 calls at
// once, until all have settled.
import { CROWDS, crowdOf, keysOf, WAITERS } from './crowds.mjs'
import { interleaved } from './rounds.mjs'
import { SCENARIOS } from './scenarios.mjs'
import { waiterCall } from './waiters.mjs'

/** Bottleneck gets no limit at all, which is in its favour. */
const NEVER_REACHED = {
  'one-key': { ...SCENARIOS['hot-allowed'].limits, spacing: {} },
  'keys-10k': { ...SCENARIOS['keys-10k'].limits, spacing: {} },
}

export default async function waitingSpeed({ crowd: where, contestants, rounds, roundMs, trialRounds }) {
  const loops = []
  for (const name of contestants) loops.push([name, await crowdsOf(name, where)])
  const speeds = await interleaved(loops, rounds, roundMs, { trialRounds, firstCalls: 1 })
  return Object.fromEntries(Object.entries(speeds).map(([name, speed]) => [name, perJob(speed)]))
}

/**
 * A loop as interleaved rounds want it, with a whole crowd for a call. Every key is called once
 * before: see speed.mjs.
 */
async function crowdsOf(name, where) {
  const { keys: count, key } = CROWDS[where]
  const keys = keysOf(count)
  const call = await waiterCall(name, NEVER_REACHED[where])
  await Promise.all(keys.map((each) => call(each)))
  const crowd = crowdOf(name, call, keys, key)
  return async (_from, crowds) => {
    for (let k = 0; k < crowds; k++) await crowd()
    return crowds
  }
}

function perJob({ calls, ns, shortestMs }) {
  return { calls: calls * WAITERS, ns: ns.map((each) => each / WAITERS), shortestMs }
}
