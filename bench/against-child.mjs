// One process of bench/against.mjs: both packages on one task, in turns. Reports the ratio of their
// median speeds.
import { Worker } from 'node:worker_threads'
import { spreadOf } from './statistics.mjs'

const { store, factory, scenario, verb, old, now, oldFirst, quick } = JSON.parse(process.argv[2])
const ROUNDS = quick ? 4 : 40
const WARM_UP_MS = quick ? 50 : 400
const ROUND_MS = quick ? 5 : 10
const THREADS_ROUNDS = quick ? 1 : 6
const THREADS_MS = 200

const makers = store === 'two threads' ? [threads(old), threads(now)] : [await calls(old), await calls(now)]
const order = oldFirst ? [0, 1] : [1, 0]
const speeds = [[], []]
for (const k of order) await makers[k](WARM_UP_MS)
const rounds = store === 'two threads' ? THREADS_ROUNDS : ROUNDS
for (let round = 0; round < rounds; round++) {
  for (const k of round % 2 === 0 ? order : order.toReversed())
    speeds[k].push(await makers[k](store === 'two threads' ? THREADS_MS : ROUND_MS))
}
const [oldSpeed, nowSpeed] = speeds.map((all) => spreadOf(all).median)
process.send(nowSpeed / oldSpeed, () => process.exit(0))

/** Calls one package for some milliseconds; answers with calls a millisecond. */
async function calls(dist) {
  const sluice = await import(`${dist}/index.js`)
  const limit = limitOf(sluice)
  const { sharedStore } = await import(`${dist}/stores/shared-memory/index.js`)
  const makeStore = () =>
    store === 'shared' ? sharedStore({ maxKeys: 20_000, limits: limit }) : sluice.memoryStore({ maxKeys: 10_000_000 })
  let limiter = sluice.createLimiter(limit, { name: 'bench', store: makeStore() })
  const keys = Array.from({ length: scenario === 'keys-10k' ? 10_000 : 1 }, (_, k) => `user:${k}`)
  let at = 0
  const loop = {
    tryAcquire: (count) => {
      for (let k = 0; k < count; k++) {
        limiter.tryAcquire(keys[at])
        at = at + 1 < keys.length ? at + 1 : 0
      }
    },
    consume: (count) => {
      for (let k = 0; k < count; k++) {
        limiter.consume(keys[at])
        at = at + 1 < keys.length ? at + 1 : 0
      }
    },
    acquire: (count) => crowd(count, (key) => limiter.acquire(key)),
    wrap: (count) => crowd(count, job),
  }[verb]
  const job = limiter.wrap?.(
    (key) => key,
    () => {},
  )
  /** Calls that answer with promises are made together, and awaited together. */
  const crowd = (count, call) => {
    const promises = new Array(count)
    for (let k = 0; k < count; k++) {
      promises[k] = call(keys[at])
      at = at + 1 < keys.length ? at + 1 : 0
    }
    return Promise.all(promises)
  }
  const fresh = (count) => {
    for (let k = 0; k < count; k++) limiter.tryAcquire(`key:${at++}`)
  }
  return async (ms) => {
    if (scenario === 'new-keys') limiter = sluice.createLimiter(limit, { name: 'bench', store: makeStore() })
    const run = scenario === 'new-keys' ? fresh : loop
    const fromMs = performance.now()
    let count = 0
    while (performance.now() - fromMs < ms) {
      const running = run(1_000)
      if (running !== undefined) await running
      count += 1_000
    }
    return count / (performance.now() - fromMs)
  }
}

/** Always allowed, but for the log, which is always full. */
function limitOf({ gcra, tokenBucket, leakyBucket, fixedWindow, slidingWindow, slidingLog }) {
  return {
    gcra: () => gcra({ rate: '10000000/s', burst: 1_000_000 }),
    tokenBucket: () => tokenBucket({ capacity: 1_000_000, refill: '10000000/s' }),
    leakyBucket: () => leakyBucket({ capacity: 1_000_000, leak: '10000000/s' }),
    fixedWindow: () => fixedWindow({ limit: 1_000_000_000, window: '1h' }),
    slidingWindow: () => slidingWindow({ limit: 1_000_000_000, window: '1h' }),
    slidingLog: () => slidingLog({ limit: 10, window: '1h' }),
  }[factory]()
}

/** Two threads of one package on one store. */
function threads(dist) {
  const source = `
    const { parentPort, workerData: { dist, handle, ms, keys } } = require('node:worker_threads')
    Promise.all([import(dist + '/index.js'), import(dist + '/stores/shared-memory/index.js')]).then(([{ createLimiter, gcra }, { sharedStore }]) => {
      const limiter = createLimiter(gcra({ rate: '10000000/s', burst: 1000000 }), { name: 'bench', store: sharedStore(handle) })
      const names = Array.from({ length: keys }, (_, k) => 'user:' + k)
      let count = 0
      const run = (ms) => { const from = performance.now(); count = 0
        while (performance.now() - from < ms) for (let k = 0; k < 1000; k++) limiter.tryAcquire(names[count++ % keys]) }
      run(100)
      parentPort.once('message', () => { run(ms); parentPort.postMessage(count / ms) })
      parentPort.postMessage('ready')
    })`
  return async (ms) => {
    const { sharedStore } = await import(`${dist}/stores/shared-memory/index.js`)
    const { gcra } = await import(`${dist}/index.js`)
    const { handle } = sharedStore({ maxKeys: 1_000, limits: gcra({ rate: '10000000/s', burst: 1_000_000 }) })
    const keys = scenario === 'one-key' ? 1 : 100
    const workers = [1, 2].map(() => new Worker(source, { eval: true, workerData: { dist, handle, ms, keys } }))
    await Promise.all(workers.map(told))
    const counts = workers.map(told)
    for (const worker of workers) worker.postMessage('go')
    const all = await Promise.all(counts)
    await Promise.all(workers.map((worker) => worker.terminate()))
    return all[0] + all[1]
  }
}

function told(worker) {
  return new Promise((resolve) => worker.once('message', resolve))
}
