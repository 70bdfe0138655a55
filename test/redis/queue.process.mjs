// One process of several that wait for the same key: reports when each of its callers got its turn,
// by the server's time.
import { createClient } from 'redis'
import { createLimiter, gcra } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'

const { port, prefix, callers, leavers } = JSON.parse(process.argv[2])
const client = createClient({ socket: { host: '127.0.0.1', port } })
await client.connect()
const store = redisStore(client, { prefix })
const limiter = createLimiter(gcra({ rate: '200/s', burst: 1 }), { name: 'queue', store, storeTimeoutMs: 60_000 })

const go = new Promise((resolve) => process.once('message', resolve))
process.send('ready')
await go
const leaving = AbortSignal.timeout(30)
// Every second one of the later half: their turns are far off when they leave, however late the
// timers of a busy machine are.
const isLeaver = (k) => k % 2 === 0 && k >= callers + leavers - 2 * leavers
const turns = []
const waits = Array.from({ length: callers + leavers }, async (_, k) => {
  try {
    const { atMs } = await limiter.acquire('k', isLeaver(k) ? { signal: leaving } : {})
    turns.push(Math.round(atMs * 1000))
  } catch (error) {
    if (error !== leaving.reason) throw error
  }
})
await Promise.all(waits)
const waiting = limiter.waiting()
client.destroy()
process.send({ turns, waiting }, () => process.disconnect())
