// Memory: what a process holds more than before, divided by the keys that are in use. Runs
// with --expose-gc.
import { contestant } from './contestants.mjs'
import { nextTurn } from './loop.mjs'
import { LASTING } from './scenarios.mjs'

export default async function memory({ contestants: [name], sizes }) {
  // Compiled code and what it learnt are of the program, not of the keys: another one takes them on
  // first.
  await fill(await contestant(name, LASTING), 0, 20_000)
  const before = await heldBytes()
  const measured = await contestant(name, LASTING)
  const bytesPerKey = {}
  let filled = 0
  for (const size of sizes) {
    await fill(measured, filled, size)
    filled = size
    bytesPerKey[size] = ((await heldBytes()) - before) / size
  }
  // Used once more, so that nothing of it was collected before.
  if ((await measured.isAllowed(await measured.ask(keyOf(0)))) !== true) throw new Error(`${name} refused a key that has room`)
  return bytesPerKey
}

/** Keys such as 'user:123456': what a server would build from a request. */
function keyOf(n) {
  return `user:${100_000 + n}`
}

async function fill({ ask, isAwaited }, from, to) {
  for (let n = from; n < to; n++) {
    const answer = ask(keyOf(n))
    if (isAwaited) await answer
  }
}

/**
 * All in: the heap and what lies outside of it, the array buffers included (Node counts those
 * within `external`).
 */
export async function heldBytes() {
  for (let k = 0; k < 3; k++) {
    globalThis.gc()
    await nextTurn()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
