// The cost of waiting: 10,000 calls at once that really wait. Time passes whatever they do, so
// processor time is what tells them apart, and how long after the ideal moment the last of them was
// served.
import { CROWDS, crowdOf, keysOf, WAITERS } from './crowds.mjs'
import { inTurn } from './rounds.mjs'
import { waiterCall } from './waiters.mjs'

const WARM_UP_ROUNDS = 2
/**
 * Longer than two crowds of calls take, so that the first key is not free again before the last has
 * been called.
 */
const PERIOD_MS = 2000

/**
 * One key serves 20,000 a second: evenly, or 2,000 at once every 100 ms. Short windows would be
 * late with every one of them, because a timer is: these are long, in favour of those that count by
 * windows. Of many keys each serves one in 2 s and has just done so.
 */
const REACHED = {
  'one-key': { rate: { permits: 20, perMs: 1 }, burst: 1, window: { limit: 2000, ms: 100 } },
  'keys-10k': {
    rate: { permits: 1, perMs: PERIOD_MS },
    burst: 1,
    window: { limit: 1, ms: PERIOD_MS },
    spacing: { minTime: PERIOD_MS },
  },
}
/**
 * When the last of 10,000 on one key is served at the earliest: evenly, and by windows, whose first
 * serves at once.
 */
const EVENLY_MS = (WAITERS - 1) / 20
const BY_WINDOWS_MS = (WAITERS / 2000 - 1) * 100

/**
 * Returns for each contestant, round by round: microseconds of processor time for each waiter,
 * after how long the first was served, and how much later than the ideal moment the last was, and
 * whether all keys were still used up when they were called.
 */
export default async function waitingCost({ crowd: where, contestants, rounds }) {
  const runners = []
  for (const name of contestants) runners.push(await runnerOf(name, where))
  for (let k = 0; k < WARM_UP_ROUNDS; k++) await inTurn(runners, k, costOf)
  const measured = runners.map(() => [])
  for (let k = 0; k < rounds; k++) {
    const costs = await inTurn(runners, k, costOf)
    for (const [runner, each] of measured.entries()) each.push(costs[runner])
  }
  return Object.fromEntries(runners.map(({ name }, runner) => [name, measured[runner]]))
}

async function runnerOf(name, where) {
  const { keys: count, key } = CROWDS[where]
  const call = await waiterCall(name, REACHED[where])
  const isUsedUp = count > 1
  const idealMs = isUsedUp ? PERIOD_MS : name.startsWith('gcra') ? EVENLY_MS : BY_WINDOWS_MS
  return { name, isUsedUp, idealMs, crowd: crowdOf(name, call, keysOf(count), key) }
}

async function costOf({ isUsedUp, idealMs, crowd }) {
  // By then no window and no bucket remembers the round before.
  await passed(isUsedUp ? 1.25 * PERIOD_MS : 600)
  const usingUpMs = performance.now()
  if (isUsedUp) await crowd()
  const usedUpMs = performance.now()
  globalThis.gc?.({ type: 'minor' })
  let firstAtMs = 0
  const startMs = performance.now()
  const before = process.cpuUsage()
  const served = crowd(() => {
    firstAtMs = performance.now()
  })
  const allWaited = isUsedUp ? performance.now() - usingUpMs < PERIOD_MS : undefined
  await served
  const endMs = performance.now()
  const { user, system } = process.cpuUsage(before)
  // The last key was used up when its call was answered, or a little before.
  const sinceMs = isUsedUp ? usedUpMs : startMs
  return { cpuUs: (user + system) / WAITERS, firstMs: firstAtMs - startMs, lateMs: endMs - sinceMs - idealMs, allWaited }
}

function passed(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
