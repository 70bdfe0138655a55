// Interleaved rounds: the contestants take turns many times, so that what the machine does meanwhile falls on all of them alike.

/** How long a contestant runs by itself before anything counts: by then its code is compiled for its use. */
const WARM_UP_ROUNDS = 3
/** Interleaved rounds that are not counted either: they find out how many calls fill a round. */
const TRIAL_ROUNDS = 2
/** How many calls the first round of the warm-up makes. */
const FIRST_CALLS = 1000

/**
 * `loops` are a name, its loop, see loop.mjs, and what is done before each round and not measured, if anything. Returns for each name the calls
 * of a round, the nanoseconds that one call took in each round, the shortest round, and the share of the calls that were allowed.
 */
export async function interleaved(
  loops,
  rounds,
  roundMs,
  { warmUpRounds = WARM_UP_ROUNDS, trialRounds = TRIAL_ROUNDS, firstCalls = FIRST_CALLS } = {},
) {
  const lanes = loops.map(([name, loop, before]) => ({
    name,
    loop,
    before,
    calls: firstCalls,
    from: 0,
    asked: 0,
    allowed: 0,
    fastestNs: Number.POSITIVE_INFINITY,
  }))
  for (const lane of lanes) await warmUp(lane, roundMs, warmUpRounds)
  for (let k = 0; k < trialRounds; k++) await inTurn(lanes, k, nsPerCall)
  for (const lane of lanes) lane.calls = callsFor(lane, roundMs)
  const measured = lanes.map(() => [])
  for (let k = 0; k < rounds; k++) {
    const ns = await inTurn(lanes, k, nsPerCall)
    for (const [lane, each] of measured.entries()) each.push(ns[lane])
  }
  return Object.fromEntries(lanes.map((lane, k) => [lane.name, resultOf(lane, measured[k])]))
}

async function warmUp(lane, roundMs, warmUpRounds) {
  for (let warmMs = 0; warmMs < roundMs * warmUpRounds; ) {
    const ns = await nsPerCall(lane)
    warmMs += (ns * lane.calls) / 1e6
    // Doubled at most: the first calls are slow, and their speed says little about the next.
    lane.calls = Math.min(lane.calls * 2, callsFor(lane, roundMs))
  }
}

/** By the fastest so far, so that no round comes out too short. */
function callsFor({ fastestNs }, roundMs) {
  return Math.ceil((roundMs * 1e6) / fastestNs)
}

/** Round `k` of every contestant, another one first each time. Returns what was measured, in the order of the lanes. */
export async function inTurn(lanes, k, measure) {
  const measured = []
  for (let turn = 0; turn < lanes.length; turn++) {
    const lane = (k + turn) % lanes.length
    measured[lane] = await measure(lanes[lane])
  }
  return measured
}

async function nsPerCall(lane) {
  await lane.before?.()
  // What the others left behind is swept now, not in this round.
  globalThis.gc?.({ type: 'minor' })
  const startMs = performance.now()
  const allowed = await lane.loop(lane.from, lane.calls)
  const ns = ((performance.now() - startMs) * 1e6) / lane.calls
  lane.from = (lane.from + lane.calls) & 0x3fff_ffff
  lane.asked += lane.calls
  lane.allowed += allowed
  lane.fastestNs = Math.min(lane.fastestNs, ns)
  return ns
}

function resultOf({ calls, asked, allowed }, ns) {
  return { calls, ns, shortestMs: (Math.min(...ns) * calls) / 1e6, allowedShare: allowed / asked }
}
