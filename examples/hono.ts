// Hono: the same on Node, Bun, Deno and Workers. Here behind one proxy, which appends the address
// of its client.
import { Hono } from 'hono'
import { createLimiter, tokenBucket } from 'sluice'
import { byIp, type RateLimitVariables, rateLimit } from 'sluice/hono'
import { fakeClock } from 'sluice/testing'

const limiter = createLimiter(tokenBucket({ capacity: 2, refill: '1/s' }), { clock: fakeClock() })

const app = new Hono<{ Variables: RateLimitVariables }>()
app.use(rateLimit({ limiter, key: byIp({ trustProxy: 1 }) }))
app.get('/', (c) => c.text(`${c.get('rateLimit')?.remaining} left`))

const from = async (chain: string) => (await app.request('/', { headers: { 'x-forwarded-for': chain } })).text()
console.log(await from('203.0.113.9'))
console.log(await from('1.1.1.1, 203.0.113.9')) // what the client wrote itself changes nothing
console.log(await from('203.0.113.10'))

// prints:
// 1 left
// 0 left
// 1 left
