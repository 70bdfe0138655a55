// One story about memory, in a process of its own:
// `node --expose-gc bounded.process.mjs <story> <argument as JSON>`. Prints what it measured as
// JSON.
import { createClient } from 'redis'
import * as sluice from '../../dist/index.js'
import { redisStore } from '../../dist/stores/redis/index.js'
import { fakeClock } from '../../dist/testing/index.js'

const { createLimiter, memoryStore, gcra, fixedWindow } = sluice

/** In use for a long time once they are used, so that nothing leaves by itself. */
const SLOW = {
  gcra: gcra({ rate: '1/h', burst: 10 }),
  tokenBucket: sluice.tokenBucket({ capacity: 10, refill: '1/h' }),
  leakyBucket: sluice.leakyBucket({ capacity: 10, leak: '1/h' }),
  fixedWindow: fixedWindow({ limit: 10, window: '1d' }),
  slidingWindow: sluice.slidingWindow({ limit: 10, window: '1d' }),
  slidingLog: sluice.slidingLog({ limit: 10, window: '1d' }),
}

function bytes() {
  global.gc()
  global.gc()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** How many bytes each round of `act` leaves behind. The first tenth is for code and caches. */
async function kept(rounds, act) {
  const first = rounds / 10
  for (let k = 0; k < first; k++) await act(k)
  const before = bytes()
  for (let k = first; k < rounds; k++) await act(k)
  return (bytes() - before) / (rounds - first)
}

async function gone(held) {
  while (held() !== undefined) {
    await new Promise(setImmediate)
    global.gc()
  }
}

const stories = {
  /** Limiters that live, with a key each. */
  async limiters(algorithm) {
    const limiters = []
    const bytesEach = await kept(5_000, (k) => {
      const limiter = createLimiter(SLOW[algorithm], { name: `tenant-${k}` })
      limiter.consume('key')
      limiters.push(limiter)
    })
    return { bytesEach, limiters: limiters.length }
  },

  /** Limiters that are made, used and closed on one store. */
  async closed(rounds) {
    const clock = fakeClock(1_000_000)
    const store = memoryStore()
    const bytesEach = await kept(rounds, (k) => {
      const limiter = createLimiter(gcra({ rate: '10/s', burst: 10 }), { name: `tenant-${k}`, store, clock })
      limiter.consume('key')
      limiter.close()
      clock.advanceMs(1)
    })
    return { bytesEach, size: store.size }
  },

  /** The same on Redis; those that are dropped instead of closed have one name. */
  async onRedis({ rounds, port, prefix, isDropped }) {
    const client = createClient({ socket: { host: '127.0.0.1', port } })
    await client.connect()
    const store = redisStore(client, { prefix })
    let last
    const use = async (k) => {
      const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), { name: isDropped ? 'tenant' : `tenant-${k}`, store })
      await Promise.all([limiter.consume('key'), limiter.consume('key')])
      if (isDropped) last = new WeakRef(limiter)
      else limiter.close()
    }
    const bytesEach = await kept(rounds, async (k) => {
      await Promise.all(Array.from({ length: 100 }, (_, n) => use(100 * k + n)))
      // A timer holds on to a limiter for a while after its last call.
      if (k === rounds - 1) await gone(() => last?.deref())
    })
    client.destroy()
    return { bytesEach: bytesEach / 100 }
  },

  /** New numbers all the time, while keys that are in use were last seen under old ones. */
  async updates(rounds) {
    const limiter = createLimiter(fixedWindow({ limit: 1_000, window: '1d' }))
    const bytesEach = await kept(rounds, (k) => {
      limiter.update(fixedWindow({ limit: 1_000 + k, window: '1d' }))
      limiter.consume(`key-${k % 500}`)
    })
    return { bytesEach }
  },

  /**
   * Limiters of one name with numbers of their own, as when callers bring their limits along, that
   * are never closed.
   */
  async overrides(rounds) {
    const store = memoryStore()
    const bytesEach = await kept(rounds, (k) => {
      createLimiter(fixedWindow({ limit: 1_000 + k, window: '1d' }), { name: 'override', store }).consume(`key-${k % 500}`)
    })
    return { bytesEach }
  },

  /** More new keys than fit. */
  async keys({ algorithm, count, length, maxKeys }) {
    const limiter = createLimiter(SLOW[algorithm], { store: memoryStore(maxKeys === undefined ? {} : { maxKeys }) })
    // As they come from a socket: a string of their own, which shares nothing with the others.
    const keyOf = (k) => Buffer.from(`${k}`.padStart(length, '鍵'), 'utf16le').toString('utf16le')
    let allowed = 0
    for (let k = 0; k < count; k++) if (limiter.tryAcquire(keyOf(k))) allowed += 1
    const refused = limiter.consume(keyOf('new'))
    const held = limiter.consume(keyOf(0))
    return { allowed, size: limiter.store.size, refused: refused.outcome, retryAfterMs: refused.retryAfterMs, held: held.outcome }
  },

  /** Everybody waits, on so many keys. */
  async waiters({ count, keys, withSignals }) {
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }), { unref: true })
    const ends = {}
    const note = ({ code }) => {
      ends[code] = (ends[code] ?? 0) + 1
    }
    for (let k = 0; k < count; k++) {
      const options = withSignals ? { signal: new AbortController().signal } : {}
      limiter.acquire(`key-${k % keys}`, options).catch(note)
      // A refused caller is let go, as in a process that answers.
      if (k % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = limiter.waiting()
    return { waiting, waitingForFirst: limiter.waiting('key-0'), ends }
  },
}

const [story, argument] = process.argv.slice(2)
console.log(JSON.stringify(await stories[story](JSON.parse(argument))))
process.exit(0)
