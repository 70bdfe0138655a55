// A contestant is { name, ask, isAllowed, isAwaited }: `ask(key)` is the call that its users write,
// `isAllowed(answer)` how they read it.
import { createLimiter, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../dist/index.js'
import { floor } from './floor.mjs'
import { floorDecision } from './floor-decision.mjs'
import { FLOOR_CONSUME } from './jobs.mjs'
import { PEERS } from './peers.mjs'

const isYes = (answer) => answer

/**
 * By name: 'floor', 'floor.consume', the name of a peer, or an algorithm and a verb of Sluice such
 * as 'gcra.tryAcquire'.
 */
export async function contestant(name, limits, options = {}) {
  if (name === 'floor') return floorContestant(limits)
  if (name === FLOOR_CONSUME) return telling(name, floorDecision(floorOptions(limits)))
  if (PEERS[name]) return { name, isAwaited: false, ...(await PEERS[name](limits)) }
  return sluiceContestant(name, limits, options)
}

export function floorOptions({ rate, burst }) {
  return { ratePerSecond: (rate.permits * 1000) / rate.perMs, burst }
}

function floorContestant(limits) {
  return { name: 'floor', ask: floor(floorOptions(limits)), isAllowed: isYes, isAwaited: false }
}

function sluiceContestant(name, limits, options) {
  const [algorithm, verb] = name.split('.')
  const limiter = createLimiter(sluiceLimit(algorithm, limits), options)
  if (verb === 'tryAcquire') return { name, ask: (key) => limiter.tryAcquire(key), isAllowed: isYes, isAwaited: false }
  return telling(name, verb === 'charge' ? (key) => limiter.charge(key) : (key) => limiter.consume(key))
}

/** The decision is kept, because the compiler may leave out an object that is never read. */
function telling(name, consume) {
  const kept = { decision: undefined }
  const ask = (key) => {
    kept.decision = consume(key)
    return kept.decision
  }
  return { name, ask, isAllowed: (decision) => decision.allowed, isAwaited: false }
}

export function sluiceLimit(algorithm, { rate, burst, window, log }) {
  const perMs = { permits: rate.permits, per: `${rate.perMs}ms` }
  switch (algorithm) {
    case 'gcra':
      return gcra({ rate: perMs, burst })
    case 'tokenBucket':
      return tokenBucket({ capacity: burst, refill: perMs })
    case 'leakyBucket':
      return leakyBucket({ capacity: burst, leak: perMs })
    case 'fixedWindow':
      return fixedWindow({ limit: window.limit, window: `${window.ms}ms` })
    case 'slidingWindow':
      return slidingWindow({ limit: window.limit, window: `${window.ms}ms` })
    case 'slidingLog':
      return slidingLog({ limit: log.limit, window: `${log.ms}ms` })
    default:
      throw new Error(`${algorithm} is no algorithm of Sluice`)
  }
}
