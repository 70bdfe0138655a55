import { type Clock, systemClock, trustedClocks } from './clock.ts'

/**
 * A clock that is read once per turn of the event loop: within a turn time stands still, so a burst
 * of decisions pays for one reading. Choose it where a turn is short compared with the limits: a
 * decision may be dated up to one turn too early, which only ever makes a caller wait, and
 * `retryAfterMs` counts from that reading. Not for shared memory, which must read the time after it
 * has seen what other threads wrote. Not for Cloudflare Workers, where time stands still within a
 * turn anyway, and a timer that would end the turn ends with its request.
 */
export function turnClock(clock: Clock = systemClock): Clock {
  let readUs = -1
  const forget = () => {
    readUs = -1
  }
  const turns: Clock = {
    nowUs() {
      if (readUs < 0) {
        readUs = clock.nowUs()
        afterThisTurn(forget)
      }
      return readUs
    },
    setTimer: (fn, us, keepAlive) => clock.setTimer(fn, us, keepAlive),
  }
  if (trustedClocks.has(clock)) trustedClocks.add(turns)
  return turns
}

/**
 * Calls `fn` when the present turn is over. It keeps a process alive for that one turn: otherwise
 * the loop could sleep on an old reading.
 */
export function afterThisTurn(fn: () => void): void {
  const { setImmediate } = globalThis as { setImmediate?: (fn: () => void) => void }
  if (setImmediate === undefined) setTimeout(fn, 0)
  else setImmediate(fn)
}
