// The peers, each by the call that its users or its middleware make. The modules are loaded one at
// a time: a process has the one it uses.

export const PEERS = {
  'rate-limiter-flexible': async ({ window }) => {
    const { RateLimiterMemory } = (await import('rate-limiter-flexible')).default
    const limiter = new RateLimiterMemory({ points: window.limit, duration: window.ms / 1000 })
    // It answers by resolving, or by rejecting with a result that is not an Error: the loop takes
    // that for a no.
    return { ask: (key) => limiter.consume(key), isAllowed: () => true, isAwaited: true }
  },

  'express-rate-limit': async ({ window }) => {
    const { MemoryStore } = await import('express-rate-limit')
    const store = new MemoryStore()
    store.init({ windowMs: window.ms })
    return { ask: (key) => store.increment(key), isAllowed: ({ totalHits }) => totalHits <= window.limit, isAwaited: true }
  },

  '@fastify/rate-limit': async ({ window }) => {
    const { default: LocalStore } = await import('@fastify/rate-limit/store/LocalStore.js')
    // It holds 5,000 keys unless told otherwise, and forgets the least recently used.
    const store = new LocalStore(false, false, 1 << 21)
    let current = 0
    const keep = (_error, result) => {
      current = result.current
    }
    const ask = (key) => {
      store.incr(key, keep, window.ms, window.limit)
      return current
    }
    return { ask, isAllowed: (count) => count <= window.limit }
  },

  'limiter RateLimiter': async ({ window }) => {
    const { RateLimiter } = await import('limiter')
    const make = () => new RateLimiter({ tokensPerInterval: window.limit, interval: window.ms })
    return behindMap(make, (limiter) => limiter.tryRemoveTokens(1))
  },

  'limiter TokenBucket': async ({ rate, burst }) => {
    const { TokenBucket } = await import('limiter')
    const make = () => {
      const bucket = new TokenBucket({ bucketSize: burst, tokensPerInterval: rate.permits, interval: rate.perMs })
      // It starts empty; this is how its own RateLimiter fills it.
      bucket.content = burst
      return bucket
    }
    return behindMap(make, (bucket) => bucket.tryRemoveTokens(1))
  },

  'hono-rate-limiter': async ({ window }) => {
    const { MemoryStore } = await import('hono-rate-limiter')
    const store = new MemoryStore()
    store.init({ windowMs: window.ms })
    return { ask: (key) => store.increment(key), isAllowed: ({ totalHits }) => totalHits <= window.limit }
  },

  '@nestjs/throttler': async ({ window }) => {
    const { ThrottlerStorageService } = (await import('@nestjs/throttler')).default
    const storage = new ThrottlerStorageService()
    // It walks over every hit of the last `ttl` at every call. A window that never limits is cut to
    // 1 ms, which is in its favour.
    const ttlMs = window.limit > 1000 ? 1 : window.ms
    const ask = (key) => storage.increment(key, ttlMs, window.limit, ttlMs, 'default')
    return { ask, isAllowed: ({ isBlocked }) => !isBlocked, isAwaited: true }
  },

  '@joint-ops/hitlimit': async ({ window }) => {
    const { memoryStore } = await import('@joint-ops/hitlimit/stores/memory')
    const store = memoryStore()
    return { ask: (key) => store.hit(key, window.ms, window.limit), isAllowed: ({ count }) => count <= window.limit }
  },
}

export const PEER_NAMES = Object.keys(PEERS)

/** For a peer without keys: one of it for each key. */
export function behindMap(make, ask) {
  const byKey = new Map()
  const askFor = (key) => {
    let held = byKey.get(key)
    if (held === undefined) {
      held = make()
      byKey.set(key, held)
    }
    return ask(held)
  }
  return { ask: askFor, isAllowed: (answer) => answer }
}
