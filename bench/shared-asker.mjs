// Asks one question after the other, each when the one before is answered: as a thread, or as a
// process of a cluster.
import cluster from 'node:cluster'
import { parentPort, workerData } from 'node:worker_threads'
import { RateLimiterCluster } from 'rate-limiter-flexible'
import { sharedStore } from '../dist/stores/shared-memory/index.js'
import { SCENARIOS } from './scenarios.mjs'
import { sharedLimiter } from './shared-limiters.mjs'

const CHUNK = 100

if (parentPort) asThread(workerData)
else if (cluster.isWorker) asProcess(process.argv[2])

function asThread({ handle, scenario }) {
  const limiter = sharedLimiter(scenario, sharedStore(handle))
  let answered = () => {}
  const ask = {
    message: (key) => {
      return new Promise((resolve) => {
        answered = resolve
        parentPort.postMessage({ key })
      })
    },
  }
  parentPort.on('message', async ({ what, roundMs, allowed }) => {
    if (what === undefined) answered(allowed)
    else if (what === 'shared') parentPort.postMessage({ ns: nsPerCallAtOnce((key) => limiter.tryAcquire(key), roundMs) })
    else parentPort.postMessage({ ns: await nsPerCall(ask[what], roundMs) })
  })
}

function asProcess(scenario) {
  const { limit, ms } = SCENARIOS[scenario].limits.window
  const limiter = new RateLimiterCluster({ keyPrefix: 'bench', points: limit, duration: ms / 1000, timeoutMs: 60_000 })
  process.on('message', async ({ what, roundMs }) => {
    if (what !== undefined) process.send({ ns: await nsPerCall((key) => limiter.consume(key), roundMs) })
  })
  process.send({ isReady: true })
}

/** What answers at once need not be awaited. */
function nsPerCallAtOnce(ask, roundMs) {
  const startMs = performance.now()
  let calls = 0
  for (; performance.now() - startMs < roundMs; calls += CHUNK) {
    for (let k = 0; k < CHUNK; k++) ask('user:0')
  }
  return ((performance.now() - startMs) * 1e6) / calls
}

async function nsPerCall(ask, roundMs) {
  const startMs = performance.now()
  let calls = 0
  for (; performance.now() - startMs < roundMs; calls += CHUNK) {
    for (let k = 0; k < CHUNK; k++) await ask('user:0')
  }
  return ((performance.now() - startMs) * 1e6) / calls
}
