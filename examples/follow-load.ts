// A rate that follows the load: full while the event loop is quick, lower the later its timers
// fire, and never in leaps.
import { createLimiter, gcra } from 'sluice'
import { followLoad } from 'sluice/load'
import { fakeClock } from 'sluice/testing'

// In production: leave the clock out, and let the signal be eventLoopDelay().
const clock = fakeClock()
let delayMs = 5

const limiter = createLimiter(gcra({ rate: '100/s', burst: 20 }), { clock })
const following = followLoad(limiter, { min: '20/s', max: '100/s', signal: () => delayMs, from: 20, to: 120, clock })

for (const [seconds, level] of [
  [5, 5],
  [5, 70],
  [5, 70],
  [20, 500],
  [30, 5],
] as const) {
  delayMs = level
  clock.advanceMs(seconds * 1000)
  console.log(`${seconds} s at ${level} ms: ${Math.round(following.rate)}/s`)
}
following.close()

// prints:
// 5 s at 5 ms: 100/s
// 5 s at 70 ms: 60/s
// 5 s at 70 ms: 60/s
// 20 s at 500 ms: 20/s
// 30 s at 5 ms: 100/s
