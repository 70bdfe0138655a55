// An HTTP API: a token bucket for each user, larger for paying users, and headers that tell a
// client when to come back.
import { createLimiter, tokenBucket } from 'sluice'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock()
const limiter = createLimiter(tokenBucket({ capacity: 3, refill: '2/s' }), {
  clock,
  plans: { pro: tokenBucket({ capacity: 100, refill: '50/s' }) },
})

function handle(user: string, plan?: 'pro'): string {
  const { allowed, limit, remaining, retryAfterMs } = limiter.consume(user, 1, plan === undefined ? {} : { plan })
  if (allowed) return `200, ${remaining} of ${limit} left`
  return `429, Retry-After: ${Math.ceil(retryAfterMs / 1000)} (${retryAfterMs} ms)`
}

for (let k = 0; k < 4; k++) console.log(`ann:  ${handle('ann')}`)
for (let k = 0; k < 4; k++) handle('paul', 'pro')
console.log(`paul: ${handle('paul', 'pro')}`)
clock.advanceMs(500)
console.log(`ann:  ${handle('ann')}, half a second later`)

// prints:
// ann:  200, 2 of 3 left
// ann:  200, 1 of 3 left
// ann:  200, 0 of 3 left
// ann:  429, Retry-After: 1 (500 ms)
// paul: 200, 95 of 100 left
// ann:  200, 0 of 3 left, half a second later
