// Memory per waiter: what a process holds more than before, with so many calls waiting, divided by
// them. Runs with --expose-gc.
import { CROWDS, keysOf } from './crowds.mjs'
import { heldBytes } from './memory.mjs'
import { waiterCall } from './waiters.mjs'

/**
 * No turn comes during the measurement, and the last of 10,000 still waits less than a timer can:
 * 24.8 days.
 */
const PERIOD_MS = 100_000
const LIMITS = {
  rate: { permits: 1, perMs: PERIOD_MS },
  burst: 1,
  window: { limit: 1, ms: PERIOD_MS },
  spacing: { minTime: PERIOD_MS },
}

/** `settleMs`: how long the calls take to come to rest. */
export default async function waitingMemory({ crowd: where, contestants: [name], sizes, options, settleMs = 0 }) {
  // Compiled code and what it learnt are of the program, not of the waiters: others take them on
  // first.
  const kept = [await waitersOf(name, where, { size: sizes[0], options, settleMs: 0 })]
  const bytesPerWaiter = {}
  for (const size of sizes) {
    const waiters = await waitersOf(name, where, { size, options, settleMs })
    bytesPerWaiter[size] = waiters.bytes / size
    kept.push(waiters)
  }
  // Looked at once more, so that nothing of it was collected before.
  for (const { promises, call } of kept) if (!promises.length || !call) throw new Error(`${name} let go of its waiters`)
  return bytesPerWaiter
}

/**
 * Everything but the waiters is there before: the keys, used up, what is held for them, and the
 * array for the promises.
 */
async function waitersOf(name, where, { size, options, settleMs }) {
  const keys = keysOf(CROWDS[where].keys === 1 ? 1 : size)
  const call = await waiterCall(name, LIMITS, options)
  await Promise.all(keys.map((key) => call(key)))
  const promises = new Array(size).fill(undefined)
  const before = await heldBytes()
  for (let n = 0; n < size; n++) promises[n] = call(keys[n % keys.length])
  await new Promise((resolve) => setTimeout(resolve, settleMs))
  const bytes = (await heldBytes()) - before
  await stillWaiting(name, promises)
  return { promises, call, bytes }
}

/** Settled promises would settle the race before the one that comes last in it. */
async function stillWaiting(name, promises) {
  if ((await Promise.race([...promises, Promise.resolve(WAITING)])) !== WAITING)
    throw new Error(`${name} served a waiter during the measurement`)
}

const WAITING = Symbol('waiting')
