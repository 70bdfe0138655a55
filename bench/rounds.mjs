// Interleaved rounds: the contestants take turns many times, so that what the machine does
// meanwhile falls on all of them alike.

/**
 * How long a contestant runs by itself before anything counts: by then its code is compiled for its
 * use.
 */
const WARM_UP_ROUNDS = 3
/** Interleaved rounds that are not counted either: they find out how many calls fill a round. */
const TRIAL_ROUNDS = 2
/** How many calls the first round of the warm-up makes. */
const FIRST_CALLS = 1000

/**
 * `loops` are a name, its loop, see loop.mjs, and what is done before each round and not measured,
 * if anything. Returns for each name the calls of a round, the nanoseconds that one call took in
 * each round, the shortest round, and the share of the calls that were allowed.
 */
export async function interleaved(
  loops,
  rounds,
  roundMs,
  { warmUpRounds = WARM_UP_ROUNDS, trialRounds = TRIAL_ROUNDS, firstCalls = FIRST_CALLS } = {},
) {
  const contestants = loops.map(([name, loop, before]) => ({
    name,
    loop,
    before,
    calls: firstCalls,
    from: 0,
    asked: 0,
    allowed: 0,
    fastestNs: Number.POSITIVE_INFINITY,
  }))
  for (const contestant of contestants) await warmUp(contestant, roundMs, warmUpRounds)
  for (let k = 0; k < trialRounds; k++) await inTurn(contestants, k, nsPerCall)
  for (const contestant of contestants) contestant.calls = callsFor(contestant, roundMs)
  const measured = contestants.map(() => [])
  for (let k = 0; k < rounds; k++) {
    const ns = await inTurn(contestants, k, nsPerCall)
    for (const [contestant, each] of measured.entries()) each.push(ns[contestant])
  }
  return Object.fromEntries(contestants.map((contestant, k) => [contestant.name, resultOf(contestant, measured[k])]))
}

async function warmUp(contestant, roundMs, warmUpRounds) {
  for (let warmMs = 0; warmMs < roundMs * warmUpRounds; ) {
    const ns = await nsPerCall(contestant)
    warmMs += (ns * contestant.calls) / 1e6
    // Doubled at most: the first calls are slow, and their speed says little about the next.
    contestant.calls = Math.min(contestant.calls * 2, callsFor(contestant, roundMs))
  }
}

/** By the fastest so far, so that no round comes out too short. */
function callsFor({ fastestNs }, roundMs) {
  return Math.ceil((roundMs * 1e6) / fastestNs)
}

/**
 * Round `k` of every contestant, another one first each time. Returns what was measured, in the
 * order of the contestants.
 */
export async function inTurn(contestants, k, measure) {
  const measured = []
  for (let turn = 0; turn < contestants.length; turn++) {
    const contestant = (k + turn) % contestants.length
    measured[contestant] = await measure(contestants[contestant])
  }
  return measured
}

async function nsPerCall(contestant) {
  await contestant.before?.()
  // Garbage of the others is swept now, not in this round.
  globalThis.gc?.({ type: 'minor' })
  const startMs = performance.now()
  const allowed = await contestant.loop(contestant.from, contestant.calls)
  const ns = ((performance.now() - startMs) * 1e6) / contestant.calls
  contestant.from = (contestant.from + contestant.calls) & 0x3fff_ffff
  contestant.asked += contestant.calls
  contestant.allowed += allowed
  contestant.fastestNs = Math.min(contestant.fastestNs, ns)
  return ns
}

function resultOf({ calls, asked, allowed }, ns) {
  return { calls, ns, shortestMs: (Math.min(...ns) * calls) / 1e6, allowedShare: allowed / asked }
}
