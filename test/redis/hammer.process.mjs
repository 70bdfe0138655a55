// One process of the race: several connections that take from one key as fast as they can, and a
// report of every decision.
import { createClient } from 'redis'
import { limitsFrom } from '../../dist/config/index.js'
import { createLimiter } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'

const { port, prefix, limits, key, connections, calls, costs } = JSON.parse(process.argv[2])

async function hammer(seed) {
  const client = createClient({ socket: { host: '127.0.0.1', port } })
  await client.connect()
  const limiter = createLimiter(limitsFrom(limits), {
    name: 'race',
    store: redisStore(client, { prefix }),
    maxAheadMs: 0,
    storeTimeoutMs: 60_000,
  })
  await limiter.peek(key)
  process.send('ready')
  await go
  const decisions = []
  for (let call = 0; call < calls; call++) {
    const cost = costs[(seed + call) % costs.length]
    const { atMs, allowed } = await limiter.consume(key, cost)
    decisions.push([Math.round(atMs * 1000), cost, allowed])
  }
  client.destroy()
  return decisions
}

const go = new Promise((resolve) => process.once('message', resolve))
const decisions = (await Promise.all(Array.from({ length: connections }, (_, k) => hammer(k)))).flat()
process.send(decisions, () => process.disconnect())
