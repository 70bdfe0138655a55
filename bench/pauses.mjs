// Pauses: the longest turn of an event loop that makes 1,000 calls per turn, while a million keys
// arrive, are in use, and expire.
import { createLimiter, memoryStore, systemClock } from '../dist/index.js'
import { floorOptions, sluiceLimit } from './contestants.mjs'
import { sweep } from './floor.mjs'
import { nextTurn } from './loop.mjs'
import { LASTING } from './scenarios.mjs'

const CALLS_PER_TURN = 1000
/** Longer than any key stays in use: after this leap all of them have expired. */
const LEAP_MS = 24 * 3_600_000

export default async function pauses({ contestants: [name], keys }) {
  const time = { leapMs: 0 }
  const make = name === 'floor sweep' ? sweepUnder : sluiceUnder
  // Another one has the code compiled first.
  await longestTurnMs(make(time, keys).tryAcquire, (n) => `warm:${n}`, keys / 10)
  const { tryAcquire, keysHeld } = make(time, keys)
  const arriving = await longestTurnMs(tryAcquire, (n) => `user:${n}`, keys)
  const inUse = await longestTurnMs(tryAcquire, (n) => `user:${(n * 618_033) % keys}`, keys)
  const heldBefore = keysHeld()
  time.leapMs = LEAP_MS
  // Sluice looks at old keys when new ones arrive, the floor with every call: new keys make both
  // work.
  const expiring = await longestTurnMs(tryAcquire, (n) => `next:${n}`, keys)
  return { arriving, inUse, expiring, heldBefore, heldAfter: keysHeld() }
}

function sweepUnder(time) {
  const tryAcquire = sweep({ ...floorOptions(LASTING), now: () => performance.now() + time.leapMs })
  return { tryAcquire, keysHeld: () => undefined }
}

function sluiceUnder(time, keys) {
  const clock = { nowUs: () => systemClock.nowUs() + time.leapMs * 1000, setTimer: systemClock.setTimer }
  const store = memoryStore({ maxKeys: 2 * keys })
  const limiter = createLimiter(sluiceLimit('gcra', LASTING), { store, clock })
  return { tryAcquire: (key) => limiter.tryAcquire(key), keysHeld: () => store.size }
}

/**
 * From the start of one turn to the start of the next: whatever holds it up, calls or the
 * collection of garbage, counts.
 */
async function longestTurnMs(tryAcquire, keyOf, calls) {
  let longestMs = 0
  let startMs = performance.now()
  for (let n = 0; n < calls; ) {
    for (const end = n + CALLS_PER_TURN; n < end; n++) tryAcquire(keyOf(n))
    await nextTurn()
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - startMs)
    startMs = nowMs
  }
  return longestMs
}
