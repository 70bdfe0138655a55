/** A second thread takes three permits of the five; this one then sees what is left. */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { createLimiter, gcra } from 'sluice'
import { sharedStore } from 'sluice/shared'

const clock = { nowUs: () => 1_700_000_000_000_000, setTimer: () => () => {} }
const limiterOn = (store) => createLimiter(gcra({ rate: '1/s', burst: 5 }), { name: 'threads', store, clock })

if (isMainThread) {
  const store = sharedStore({ maxKeys: 10 })
  const worker = new Worker(new URL(import.meta.url), { workerData: store.handle })
  const remainingThere = await new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  console.log(`remaining there ${remainingThere}, here ${limiterOn(store).peek('user:42').remaining}`)
  await worker.terminate()
} else {
  parentPort.postMessage(limiterOn(sharedStore(workerData)).consume('user:42', 3).remaining)
}
