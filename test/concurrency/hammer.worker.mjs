// One thread of the race: waits for the start, then takes one permit after another and reports what it got.
import { parentPort, workerData } from 'node:worker_threads'
import { createLimiter, gcra, tokenBucket } from '../../dist/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

const { handle, gate, type, capacity, calls, nowUs } = workerData
const limits = {
  gcra: () => gcra({ rate: '7/s', burst: capacity }),
  tokenBucket: () => tokenBucket({ refill: '7/s', capacity }),
  both: () => ({ a: gcra({ rate: '7/s', burst: capacity }), b: tokenBucket({ refill: '7/s', capacity: capacity * 2 }) }),
}
const store = sharedStore(handle)
const clock = { nowUs: () => nowUs, setTimer: () => () => undefined }
const limiter = createLimiter(limits[type](), { name: 'race', store, clock, maxAheadMs: 0 })

const ready = new Int32Array(gate)
Atomics.add(ready, 0, 1)
Atomics.wait(ready, 1, 0)

let admitted = 0
for (let call = 0; call < calls; call++) if (limiter.tryAcquire('hot')) admitted += 1
parentPort.postMessage({ admitted, collisions: store.collisions, remaining: limiter.peek('hot', 0).remaining })
