// One process of several whose callers wait for the same keys and mostly leave: reports when its
// callers got their turn, and when nothing could run, both by the server's time.
import { createClient } from 'redis'
import { createLimiter, gcra } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'

const { port, prefix, tasks, callers, perSecond, ms, longestMs, stillMs, leaveMs } = JSON.parse(process.argv[2])
const client = createClient({ socket: { host: '127.0.0.1', port } })
await client.connect()
const limiter = createLimiter(gcra({ rate: `${perSecond}/s`, burst: 1 }), {
  name: 'leaving',
  store: redisStore(client, { prefix }),
  storeTimeoutMs: 60_000,
})

const go = new Promise((resolve) => process.once('message', resolve))
process.send('ready')
await go
const longestUntilMs = performance.now() + longestMs
let untilMs = performance.now() + ms
let seed = process.pid
const random = () => {
  seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
  return seed / 2 ** 32
}
const end = new AbortController()
const turns = {}
const stills = []

async function serverUs() {
  const [seconds, micros] = await client.sendCommand(['TIME'])
  return Number(seconds) * 1_000_000 + Number(micros)
}

/**
 * Looks every few milliseconds whether this process and the server go on. The run is longer by
 * more than the time in which they did not, so that there is always enough of the other.
 */
async function watch() {
  for (let lastUs = await serverUs(); performance.now() < untilMs; ) {
    await new Promise((resolve) => setTimeout(resolve, 5))
    const nowUs = await serverUs()
    if (nowUs - lastUs > stillMs * 1000) {
      stills.push([lastUs, nowUs])
      untilMs = Math.min(untilMs + 3_000 + (2 * (nowUs - lastUs)) / 1000, longestUntilMs)
    }
    lastUs = nowUs
  }
  end.abort()
}

/** Comes again and again; some of its calls are given up before their turn. */
async function caller({ key, leaving }) {
  while (!end.signal.aborted) {
    const leaves = new AbortController()
    const timer = random() < leaving && setTimeout(() => leaves.abort(), random() * leaveMs)
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
await Promise.all([watch(), ...all])
const waiting = limiter.waiting()
client.destroy()
process.send({ turns, stills, waiting }, () => process.disconnect())
