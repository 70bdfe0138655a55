// GCRA: one permit a second, two at once after a rest. The state of a key is one moment in time,
// and when that was written.
import { createLimiter, gcra } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(gcra({ rate: '1/s', burst: 2 }), { clock })

for (const atMs of [100, 100, 100, 1_500]) {
  clock.setMs(atMs)
  const { outcome, remaining, retryAfterMs } = limiter.consume('user:42')
  console.log(`${atMs} ms: ${outcome}, ${remaining} left, retry after ${retryAfterMs} ms`)
}

const turn = limiter.reserve('user:42') // nothing is left, so it is booked ahead
console.log(`booked: act in ${turn.delayMs} ms`)
turn.cancel()
console.log(`cancelled: the next may act in ${limiter.peek('user:42').retryAfterMs} ms`)

// prints:
// 100 ms: allowed, 1 left, retry after 0 ms
// 100 ms: allowed, 0 left, retry after 0 ms
// 100 ms: limited, 0 left, retry after 1000 ms
// 1500 ms: allowed, 0 left, retry after 0 ms
// booked: act in 600 ms
// cancelled: the next may act in 600 ms
