// node:http without a framework: an even pace for a slow backend. Requests wait for their turn, up
// to a second, instead of being refused.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createLimiter, leakyBucket } from 'sluice'
import { everyone, rateLimit } from 'sluice/node'
import { fakeClock } from 'sluice/testing'

const clock = fakeClock() // in production: leave the clock out
const limiter = createLimiter(leakyBucket({ capacity: 3, leak: '2/s' }), { clock })

let served = 0
let refused = 0
const limited = rateLimit({ limiter, maxWaitMs: 1_000, key: everyone, onLimited: () => refused++ })
const server = createServer(
  limited((_request, response) => {
    served += 1
    response.end(`at ${clock.nowUs() / 1000} ms`)
  }),
)
await new Promise<void>((resolve) => server.listen(0, resolve))
const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}

const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
const answers = [1, 2, 3, 4].map(async () => {
  const response = await fetch(url)
  return response.ok ? response.text() : `${response.status}, try again in ${response.headers.get('retry-after')} s`
})
// The last would have waited for 1.5 s.
await until(() => served === 1 && limiter.waiting() === 2 && refused === 1)
clock.setMs(500)
await until(() => served === 2)
clock.setMs(1_000)
console.log((await Promise.all(answers)).sort().join('\n'))
server.closeAllConnections()
server.close()

// prints:
// 429, try again in 1 s
// at 0 ms
// at 1000 ms
// at 500 ms
