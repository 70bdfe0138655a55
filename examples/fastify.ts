// Fastify: a plugin for the scope it is registered in. Routes may cost more, have a limit of their
// own, or go without.
import fastify from 'fastify'
import { createLimiter, gcra, slidingLog } from 'sluice'
import { rateLimit } from 'sluice/fastify'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: leave the clock out
const api = createLimiter(gcra({ rate: '10/s', burst: 10 }), { clock })
const logins = createLimiter(slidingLog({ limit: 2, window: '15min' }), { clock })

const app = fastify()
await app.register(rateLimit({ limiter: api }))
app.get('/', () => 'home')
app.get('/report', { config: { rateLimit: { cost: 6 } } }, () => 'report')
app.get('/login', { config: { rateLimit: { limiter: logins } } }, () => 'welcome')
app.get('/health', { config: { rateLimit: false } }, () => 'fine')

for (const url of ['/', '/report', '/report', '/login', '/login', '/login', '/health']) {
  const { statusCode, headers } = await app.inject(url)
  console.log(url, statusCode, headers.ratelimit ?? 'not limited')
}

// prints:
// / 200 "default";r=9;t=1
// /report 200 "default";r=3;t=1
// /report 429 "default";r=3;t=1
// /login 200 "default";r=1;t=900
// /login 200 "default";r=0;t=900
// /login 429 "default";r=0;t=900
// /health 200 not limited
