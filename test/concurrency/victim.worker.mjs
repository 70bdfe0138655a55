// A thread that will be terminated: it takes permits of many keys, as fast as it can, until then.
// It counts its admissions where others can see them.
import { workerData } from 'node:worker_threads'
import { limitFrom } from '../../dist/config/index.js'
import { createLimiter } from '../../dist/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

const { handle, counts, limits, nowUs, keys, seed } = workerData
const counters = new Int32Array(counts)
const clock = { nowUs: () => nowUs, setTimer: () => () => undefined }
const made = Object.fromEntries(
  Object.entries(limits).map(([name, [factory, options]]) => [name, limitFrom({ type: factory, ...options })]),
)
const limiter = createLimiter(made, { name: 'victims', store: sharedStore(handle), clock, maxAheadMs: 0 })

for (let call = seed; ; call++) {
  // Now and then it forgets a key, so that records come and go.
  if (call % 11 === 0) limiter.reset(`fleeting:${call % 97}`)
  else if (call % 5 === 0) limiter.tryAcquire(`fleeting:${call % 97}`)
  else {
    const key = (call * 7919) % keys
    // It is terminated between the two at worst: then one more was admitted than is counted.
    if (limiter.tryAcquire(`lasting:${key}`)) Atomics.add(counters, 1 + key, 1)
  }
  Atomics.add(counters, 0, 1)
}
