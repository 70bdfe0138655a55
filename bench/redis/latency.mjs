// One decision at a time: how long each takes, from the call to its answer.
//
// Most of that is two processes waking each other, and how long it takes hangs on which cores they
// happen to be on. So all contestants are in one process, and take turns after a few calls: what
// falls on one falls on all.
import { inTurn } from '../rounds.mjs'
import { spreadOf } from '../statistics.mjs'
import { prepared } from './prepared.mjs'

/**
 * For each contestant the median latency of every round, in nanoseconds, and the share that was
 * allowed. The rounds of the warm-up are not counted: by their end everything is compiled for its
 * use.
 */
export default async function latency({ algorithm, client, contestants, port, rounds, warmUpRounds, roundCalls }) {
  const runners = []
  for (const [database, name] of contestants.entries()) {
    const { made, keyAt } = await prepared({ name, algorithm, client, port, database })
    runners.push({ name, round: oneAtATime(made, keyAt), ns: [], allowed: 0 })
  }
  for (let k = 0; k < warmUpRounds + rounds; k++) {
    await inTurn(runners, k, async (runner) => {
      const { allowed, medianNs } = await runner.round(k * roundCalls, roundCalls)
      runner.ns.push(medianNs)
      runner.allowed += allowed
    })
  }
  const calls = (warmUpRounds + rounds) * roundCalls
  return Object.fromEntries(runners.map(({ name, ns, allowed }) => [name, { ns: ns.slice(-rounds), allowedShare: allowed / calls }]))
}

/**
 * Returns `round(from, calls)`, which asks for one key after the other, and says how many were
 * allowed and the median of how long they took.
 */
function oneAtATime({ ask, isAllowed }, keyAt) {
  return async (from, calls) => {
    const ns = []
    let allowed = 0
    for (let at = from; at < from + calls; at++) {
      const startMs = performance.now()
      const answer = await ask(keyAt(at))
      ns.push((performance.now() - startMs) * 1e6)
      if (isAllowed(answer)) allowed++
    }
    return { allowed, medianNs: spreadOf(ns).median }
  }
}
