/**
 * Where time comes from. A limiter has one clock, and hands it to its store. Algorithms get the
 * time as an argument. Stores use the system clock for times of their own: how long an answer is
 * under way, how long a refusal is kept.
 */
export interface Clock {
  /**
   * The time in whole microseconds. Any origin will do, as long as every user of a store shares it.
   * It is read in the middle of a decision, so it must not call the limiter that reads it.
   */
  nowUs(): number
  /**
   * Calls `fn` once, no earlier than `us` microseconds from now if it can help it. Returns what
   * stops it. `keepAlive` (true unless told otherwise): whether a process stays alive for it.
   */
  setTimer(fn: () => void, us: number, keepAlive?: boolean): StopTimer
}

/** Stops a timer. Where a clock can, `keepAlive` says anew whether a process stays alive for it. */
export interface StopTimer {
  (): void
  readonly keepAlive?: (stays: boolean) => void
}

// Held on to, because in Node the global itself is looked up through a getter.
const monotonic = performance
// React Native may not tell it.
const originMs: number = monotonic.timeOrigin ?? Date.now() - monotonic.now()

type HrTime = () => [seconds: number, nanoseconds: number]

/**
 * Where there is one, as in Node: the same clock as `performance.now()`, read in three quarters of
 * the time and without a number on the heap.
 */
const hrtime = (globalThis as { process?: { hrtime?: HrTime } }).process?.hrtime

/** A longer one would fire at once: waits beyond it are made of several. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * The default: microseconds since 1970 by the process's monotonic clock. It never steps back,
 * unlike `Date.now()`.
 */
export const systemClock: Clock = {
  nowUs: hrtime === undefined ? nowByPerformance : nowByHrtime(hrtime),
  setTimer(fn, us, keepAlive = true) {
    let leftMs = Math.ceil(us / 1000)
    let stays = keepAlive
    let timer: ReturnType<typeof setTimeout>
    const wait = () => {
      const nextMs = Math.min(leftMs, LONGEST_TIMER_MS)
      leftMs -= nextMs
      timer = setTimeout(leftMs > 0 ? wait : fn, nextMs)
      if (!stays) keep(timer, false)
    }
    wait()
    const keepAliveOrNot = (nowStays: boolean) => {
      stays = nowStays
      keep(timer, stays)
    }
    return Object.assign(() => clearTimeout(timer), { keepAlive: keepAliveOrNot })
  },
}

/** In browsers a timer is a number, and nothing keeps a page alive. */
function keep(timer: { ref?(): unknown; unref?(): unknown } | number, stays: boolean): void {
  if (typeof timer === 'number') return
  if (stays) timer.ref?.()
  else timer.unref?.()
}

function nowByPerformance(): number {
  return Math.floor((originMs + monotonic.now()) * 1000)
}

/**
 * Its seconds count from anywhere: what is missing to 1970 is read once, the greatest of a few
 * readings being the least disturbed.
 */
function nowByHrtime(read: HrTime): () => number {
  const sinceUs = () => {
    const nowUs = nowByPerformance()
    const [seconds, nanoseconds] = read()
    return nowUs - seconds * 1_000_000 - Math.floor(nanoseconds / 1000)
  }
  const originUs = Math.max(sinceUs(), sinceUs(), sinceUs())
  return () => {
    const time = read()
    return originUs + time[0] * 1_000_000 + ((time[1] / 1000) | 0)
  }
}

/**
 * The wall clock goes on while a machine is suspended. Any other clock is all there is.
 */
export function wallUs(clock: Clock): number {
  return clock === systemClock ? Date.now() * 1000 : clock.nowUs()
}

/** Clocks whose readings need no checking, because they are ours. */
export const trustedClocks: WeakSet<Clock> = new WeakSet([systemClock])
