// One call at a time: on the shared store; as a message to the main thread and back; and by
// rate-limiter-flexible's cluster limiter, which asks the main process. Nanoseconds a call, in
// rounds that take turns.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { RateLimiterClusterMaster } from 'rate-limiter-flexible'
import { memoryLimiter, storeFor } from './shared-limiters.mjs'

const ASKER = fileURLToPath(new URL('./shared-asker.mjs', import.meta.url))

export default async function sharedMessages({ scenario, rounds, roundMs }) {
  const thread = await threadAsker(scenario)
  const process = await clusterAsker(scenario)
  const measured = { shared: [], message: [], cluster: [] }
  for (let k = -2; k < rounds; k++) {
    const shared = await thread.measure('shared', roundMs)
    const message = await thread.measure('message', roundMs)
    const viaCluster = await process.measure('cluster', roundMs)
    if (k < 0) continue
    measured.shared.push(shared)
    measured.message.push(message)
    measured.cluster.push(viaCluster)
  }
  await thread.end()
  process.end()
  return measured
}

async function threadAsker(scenario) {
  const limiter = memoryLimiter(scenario)
  const worker = new Worker(ASKER, { workerData: { handle: storeFor(scenario).handle, scenario } })
  let measured = () => {}
  worker.on('message', (message) => {
    if (message.key !== undefined) worker.postMessage({ allowed: limiter.tryAcquire(message.key) })
    else measured(message.ns)
  })
  await once(worker, 'online')
  return {
    measure: (what, roundMs) => {
      return new Promise((resolve) => {
        measured = resolve
        worker.postMessage({ what, roundMs })
      })
    },
    end: () => worker.terminate(),
  }
}

async function clusterAsker(scenario) {
  new RateLimiterClusterMaster()
  cluster.setupPrimary({ exec: ASKER, args: [scenario] })
  const worker = cluster.fork()
  let measured = () => {}
  // Several messages may come at once, those of the limiter among them. Messages before the worker
  // listens may be lost.
  await new Promise((resolve) => {
    worker.on('message', ({ ns, isReady }) => {
      if (isReady) resolve()
      else if (ns !== undefined) measured(ns)
    })
  })
  return {
    measure: (what, roundMs) => {
      return new Promise((resolve) => {
        measured = resolve
        worker.send({ what, roundMs })
      })
    },
    end: () => worker.kill(),
  }
}
