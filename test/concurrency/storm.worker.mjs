// A thread that will be terminated. Until then it brings new keys to a table that is too small for
// them, as fast as it can: each needs the place of one that is idle, which is searched for in the
// middle of a step.
import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter, gcra } from '../../dist/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

/** As in storm.ts. */
const CALLS = 0
const FAILED = 1

const { handle, counters, limit, number, calls } = workerData
const limiter = createLimiter(gcra(limit), { name: 'storm', store: sharedStore(handle) })

for (let call = 1; ; call++) {
  const hasFailed = !isAnswered(`${number}:${call}`)
  Atomics.add(counters, CALLS, 1)
  if (hasFailed) Atomics.add(counters, FAILED, 1)
  if (call === calls || hasFailed) parentPort.postMessage('may be terminated')
}

function isAnswered(key) {
  try {
    limiter.tryAcquire(key)
    return true
  } catch (error) {
    if (error.code !== 'STORE') throw error
    return false
  }
}
