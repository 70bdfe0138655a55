// One process of several whose callers wait for the same keys and mostly leave: reports when its
// callers got their turn, by the server's time.
import { createClient } from 'redis'
import { createLimiter, gcra } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'

const { port, prefix, tasks, callers, ms } = JSON.parse(process.argv[2])
const client = createClient({ socket: { host: '127.0.0.1', port } })
await client.connect()
const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), {
  name: 'leaving',
  store: redisStore(client, { prefix }),
  storeTimeoutMs: 10_000,
})

const go = new Promise((resolve) => process.once('message', resolve))
process.send('ready')
await go
const untilMs = performance.now() + ms
let seed = process.pid
const random = () => {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
  return seed / 2 ** 32
}
const end = new AbortController()
const turns = {}

/** Comes again and again; some of its calls are given up before their turn. */
async function caller({ key, leaving }) {
  while (performance.now() < untilMs) {
    const leaves = new AbortController()
    const timer = random() < leaving && setTimeout(() => leaves.abort(), random() * 200)
    const { signal } = timer ? leaves : end
    await limiter.acquire(key, { signal }).then(
      ({ atMs }) => turns[key].push(Math.round(atMs * 1000)),
      () => {},
    )
    clearTimeout(timer)
  }
}

const all = tasks.map((task) => {
  turns[task.key] = []
  return Promise.all(Array.from({ length: callers }, () => caller(task)))
})
setTimeout(() => end.abort(), ms)
await Promise.all(all)
const waiting = limiter.waiting()
client.destroy()
process.send({ turns, waiting }, () => process.disconnect())
