import type { Clock } from '../clock/clock.ts'

/**
 * A clock that stands still until it is told to move. Timers fire in order of their time, then of
 * their making.
 */
export interface FakeClock extends Clock {
  /**
   * Sets the time, in milliseconds. It may go back. Timers that are due fire at their own time on
   * the way.
   */
  setMs(ms: number): void
  setUs(us: number): void
  advanceMs(ms: number): void
  /** How many timers are waiting. */
  readonly timers: number
}

interface Timer {
  readonly atUs: number
  readonly fn: () => void
}

export function fakeClock(startMs = 0): FakeClock {
  let nowUs = Math.round(startMs * 1000)
  /** In the order in which they fire. */
  const timers: Timer[] = []

  function setUs(us: number): void {
    for (let [next] = timers; next !== undefined && next.atUs <= us; [next] = timers) {
      timers.shift()
      nowUs = Math.max(nowUs, next.atUs)
      next.fn()
    }
    nowUs = us
  }

  function insert(timer: Timer): void {
    let place = timers.length
    while (place > 0 && (timers[place - 1] as Timer).atUs > timer.atUs) place -= 1
    timers.splice(place, 0, timer)
  }

  return {
    nowUs: () => nowUs,
    setTimer(fn, us) {
      const timer = { atUs: nowUs + us, fn }
      insert(timer)
      return () => {
        const place = timers.indexOf(timer)
        if (place >= 0) timers.splice(place, 1)
      }
    },
    setUs,
    setMs: (ms) => setUs(Math.round(ms * 1000)),
    advanceMs: (ms) => setUs(nowUs + Math.round(ms * 1000)),
    get timers() {
      return timers.length
    },
  }
}
