// The peers, each by the call that its users or its middleware make, on the clients that its
// documentation names.

const ON_ANY_CLIENT = {
  'rate-limiter-flexible': async ({ client }, { window }, clientName) => {
    const { RateLimiterRedis } = (await import('rate-limiter-flexible')).default
    const useRedisPackage = clientName === 'node-redis'
    const limiter = new RateLimiterRedis({ storeClient: client, useRedisPackage, points: window.limit, duration: window.ms / 1000 })
    // It answers by resolving, or by rejecting with a result that is not an Error: the loop takes
    // that for a no.
    return { ask: (key) => limiter.consume(key), isAllowed: () => true }
  },

  'rate-limit-redis': async ({ send }, { window }) => {
    const { RedisStore } = await import('rate-limit-redis')
    const store = new RedisStore({ sendCommand: send })
    await store.init({ windowMs: window.ms })
    return { ask: (key) => store.increment(key), isAllowed: ({ totalHits }) => totalHits <= window.limit }
  },
}

const ON_IOREDIS = {
  '@fastify/rate-limit': async ({ client }, { window }) => {
    const { default: RedisStore } = await import('@fastify/rate-limit/store/RedisStore.js')
    const store = new RedisStore(false, false, client)
    // Its plugin makes a promise of it in the same way.
    const ask = (key) =>
      new Promise((resolve, reject) => {
        store.incr(key, (error, result) => (error ? reject(error) : resolve(result)), window.ms, window.limit)
      })
    return { ask, isAllowed: ({ current }) => current <= window.limit }
  },

  'redis-gcra': async ({ client }, { rate, burst }) => {
    const { default: RedisGCRA } = await import('redis-gcra')
    const limiter = RedisGCRA({ redis: client, keyPrefix: 'redis-gcra', burst, rate: rate.permits, period: rate.perMs })
    return { ask: (key) => limiter.limit({ key }), isAllowed: ({ limited }) => !limited }
  },
}

export const PEERS = { ...ON_ANY_CLIENT, ...ON_IOREDIS }

/** Those that have an algorithm. The rest count in fixed windows. */
const OF_GCRA = ['redis-gcra']

export function peersOf(algorithm, client) {
  const onClient = Object.keys(client === 'ioredis' ? PEERS : ON_ANY_CLIENT)
  if (algorithm === 'gcra') return onClient.filter((name) => OF_GCRA.includes(name))
  return algorithm === 'fixedWindow' ? onClient.filter((name) => !OF_GCRA.includes(name)) : []
}
