// Leaky bucket: a queue of three that drains at one a second. Callers that wait out `delayMs` leave
// it evenly spaced.
import { createLimiter, leakyBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(leakyBucket({ capacity: 3, leak: '1/s' }), { clock })

for (const job of ['A', 'B', 'C', 'D']) {
  const { allowed, delayMs, retryAfterMs } = limiter.consume('queue')
  if (allowed) clock.setTimer(() => console.log(`${clock.nowUs() / 1000} ms: ${job} leaves`), delayMs * 1000)
  else console.log(`${clock.nowUs() / 1000} ms: ${job} does not fit, room in ${retryAfterMs} ms`)
}
clock.setMs(5_000)

// As a meter: yes or no, without waiting. Then it decides like a token bucket of the same numbers.
console.log([1, 2, 3, 4].map(() => limiter.tryAcquire('meter')).join(' '))

// prints:
// 0 ms: D does not fit, room in 1000 ms
// 0 ms: A leaves
// 1000 ms: B leaves
// 2000 ms: C leaves
// true true true false
