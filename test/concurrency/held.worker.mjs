// A thread that will be terminated while it holds places. `churn`: it takes and releases as fast as
// it can. `wait`: it stands in line. `keep`: it takes what it is told to and does nothing more.
import { parentPort, workerData } from 'node:worker_threads'
import { limitsFrom } from '../../dist/config/index.js'
import { createLimiter } from '../../dist/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

const { handle, limits, task, keys, seed, calls } = workerData
const limiter = createLimiter(limitsFrom(limits), { name: 'held', store: sharedStore(handle) })
const counter = new Int32Array(calls)

if (task === 'keep') for (const key of keys) limiter.consume(key, 2)
if (task === 'wait') limiter.acquire(keys[0])
parentPort.postMessage('ready')

if (task === 'churn') {
  const held = []
  for (let call = seed; ; call = (call * 48271) % 2147483647) {
    const permit = limiter.consume(keys[call % keys.length], 1 + (call % 3))
    if (permit.allowed) held.push(permit)
    if (held.length > 6 || !permit.allowed) held.splice(call % (held.length || 1), 1)[0]?.release()
    Atomics.add(counter, 0, 1)
  }
} else parentPort.on('message', () => {})
