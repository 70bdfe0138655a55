// The least that threads on one key must do for each call: read the clock, read one word, compare
// and swap it until that succeeds. No table, no record, no wait after a lost race. What two threads
// get done of it beside one is what moving a cache line between processors leaves of them.

/** Makes `round(from, calls)` and counts lost races. */
export function bareLoop(stop) {
  // A cache line of its own, away from the flag.
  const words = new Int32Array(stop)
  const at = 32
  const counted = { collisions: 0 }
  const round = (_from, calls) => {
    let sum = 0
    for (let k = 0; k < calls; k++) {
      sum += performance.now()
      for (;;) {
        const before = Atomics.load(words, at)
        if (Atomics.compareExchange(words, at, before, (before + 1) | 0) === before) break
        counted.collisions++
      }
    }
    return sum
  }
  return { round, counted }
}
