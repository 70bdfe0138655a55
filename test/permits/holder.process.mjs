// One process of several that hold permits of one key. It notes in Redis, by the server's time,
// when it knew that it held one.
import { createClient } from 'redis'
import { concurrency, createLimiter } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'

const { port, storePort, prefix, max, leaseMs, jobs, skewMs } = JSON.parse(process.argv[2])
// The wall clock of this machine is wrong: nothing may depend on it but its steps.
const now = Date.now
Date.now = () => now() + skewMs
const [client, witness] = await Promise.all(
  [storePort, port].map((to) =>
    createClient({ socket: { host: '127.0.0.1', port: to, reconnectStrategy: 10 }, pingInterval: 1_000 })
      .on('error', () => {})
      .connect(),
  ),
)
const limiter = createLimiter(concurrency({ max, lease: `${leaseMs}ms` }), { name: 'jobs', store: redisStore(client, { prefix }) })

async function serverUs() {
  const [seconds, micros] = await witness.sendCommand(['TIME'])
  return Number(seconds) * 1_000_000 + Number(micros)
}

// A test that was killed leaves nobody who would end this process.
process.once('disconnect', () => process.exit(1))
const go = new Promise((resolve) => process.once('message', resolve))
process.send('ready')
await go
let lost = 0
/** Where replies are lost, again. */
async function acquired() {
  for (;;) {
    try {
      return await limiter.acquire('key')
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

async function job(k) {
  const permit = await acquired()
  permit.signal.addEventListener('abort', () => lost++)
  const looks = 3 + (k % 5)
  for (let look = 0; look < looks; look++) {
    const us = await serverUs()
    // It was held then if it is held now.
    if (!permit.held) break
    await witness.rPush(`${prefix}:held`, `${permit.token} ${us}`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await permit.release()
}
const waits = []
for (let k = 0; k < jobs; k++) waits.push(job(k))
await Promise.all(waits)
process.send({ lost }, () => process.exit(0))
