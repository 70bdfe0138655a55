// Sliding log: never more than three in any second, wherever one looks, because every admission is
// remembered.
import { createLimiter, slidingLog } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(slidingLog({ limit: 3, window: '1s' }), { clock })

const calls = [
  { atMs: 0, cost: 1 },
  { atMs: 100, cost: 1 },
  { atMs: 200, cost: 1 },
  { atMs: 300, cost: 2 }, // until the second oldest has left
  { atMs: 300, cost: 1 }, // until the oldest has left
  { atMs: 1_000, cost: 1 },
]
for (const { atMs, cost } of calls) {
  clock.setMs(atMs)
  const { outcome, remaining, retryAfterMs } = limiter.consume('transfer', cost)
  console.log(`${atMs} ms: cost ${cost} ${outcome}, ${remaining} left, retry after ${retryAfterMs} ms`)
}

// prints:
// 0 ms: cost 1 allowed, 2 left, retry after 0 ms
// 100 ms: cost 1 allowed, 1 left, retry after 0 ms
// 200 ms: cost 1 allowed, 0 left, retry after 0 ms
// 300 ms: cost 2 limited, 0 left, retry after 800 ms
// 300 ms: cost 1 limited, 0 left, retry after 700 ms
// 1000 ms: cost 1 allowed, 0 left, retry after 0 ms
