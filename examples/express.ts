// Express: one line before the routes. Clients are told what is left and when to come back; the
// handler sees the decision.
import type { AddressInfo } from 'node:net'
import express from 'express'
import { createLimiter, gcra } from 'sluice'
import { rateLimit } from 'sluice/express'
import { fakeClock } from 'sluice/testing'

// In production: app.use(rateLimit({ limit: gcra({ rate: '100/min', burst: 20 }) }))
const limiter = createLimiter(gcra({ rate: '30/min', burst: 2 }), { clock: fakeClock() })

const app = express()
app.use(rateLimit({ limiter }))
app.get('/', (request, response) => {
  response.send(`hello, ${request.rateLimit?.remaining} left`)
})

const server = app.listen(0)
const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
for (let k = 0; k < 3; k++) {
  const response = await fetch(url)
  console.log(response.status, response.headers.get('ratelimit'), response.headers.get('retry-after'))
  if (response.ok) console.log(await response.text())
  else console.log(((await response.json()) as { title: string }).title)
}
server.closeAllConnections()
server.close()

// prints:
// 200 "default";r=1;t=2 null
// hello, 1 left
// 200 "default";r=0;t=4 null
// hello, 0 left
// 429 "default";r=0;t=2 2
// Request cannot be satisfied as assigned quota has been exceeded
