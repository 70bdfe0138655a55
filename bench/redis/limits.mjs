// The limits of the bench. Under them nothing is refused, or everything, for as long as it runs.
import { sluiceLimit } from '../contestants.mjs'
import { SCENARIOS } from '../scenarios.mjs'

export const ALGORITHMS = ['gcra', 'fixedWindow', 'tokenBucket', 'leakyBucket', 'slidingWindow', 'slidingLog']

const HOUR_MS = 3_600_000
/** Slots of a hundred hours: which of them a window covers does not change during a run. */
const SLOTTED_MS = 1000 * HOUR_MS
/** How many slots a sliding window has, and how many entries a log holds when it is called. */
export const SLOTS = 10
export const ENTRIES = 100

/**
 * In the terms of scenarios.mjs. What keys hold when they are called, see held.mjs, is all that is
 * refused under the second.
 */
const ADMITTING = { ...SCENARIOS['keys-10k'].limits, log: { limit: 100_000, ms: HOUR_MS } }
const REFUSING = { ...SCENARIOS['hot-denied'].limits, log: { limit: ENTRIES, ms: HOUR_MS } }
const SLOTTED = { admitting: { limit: 1e7, ms: SLOTTED_MS }, refusing: { limit: SLOTS, ms: SLOTTED_MS } }

export function admitting(algorithm) {
  return algorithm === 'slidingWindow' ? { ...ADMITTING, window: SLOTTED.admitting } : ADMITTING
}

export function refusing(algorithm) {
  return algorithm === 'slidingWindow' ? { ...REFUSING, window: SLOTTED.refusing } : REFUSING
}

/**
 * Limits of Sluice, by a name such as 'gcra' or 'gcra + fixedWindow': one by itself, or an object
 * of two.
 */
export function sluiceLimits(name, limits) {
  const [first, second] = name.split(' + ').map((algorithm) => sluiceLimit(algorithm, limits))
  return second === undefined ? first : { first, second }
}
