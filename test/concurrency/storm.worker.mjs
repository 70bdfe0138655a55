// A thread that will be terminated. Until then it brings new keys to a table that is too small for them, as fast as it can: each needs the
// place of one that is idle, which is searched for in the middle of a step.
import { workerData } from 'node:worker_threads'
import { limitFrom } from '../../dist/config/index.js'
import { createLimiter } from '../../dist/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

const { handle, started, made, number } = workerData
const limiter = createLimiter(limitFrom(made), { name: 'storm', store: sharedStore(handle) })

for (let call = 0; ; call++) {
  limiter.tryAcquire(`${number}:${call}`)
  if (call === 300) Atomics.store(new Int32Array(started), 0, 1)
}
