// One thread of a crew. It does one job after the other, each on its own shared store, starting
// together with the rest of the crew.
import { parentPort, workerData } from 'node:worker_threads'
import { limitFrom } from '../../dist/config/index.js'
import { acquireSync, createLimiter, systemClock } from '../../dist/index.js'
import { sharedStore } from '../../dist/stores/shared-memory/index.js'

const JOBS = { race, history, queue, admitted, cancelled, settled, decided, named }

/** { number, threads, gate }: all stop at the gate until everybody is there. */
const { number } = workerData

parentPort.on('message', ({ job, ...order }) => {
  parentPort.postMessage(JOBS[job](order))
})

/** The limits of a job: [factory, options], or several of them by name. */
function limitsOf(made) {
  if (Array.isArray(made)) return limitFrom({ type: made[0], ...made[1] })
  return Object.fromEntries(Object.entries(made).map(([name, each]) => [name, limitsOf(each)]))
}

function limiterOn(store, { limits, nowUs }) {
  const clock = { nowUs: () => nowUs, setTimer: () => () => undefined }
  return createLimiter(limitsOf(limits), { name: 'crew', store, clock, maxAheadMs: 0 })
}

/** The last to come opens the gate. A gate is used once. */
function passGate(gate, threads) {
  const words = new Int32Array(gate)
  if (Atomics.add(words, 0, 1) === threads - 1) {
    Atomics.store(words, 1, 1)
    Atomics.notify(words, 1)
  } else Atomics.wait(words, 1, 0)
}

/** A gate that nobody sleeps at, for what takes less time than waking up. */
function passOpenGate(gate, threads) {
  const words = new Int32Array(gate)
  Atomics.add(words, 0, 1)
  while (Atomics.load(words, 0) < threads);
}

/** Takes one permit after the other, of each key in turn. */
function race({ handle, gate, threads, keys, calls, ...order }) {
  const store = sharedStore(handle)
  const limiter = limiterOn(store, order)
  const names = Array.from({ length: keys }, (_, k) => `key:${k}`)
  let admitted = 0
  passGate(gate, threads)
  for (let call = 0; call < calls; call++) if (limiter.tryAcquire(names[call % keys])) admitted += 1
  return { admitted, collisions: store.collisions }
}

/**
 * Short histories, one key each: what was called and answered, and between which ticks of a common
 * counter.
 */
function history({ handle, gate, ticks, threads, rounds, plan, ...order }) {
  const store = sharedStore(handle)
  const limiter = limiterOn(store, order)
  const counter = new Int32Array(ticks)
  const gates = Array.from({ length: rounds }, (_, k) => gate[k])
  return gates.map((each, round) => {
    const key = `round:${round}`
    const calls = plan[round][number]
    passOpenGate(each, threads)
    return calls.map(([verb, cost]) => {
      const from = Atomics.add(counter, 0, 1)
      const answer = limiter[verb](key, cost)
      const to = Atomics.add(counter, 0, 1)
      return { verb, cost, from, to, answer: answer && { allowed: answer.allowed, remaining: answer.remaining } }
    })
  })
}

/** Waits its turn again and again, by blocking. Tells when it got it, by the common clock. */
function queue({ handle, gate, threads, limits, turns }) {
  const store = sharedStore(handle)
  const limiter = createLimiter(limitsOf(limits), { name: 'crew', store })
  passGate(gate, threads)
  return Array.from({ length: turns }, () => {
    const { atMs, delayMs } = acquireSync(limiter, 'key')
    return { dueUs: Math.round(atMs * 1000) + Math.round(delayMs * 1000), gotUs: store.nowUs?.() ?? systemClock.nowUs() }
  })
}

/**
 * Takes as fast as it can, for so long or until it is stopped. Tells when it was admitted, in
 * microseconds.
 */
function admitted({ handle, gate, threads, limits, forMs, stop, stopAt }) {
  const limiter = createLimiter(limitsOf(limits), { name: 'crew', store: sharedStore(handle), maxAheadMs: 0 })
  const stops = new Int32Array(stop ?? new SharedArrayBuffer(4))
  const times = []
  passGate(gate, threads)
  for (const endMs = performance.now() + forMs; performance.now() < endMs && Atomics.load(stops, stopAt ?? 0) === 0; ) {
    for (let k = 0; k < 100; k++) {
      const { allowed, atMs } = limiter.consume('key')
      if (allowed) times.push(Math.round(atMs * 1000))
    }
  }
  return times
}

/** Takes one and gives it back, again and again. Tells how often it was admitted. */
function cancelled({ handle, gate, threads, limits, calls }) {
  const limiter = createLimiter(limitsOf(limits), { name: 'crew', store: sharedStore(handle) })
  let taken = 0
  passGate(gate, threads)
  for (let call = 0; call < calls; call++) {
    const decision = limiter.consume('key')
    if (!decision.allowed) continue
    taken += 1
    decision.cancel()
  }
  return taken
}

/**
 * Takes an estimate, settles it by more or less, and charges one, again and again. Tells how much
 * was used, and how much that would be if nothing came back.
 */
function settled({ handle, gate, threads, calls, ...order }) {
  const store = sharedStore(handle)
  const limiter = limiterOn(store, order)
  let [used, charged] = [0, 0]
  passGate(gate, threads)
  for (let call = 0; call < calls; call++) {
    const decision = limiter.consume('key:0', 3)
    const actual = decision.allowed ? call % 6 : 0
    decision.settle(actual)
    limiter.charge('key:0')
    used += actual + 1
    charged += Math.max(decision.allowed ? 3 : 0, actual) + 1
  }
  return { used, charged, collisions: store.collisions }
}

/**
 * Takes as fast as it can, by a clock of its own. Tells when it was admitted and refused, in
 * microseconds.
 */
function decided({ handle, gate, threads, limits, forMs, apartUs }) {
  const clock = { nowUs: () => systemClock.nowUs() + apartUs[number], setTimer: () => () => undefined }
  const limiter = createLimiter(limitsOf(limits), { name: 'crew', store: sharedStore(handle), clock, maxAheadMs: 0 })
  const [admitted, refused] = [[], []]
  limiter.peek('other')
  passGate(gate, threads)
  limiter.peek('other')
  for (const endMs = performance.now() + forMs; performance.now() < endMs; ) {
    for (let k = 0; k < 20; k++) {
      const { allowed, atMs } = limiter.consume('key')
      ;(allowed ? admitted : refused).push(Math.round(atMs * 1000))
    }
  }
  return { admitted, refused }
}

/**
 * Opens and closes limiters of many names, of which other threads open some too. Of a name that it
 * has open it takes one of two permits and gives it back: tells how often there was none.
 */
function named({ handle, gate, threads, limits, names, calls }) {
  const store = sharedStore(handle)
  const clock = { nowUs: () => 1_700_000_000_000_000, setTimer: () => () => undefined }
  let [missing, seed] = [0, number + 1]
  passGate(gate, threads)
  for (let call = 0; call < calls; call++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0
    const limiter = createLimiter(limitsOf(limits), { name: `tenant-${(seed >>> 8) % names}`, store, clock })
    const decision = limiter.consume(`thread:${number}`)
    if (decision.allowed) decision.cancel()
    else missing += 1
    limiter.close()
  }
  return missing
}
