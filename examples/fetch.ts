// Handlers from Request to Response: Bun.serve, Deno.serve, Next.js route handlers, Workers. Plans
// by API key, several limits in one decision.
import { createLimiter, fixedWindow, gcra } from 'sluice'
import { byHeader, rateLimit, rateLimitOf } from 'sluice/fetch'
import { fakeClock } from 'sluice/testing'

const limiter = createLimiter(
  { burst: gcra({ rate: '1/s', burst: 2 }), daily: fixedWindow({ limit: 100, window: '1d' }) },
  {
    clock: fakeClock(),
    plans: { pro: { burst: gcra({ rate: '50/s', burst: 100 }), daily: fixedWindow({ limit: 10_000, window: '1d' }) } },
  },
)
const plans = new Map([['key-of-paul', 'pro' as const]])

const limited = rateLimit({
  limiter,
  key: byHeader('x-api-key'),
  plan: (request) => plans.get(request.headers.get('x-api-key') ?? ''),
})
// export const GET = handler            in Next.js
// Deno.serve(handler)                   in Deno
// Bun.serve({ fetch: handler })         in Bun
const handler = limited((request: Request) => new Response(`${rateLimitOf(request)?.policy} binds`))

for (const key of ['key-of-ann', 'key-of-paul']) {
  const response = await handler(new Request('https://api.example/', { headers: { 'x-api-key': key } }))
  console.log(key, await response.text())
  console.log(response.headers.get('ratelimit-policy'))
  console.log(response.headers.get('ratelimit'))
}

// prints:
// key-of-ann burst binds
// "burst";q=2;w=2,"daily";q=100;w=86400
// "burst";r=1;t=1,"daily";r=99;t=86400
// key-of-paul burst binds
// "burst";q=100;w=2,"daily";q=10000;w=86400
// "burst";r=99;t=1,"daily";r=9999;t=86400
