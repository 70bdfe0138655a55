import type { Clock } from '../clock/clock.ts'

/** A clock that stands still until it is told to move. Timers fire in order of their time, then of their making. */
export interface FakeClock extends Clock {
  /** Sets the time, in milliseconds. It may go back. Timers that are due fire at their own time on the way. */
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
  let timers: Timer[] = []

  function setUs(us: number): void {
    for (let next = earliest(us); next !== undefined; next = earliest(us)) {
      timers = timers.filter((timer) => timer !== next)
      nowUs = Math.max(nowUs, next.atUs)
      next.fn()
    }
    nowUs = us
  }

  function earliest(byUs: number): Timer | undefined {
    return timers.filter(({ atUs }) => atUs <= byUs).sort((a, b) => a.atUs - b.atUs)[0]
  }

  return {
    nowUs: () => nowUs,
    setTimer(fn, us) {
      const timer = { atUs: nowUs + us, fn }
      timers.push(timer)
      return () => {
        timers = timers.filter((other) => other !== timer)
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
