// The peers that wait. Each is made from limits and gives `call(key)`: a promise that settles when
// its turn has come.
import { behindMap } from './peers.mjs'

/**
 * Each by the call that its documentation shows. Where that takes a job it gets an empty one; where
 * it hands out a permit the caller goes on by itself. Either way the caller awaits one promise.
 */
export const WAITING_PEERS = {
  bottleneck: async ({ spacing }) => {
    const { default: Bottleneck } = await import('bottleneck')
    const group = new Bottleneck.Group(spacing)
    // Its jobs return promises.
    const job = async () => {}
    return (key) => group.key(key).schedule(job)
  },

  'p-throttle': async ({ window }) => {
    const { default: pThrottle } = await import('p-throttle')
    const make = () => pThrottle({ limit: window.limit, interval: window.ms })(() => {})
    return behindMap(make, (throttled) => throttled()).ask
  },

  limiter: async ({ window }) => {
    const { RateLimiter } = await import('limiter')
    const make = () => new RateLimiter({ tokensPerInterval: window.limit, interval: window.ms })
    return behindMap(make, (limiter) => limiter.removeTokens(1)).ask
  },

  RateLimiterQueue: async ({ window }) => {
    const { RateLimiterMemory, RateLimiterQueue } = (await import('rate-limiter-flexible')).default
    const queue = new RateLimiterQueue(new RateLimiterMemory({ points: window.limit, duration: window.ms / 1000 }))
    return (key) => queue.removeTokens(1, key)
  },
}

export const WAITING_PEER_NAMES = Object.keys(WAITING_PEERS)

/** What of ours does the same: `wrap` runs a job in its turn, `acquire` hands out a permit. */
export function ownBeside(peer) {
  return ['bottleneck', 'p-throttle'].includes(peer) ? 'gcra.wrap' : 'gcra.acquire'
}
