// Token bucket: ten tokens at most, five come back each second. Quiet times are saved up, then
// spent at once.
import { createLimiter, tokenBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(tokenBucket({ capacity: 10, refill: '5/s' }), { clock })

function ask(tokens: number) {
  const decision = limiter.consume('report', tokens)
  const told = decision.outcome === 'limited' ? `, in ${decision.retryAfterMs} ms` : ''
  console.log(`${clock.nowUs() / 1000} ms: ${tokens} tokens ${decision.outcome}${told}, ${decision.remaining} left`)
  return decision
}

ask(7)
ask(5) // two are missing, 200 ms each
clock.setMs(1_000)
const taken = ask(5) // there are eight by now: three were left, five came back
ask(11) // more than the bucket ever holds
taken.settle(0) // the report was in the cache after all
ask(8)

// prints:
// 0 ms: 7 tokens allowed, 3 left
// 0 ms: 5 tokens limited, in 400 ms, 3 left
// 1000 ms: 5 tokens allowed, 3 left
// 1000 ms: 11 tokens impossible, 3 left
// 1000 ms: 8 tokens allowed, 0 left
