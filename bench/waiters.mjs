// Contestants that wait. Each gives `call(key)`: a promise that settles when its turn has come.
import { createLimiter } from '../dist/index.js'
import { floorOptions, sluiceLimit } from './contestants.mjs'
import { floor } from './floor.mjs'
import { WAITING_PEERS } from './waiting-peers.mjs'

/**
 * By name: 'floor', the name of a peer, or an algorithm and a verb of Sluice such as
 * 'gcra.acquire'.
 */
export async function waiterCall(name, limits, options = {}) {
  if (name === 'floor') return floorCall(limits)
  if (WAITING_PEERS[name]) return WAITING_PEERS[name](limits)
  const [algorithm, verb] = name.split('.')
  const limiter = createLimiter(sluiceLimit(algorithm, limits), { maxQueue: Number.POSITIVE_INFINITY, ...options })
  if (verb === 'acquire') return (key) => limiter.acquire(key)
  return limiter.wrap(
    (key) => key,
    () => {},
  )
}

/** The least that answers with a promise. It cannot wait: for scenarios without waiting. */
function floorCall(limits) {
  const tryAcquire = floor(floorOptions(limits))
  return (key) => Promise.resolve(tryAcquire(key))
}
