/**
 * Threads that are terminated while they hold places: what they held is free at once, and nobody
 * else's is.
 */
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { systemClock } from '../../src/clock/clock.ts'
import { limitsFrom } from '../../src/config/config.ts'
import { type ConcurrencyLimit, concurrency, createLimiter, SluiceError } from '../../src/index.ts'
import { releaseHeld } from '../../src/stores/shared-memory/held.ts'
import { type SharedStore, sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Journals } from '../../src/stores/shared-memory/journals.ts'
import { SCOPE_AND_TAG, SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { SharedTable } from '../../src/stores/shared-memory/shared-table.ts'
import { threadNumber } from '../../src/stores/shared-memory/thread.ts'
import { Random } from '../model/random.ts'
import { audit } from './audit.ts'

const MAX = 40
const KEYS = ['a', 'b', 'c', 'd']
const AT_ONCE = 3
const VICTIMS = 9
const MOST_VICTIMS = 240

const started: Worker[] = []
afterEach(async () => {
  await Promise.all(started.splice(0).map((worker) => worker.terminate()))
})

type Json = Readonly<Record<string, object>>

/** As the types of limits that are not known beforehand cannot tell. */
const limitsOf = (json: Json) => limitsFrom(json) as Readonly<Record<string, ConcurrencyLimit>>

const WITHOUT_LEASE: Json = { inflight: { type: 'concurrency', max: MAX } }
const BESIDE_A_RATE: Json = {
  rate: { type: 'slidingWindow', limit: 1_000_000_000, window: '1h', slots: 3 },
  inflight: { type: 'concurrency', max: MAX, lease: '1h' },
}

interface Task {
  readonly task: 'churn' | 'wait' | 'keep'
  readonly keys: readonly string[]
  readonly seed?: number
  readonly limits?: Json
}

function setUp(limits: Json) {
  const store = sharedStore({ maxKeys: 64, maxThreads: 32, limits: limitsOf(limits), reclaimAfterMs: 3_600_000 })
  const calls = new SharedArrayBuffer(4)
  const counter = new Int32Array(calls)
  const start = async (task: Task, onExit = () => {}) => {
    const workerData = { handle: store.handle, limits, calls, ...task }
    const worker = new Worker(new URL('held.worker.mjs', import.meta.url), { workerData })
    started.push(worker)
    // Before the store is told.
    worker.once('exit', onExit)
    store.watch(worker)
    await new Promise((resolve) => worker.once('message', resolve))
    return worker
  }
  return { store, counter, start }
}

function limiterOn(store: SharedStore, limits: Json) {
  const limiter = createLimiter(limitsOf(limits), { name: 'held', store })
  const used = (key: string) => MAX - (limiter.peek(key, 0).parts.inflight?.remaining as number)
  return { limiter, used }
}

describe.each([
  ['without a lease', WITHOUT_LEASE],
  ['with a lease of an hour, beside a rate', BESIDE_A_RATE],
])('%s', (_, limits) => {
  test('Semian: a killed thread never gives back; the permits of terminated threads are free when they have ended, exactly those, and permits of others stay held', async () => {
    const random = new Random(7)
    const { store, counter, start } = setUp(limits)
    const { limiter, used } = limiterOn(store, limits)
    const own = KEYS.map((key, k) => Array.from({ length: k }, () => limiter.consume(key)))
    await start({ task: 'keep', keys: KEYS })
    const expected = KEYS.map((_key, k) => k + 2)
    let [ended, inSteps, heldByThem] = [0, 0, 0]
    for (; ended < VICTIMS || (inSteps === 0 && ended < MOST_VICTIMS); ended += AT_ONCE) {
      const onExit = () => {
        inSteps += audit(store.handle).takenCells > 0 ? 1 : 0
      }
      const victims = await Promise.all(
        Array.from({ length: AT_ONCE }, () => start({ task: 'churn', keys: KEYS, seed: random.whole(1, 999_999) }, onExit)),
      )
      const before = Atomics.load(counter, 0)
      while (Atomics.load(counter, 0) < before + 500) await new Promise((resolve) => setImmediate(resolve))
      // This thread races with them, for a random while.
      for (let k = random.whole(0, 300); k > 0; k--) limiter.consume(KEYS[k % KEYS.length] as string).release()
      heldByThem += KEYS.reduce((sum, key, k) => sum + used(key) - (expected[k] as number), 0)
      await Promise.all(victims.map((victim) => victim.terminate()))
      expect(KEYS.map(used)).toEqual(expected)
      expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
    }
    console.log(`${ended} threads terminated with ${heldByThem} places, ${inSteps} of them in the middle of a step`)
    expect(heldByThem).toBeGreaterThan(ended)
    expect(inSteps).toBeGreaterThan(0)
    for (const permit of own.flat()) permit.release()
    expect(KEYS.map(used)).toEqual([2, 2, 2, 2])
  })

  test('a thread that stood in line holds nobody up after its end', async () => {
    const { store, start } = setUp(limits)
    const { limiter, used } = limiterOn(store, limits)
    const all = limiter.consume('a', MAX)
    expect(all.allowed).toBe(true)
    const waiting = await start({ task: 'wait', keys: ['a'] })
    const tokens = () => Object.keys(store.inspect('held', 'inflight', 'a') ?? {}).filter((name) => name.endsWith('in line for'))
    while (tokens().length === 0) await new Promise((resolve) => setImmediate(resolve))
    await waiting.terminate()
    expect(tokens()).toEqual([])
    all.release()
    expect(limiter.consume('a').allowed).toBe(true)
    expect(used('a')).toBe(1)
  })
})

test('a thread that has no limiter of that name frees the places all the same, and the room of the keys', async () => {
  const { store, start } = setUp(WITHOUT_LEASE)
  const keys = Array.from({ length: 64 }, (_, k) => `key:${k}`)
  const worker = await start({ task: 'keep', keys })
  expect(audit(store.handle).keys).toBe(64)
  await worker.terminate()
  const { limiter } = limiterOn(store, WITHOUT_LEASE)
  for (let k = 0; k < 64; k++) expect(limiter.consume(`other:${k}`).allowed).toBe(true)
})

test('also where the numbers have changed meanwhile, and a state is longer or shorter than it was', async () => {
  const { store, start } = setUp({ inflight: { type: 'concurrency', max: 200 } })
  const worker = await start({ task: 'keep', keys: ['a'], limits: WITHOUT_LEASE })
  const { limiter, used } = limiterOn(store, WITHOUT_LEASE)
  for (const max of [200, 10, 40]) {
    limiter.update({ inflight: concurrency({ max }) })
    expect(limiter.consume('a').allowed).toBe(true)
  }
  expect(used('a')).toBe(5)
  await worker.terminate()
  expect(used('a')).toBe(3)
})

test('a chain that another thread writes anew while it is looked at is looked at again', () => {
  const store = sharedStore({ maxKeys: 1, limits: concurrency({ max: 40 }) })
  const { limiter, used } = limiterOn(store, WITHOUT_LEASE)
  limiter.consume('a')
  const memory = new SharedMemory(store.handle)
  const { chain } = new SharedTable(memory, new Journals(memory, 1_000_000))
  let isTorn = false
  /**
   * Reads the head before a step of another thread, and the records after it, once: the records are
   * free by then.
   */
  const look = (headAt: number) => {
    chain.look(headAt)
    if (isTorn || chain.seen.length === 0) return
    isTorn = limiter.consume('a').allowed
    chain.seen.tags[0] = memory.ints[memory.recordAt(chain.seen.records[0] as number) + SCOPE_AND_TAG] as number
  }
  releaseHeld(memory, { ...chain, look }, threadNumber(), systemClock.nowUs)
  expect(isTorn).toBe(true)
  expect(used('a')).toBe(0)
})

test('a pool that keeps the ids of its threads says which has ended', async () => {
  const store = sharedStore({ maxKeys: 4, limits: concurrency({ max: 40 }) })
  const workerData = { handle: store.handle, limits: WITHOUT_LEASE, task: 'keep', keys: ['a'], calls: new SharedArrayBuffer(4) }
  const worker = new Worker(new URL('held.worker.mjs', import.meta.url), { workerData })
  started.push(worker)
  const { threadId } = worker
  await new Promise((resolve) => worker.once('message', resolve))
  await worker.terminate()
  const { used } = limiterOn(store, WITHOUT_LEASE)
  expect(used('a')).toBe(2)
  store.ended(threadId)
  expect(used('a')).toBe(0)
})

test('where threads have no ids a lease is required', () => {
  const spied = vi.spyOn(process, 'getBuiltinModule').mockImplementation((() => ({})) as unknown as typeof process.getBuiltinModule)
  try {
    const store = sharedStore({ maxKeys: 4, limits: concurrency({ max: 1 }) })
    const make = (lease?: '1s') => createLimiter(concurrency({ max: 1, ...(lease && { lease }) }), { name: 'held', store })
    expect(() => make()).toThrow(SluiceError)
    expect(() => make()).toThrow("limit 'default' needs a lease in shared memory outside of Node, such as lease: '30s'")
    expect(make('1s').consume('a').allowed).toBe(true)
  } finally {
    spied.mockRestore()
  }
})
