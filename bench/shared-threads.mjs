// One thread and two threads on one shared store, in turns: how many calls they make together.
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { storeFor } from './shared-limiters.mjs'

const THREADS = 2
const WARM_UP_ROUNDS = 3

export default async function sharedThreads({ scenario, subject, rounds, roundMs }) {
  const store = storeFor(scenario)
  const stop = new SharedArrayBuffer(256)
  const workers = Array.from({ length: THREADS }, (_, number) => {
    const workerData = { handle: store.handle, scenario, subject, stop, number }
    return new Worker(new URL('./shared-worker.mjs', import.meta.url), { workerData })
  })
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  const measured = { one: [], two: [], collisions: 0 }
  for (let k = -WARM_UP_ROUNDS; k < rounds; k++) {
    // One, the other, and both: no two threads are equally fast.
    const alone = [await callsPerSecond([workers[0]]), await callsPerSecond([workers[1]])]
    const both = await callsPerSecond(workers)
    if (k < 0) continue
    measured.one.push((alone[0] + alone[1]) / 2)
    measured.two.push(both)
  }
  for (const worker of workers) await worker.terminate()
  return measured

  async function callsPerSecond(chosen) {
    const flag = new Int32Array(stop)
    Atomics.store(flag, 0, 0)
    const answers = chosen.map((worker) => once(worker, 'message'))
    for (const worker of chosen) worker.postMessage('go')
    await new Promise((resolve) => setTimeout(resolve, roundMs))
    Atomics.store(flag, 0, 1)
    const done = await Promise.all(answers)
    for (const [{ collisions }] of done) measured.collisions += collisions
    return done.reduce((sum, [{ calls, seconds }]) => sum + calls / seconds, 0)
  }
}
