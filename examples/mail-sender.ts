// Sending mail or text messages: the provider takes two a second, evenly spaced. Callers that
// `acquire` from a leaky bucket go on at its pace.
import { createLimiter, leakyBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: leave the clock out
const limiter = createLimiter(leakyBucket({ capacity: 4, leak: '2/s' }), { clock })

const send = limiter.wrap('provider', (message: string) => console.log(`${`${clock.nowUs() / 1000}`.padStart(4)} ms  ${message} sent`))

// Six people ask for a code at the same moment.
const sent = [1, 2, 3, 4, 5, 6].map((k) => send(`code ${k}`))
console.log(`${limiter.waiting('provider')} wait, ${limiter.tryAcquire('provider') ? 'one more fits' : 'the bucket is full'}`)
for (let ms = 500; ms <= 2_500; ms += 500) {
  await sent[ms / 500 - 1]
  clock.setMs(ms)
}
await Promise.all(sent)

// prints:
// 5 wait, the bucket is full
//    0 ms  code 1 sent
//  500 ms  code 2 sent
// 1000 ms  code 3 sent
// 1500 ms  code 4 sent
// 2000 ms  code 5 sent
// 2500 ms  code 6 sent
