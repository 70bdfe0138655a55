// The limiter that all parts of this bench measure, on either store.
import { createLimiter } from '../dist/index.js'
import { sharedStore } from '../dist/stores/shared-memory/index.js'
import { sluiceLimit } from './contestants.mjs'
import { SCENARIOS } from './scenarios.mjs'

/** All use gcra, as in the other bench. */
const ALGORITHM = 'gcra'

export function limitOf(scenario) {
  return sluiceLimit(ALGORITHM, SCENARIOS[scenario].limits)
}

/** Room for the keys of a scenario, and a few more, so that it is never full. */
export function storeFor(scenario) {
  return sharedStore({ maxKeys: SCENARIOS[scenario].keys + 16, limits: limitOf(scenario) })
}

export function sharedLimiter(scenario, store) {
  return createLimiter(limitOf(scenario), { name: 'bench', store })
}

export function memoryLimiter(scenario) {
  return createLimiter(limitOf(scenario))
}

export function contestantOf(name, limiter) {
  return { name, ask: (key) => limiter.tryAcquire(key), isAllowed: (yes) => yes, isAwaited: false }
}
