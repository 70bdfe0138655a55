/** Where time comes from. Only the limiter holds a clock; everything below it is told the time. */
export interface Clock {
  /** The time in whole microseconds. Any origin will do, as long as every user of a store shares it. */
  nowUs(): number
  /** Calls `fn` once, no earlier than `us` microseconds from now if it can help it. Returns what stops it. */
  setTimer(fn: () => void, us: number): () => void
}

/** The default: microseconds since 1970 by the process's monotonic clock. It never steps back, unlike `Date.now()`. */
export const systemClock: Clock = {
  nowUs: () => Math.floor((performance.timeOrigin + performance.now()) * 1000),
  setTimer(fn, us) {
    const timer = setTimeout(fn, Math.ceil(us / 1000))
    return () => clearTimeout(timer)
  },
}
