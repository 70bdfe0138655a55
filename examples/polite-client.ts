// Calling a service that has limits of its own: a fetch that keeps a pace, and stays away as long
// as it is told to.
import { gcra } from 'sluice'
import { limitedFetch, parseRateLimit } from 'sluice/client'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: leave the clock out

/** Stands for the service: its second call is one too many. */
let calls = 0
async function service(_url: string): Promise<Response> {
  calls += 1
  if (calls === 2) return new Response(null, { status: 429, headers: { 'retry-after': '5', ratelimit: '"default";r=0;t=5' } })
  return new Response(`answer ${calls}`, { headers: { ratelimit: '"default";r=10;t=60' } })
}

const polite = limitedFetch(service, { limit: gcra({ rate: '10/s', burst: 1 }), retries: 1, clock })
const answers = ['a', 'b', 'c'].map(async (path) => {
  const response = await polite(`https://api.example/${path}`)
  console.log(`${path} at ${clock.nowUs() / 1000} ms: ${await response.text()}`)
})
for (let ms = 0; ms < 6_000; ms += 100) {
  for (let k = 0; k < 50; k++) await Promise.resolve()
  clock.advanceMs(100)
}
await Promise.all(answers)

const [told] = parseRateLimit(new Headers({ 'x-ratelimit-limit': '60', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' })).limits
console.log(told?.remaining, told?.resetAfterMs)

// prints:
// a at 0 ms: answer 1
// c at 5100 ms: answer 3
// b at 5200 ms: answer 4
// 0 30000
