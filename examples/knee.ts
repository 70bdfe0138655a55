// How many calls at once is best for a server? knee finds out: 20 workers of 50 ms, then half of
// them, then all again.
import { type KneeState, knee } from 'sluice/load'

const governor = knee({ min: 1, max: 1_000 })
let state: KneeState = governor.initial

/**
 * The figures of a server under endless demand in a window of a second: calls beyond its workers
 * only wait.
 */
function windowOf(workers: number, inflight: number) {
  const latencyMs = 50 * Math.max(1, inflight / workers)
  return { atMs: 0, durationMs: 1_000, ok: Math.min(inflight, workers) * 20, dropped: 0, latencyMs, inflight }
}

for (const workers of [20, 10, 20]) {
  for (let k = 0; k < 20; k++) state = governor.next(state, windowOf(workers, state.limit))
  console.log(`${workers} workers: ${state.limit} at once, ${state.reason}`)
}

// prints:
// 20 workers: 26 at once, at the knee
// 10 workers: 14 at once, at the knee
// 20 workers: 25 at once, at the knee
