// A thread that calls as fast as it can from 'go' until it is stopped.
import { parentPort, workerData } from 'node:worker_threads'
import { sharedStore } from '../dist/stores/shared-memory/index.js'
import { loopOf } from './loop.mjs'
import { SCENARIOS, trafficOf } from './scenarios.mjs'
import { bareLoop } from './shared-bare.mjs'
import { contestantOf, sharedLimiter } from './shared-limiters.mjs'

/** How many calls are made between two looks at the flag. */
const CHUNK = 2_000

const { handle, scenario, subject, stop, number } = workerData
const { round, counted } = subject === 'bare' ? bareLoop(stop) : limiterLoop()
const flag = new Int32Array(stop)
// Threads that went through the same keys in step would meet all the time, or never.
let from = number * 524_287

parentPort.on('message', () => {
  const collisionsBefore = counted.collisions
  const startMs = performance.now()
  let calls = 0
  for (; Atomics.load(flag, 0) === 0; calls += CHUNK) {
    round(from, CHUNK)
    from = (from + CHUNK) & 0x3fff_ffff
  }
  parentPort.postMessage({ calls, seconds: (performance.now() - startMs) / 1000, collisions: counted.collisions - collisionsBefore })
})
parentPort.postMessage('ready')

function limiterLoop() {
  const { key, ...shape } = SCENARIOS[scenario]
  const traffic = trafficOf(shape)
  const store = sharedStore(handle)
  const contestant = contestantOf(`thread ${number}`, sharedLimiter(scenario, store))
  loopOf(contestant, traffic, 'keys[at]')(0, shape.keys)
  return { round: loopOf(contestant, traffic, key), counted: store }
}
