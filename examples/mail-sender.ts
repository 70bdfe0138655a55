// Sending mail or text messages: the provider takes two a second, evenly spaced. The leaky bucket says when each may leave.
import { createLimiter, leakyBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: leave the clock out, and use setTimeout for the delay
const limiter = createLimiter(leakyBucket({ capacity: 4, leak: '2/s' }), { clock })
const log = (text: string) => console.log(`${`${clock.nowUs() / 1000}`.padStart(4)} ms  ${text}`)

function send(message: string): void {
  const { allowed, delayMs, retryAfterMs } = limiter.consume('provider')
  if (allowed) clock.setTimer(() => log(`${message} sent`), delayMs * 1000)
  else {
    log(`${message}: the queue is full, again in ${retryAfterMs} ms`)
    clock.setTimer(() => send(message), retryAfterMs * 1000)
  }
}

for (let k = 1; k <= 6; k++) send(`code ${k}`) // six people ask for a code at the same moment
clock.setMs(10_000)

// prints:
//    0 ms  code 5: the queue is full, again in 500 ms
//    0 ms  code 6: the queue is full, again in 500 ms
//    0 ms  code 1 sent
//  500 ms  code 2 sent
//  500 ms  code 6: the queue is full, again in 500 ms
// 1000 ms  code 3 sent
// 1500 ms  code 4 sent
// 2000 ms  code 5 sent
// 2500 ms  code 6 sent
