// Koa: only failed logins count. A success gives its permit back when its response has been sent.
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { createLimiter, slidingLog } from 'sluice'
import { type RateLimitState, rateLimit } from 'sluice/koa'
import { fakeClock } from 'sluice/testing'

const limiter = createLimiter(slidingLog({ limit: 3, window: '15min' }), { clock: fakeClock() })

const app = new Koa<RateLimitState>()
app.use(rateLimit({ limiter, refundWhen: ({ status }) => status < 400 }))
app.use((ctx) => {
  ctx.status = ctx.query.password === 'right' ? 200 : 401
  ctx.body = `${ctx.state.rateLimit?.remaining} left`
})

const server = app.listen(0)
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
for (const password of ['wrong', 'wrong', 'right', 'wrong', 'right']) {
  const response = await fetch(`${url}?password=${password}`, { headers: { accept: 'text/plain' } })
  console.log(password, response.status, response.ok ? 'does not count' : (await response.text()).trim())
  // The refund follows the end of the response.
  if (response.ok) while (limiter.peek('ip:127.0.0.1').remaining === 0) await new Promise((resolve) => setImmediate(resolve))
}
server.closeAllConnections()
server.close()

// prints:
// wrong 401 2 left
// wrong 401 1 left
// right 200 does not count
// wrong 401 0 left
// right 429 Too many requests. Please try again in 15 minutes.
