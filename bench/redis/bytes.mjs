// Bytes of a key in Redis, as MEMORY USAGE counts them, beside the bare string that minimal.lua writes under the same key.
import { createLimiter, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { fakeClock } from '../../dist/testing/index.js'
import { connect } from './clients.mjs'
import { minimal } from './floors.mjs'

const MINUTE_MS = 60_000
/** So many a minute, at most. */
const LIMIT = 100
const RATE = { permits: LIMIT, per: MINUTE_MS }

const LIMITS = {
  gcra: gcra({ rate: RATE, burst: LIMIT }),
  // Its interval is no whole number of microseconds.
  'gcra, 7/s': gcra({ rate: '7/s', burst: LIMIT }),
  tokenBucket: tokenBucket({ capacity: LIMIT, refill: RATE }),
  leakyBucket: leakyBucket({ capacity: LIMIT, leak: RATE }),
  fixedWindow: fixedWindow({ limit: LIMIT, window: MINUTE_MS }),
  slidingWindow: slidingWindow({ limit: LIMIT, window: MINUTE_MS }),
  slidingLog: slidingLog({ limit: LIMIT, window: MINUTE_MS }),
}

/** What people limit by. Redis allots memory in steps, so the length of a key makes a difference. */
export const KEYS = {
  user: 'user:123456',
  IPv4: '203.0.113.195',
  UUID: '3f2b9c1e-8d47-4a6b-9e05-1c7d2f84ab60',
  IPv6: '2001:db8:85a3:8d3:1319:8a2e:370:7348',
}

export const GCRA = ['gcra', 'gcra, 7/s']

/** How many decisions have been taken, evenly over one window. */
export const FILLS = [1, LIMIT]

/** For each algorithm and key: how it stands in Redis, its bytes after so many decisions, and those of the bare string. */
export default async function bytes({ client: clientName, port }) {
  const connection = await connect(clientName, port)
  const measured = {}
  for (const algorithm of Object.keys(LIMITS)) {
    measured[algorithm] = {}
    for (const [kind, key] of Object.entries(KEYS)) measured[algorithm][kind] = await bytesOf(algorithm, key, connection)
  }
  return measured
}

async function bytesOf(algorithm, key, { client, send }) {
  const used = {}
  let found
  for (const decisions of FILLS) {
    found = await filled(algorithm, key, decisions, client, send)
    used[decisions] = await send('MEMORY', 'USAGE', found, 'SAMPLES', '0')
  }
  const [type, encoding] = [await send('TYPE', found), await send('OBJECT', 'ENCODING', found)]
  return { redisKey: found, type, encoding, used, bare: await bareBytes(found, send) }
}

/** Returns the one key that stands in Redis then. A clock of our own spreads the decisions over the window. */
async function filled(algorithm, key, decisions, client, send) {
  await send('FLUSHALL')
  const startMs = Date.now()
  const clock = fakeClock(startMs)
  const limiter = createLimiter(LIMITS[algorithm], { name: 'api', store: redisStore(client), clock })
  for (let k = 0; k < decisions; k++) {
    clock.setMs(startMs + (k * MINUTE_MS) / decisions)
    const { allowed } = await limiter.consume(key)
    if (!allowed) throw new Error(`${algorithm} refused decision ${k + 1} of ${decisions}`)
  }
  const found = await send('KEYS', '*')
  if (found.length !== 1) throw new Error(`${algorithm} has ${found.length} keys in Redis for one key: ${found}`)
  return found[0]
}

async function bareBytes(redisKey, send) {
  await send('FLUSHALL')
  const ask = await minimal(send, (MINUTE_MS * 1000) / LIMIT, LIMIT)
  await ask(redisKey)
  return send('MEMORY', 'USAGE', redisKey, 'SAMPLES', '0')
}
