// A process with threads that take from one key, as fast as they can, until it is asked for the
// times at which they were admitted.
import { Worker } from 'node:worker_threads'
import { limitFrom } from '../../dist/config/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

const { made, threads } = JSON.parse(process.argv[2])
const store = sharedStore({ maxKeys: 4, maxThreads: threads, limits: limitFrom({ type: made[0], ...made[1] }) })
/** How many are at the gate, whether it is open, and whether to stop. */
const words = new Int32Array(new SharedArrayBuffer(4 * 3))
const url = new URL('crew.worker.mjs', import.meta.url)
const workers = Array.from({ length: threads }, (_, number) => new Worker(url, { workerData: { number } }))
const answers = workers.map((worker) => {
  const { buffer } = words
  worker.postMessage({ job: 'admitted', threads, handle: store.handle, gate: buffer, stop: buffer, stopAt: 2, limits: made, forMs: 60_000 })
  return new Promise((resolve) => worker.once('message', resolve))
})

process.once('message', async () => {
  Atomics.store(words, 2, 1)
  process.send(await Promise.all(answers))
})
// All are at work.
while (Atomics.load(words, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 5))
process.send('ready')
