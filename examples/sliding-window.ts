// Sliding window: ten a second, counted in two slots of half a second. The oldest slot counts by
// the part still in the window.
import { createLimiter, slidingWindow } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(slidingWindow({ limit: 10, window: '1s', slots: 2 }), { clock })

clock.setMs(400)
console.log(`400 ms: ten at once ${limiter.consume('api', 10).outcome}`)

for (const atMs of [700, 1_049.999, 1_050, 1_250, 1_500]) {
  clock.setMs(atMs)
  const { outcome, remaining, retryAfterMs } = limiter.peek('api')
  console.log(`${atMs} ms: one more ${outcome}, ${remaining} left, retry after ${retryAfterMs} ms`)
}

// prints:
// 400 ms: ten at once allowed
// 700 ms: one more limited, 0 left, retry after 350 ms
// 1049.999 ms: one more limited, 0 left, retry after 0.001 ms
// 1050 ms: one more allowed, 1 left, retry after 0 ms
// 1250 ms: one more allowed, 5 left, retry after 0 ms
// 1500 ms: one more allowed, 10 left, retry after 0 ms
