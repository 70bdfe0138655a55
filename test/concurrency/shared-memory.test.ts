/** Real threads on one key. They run the built package: worker threads cannot load TypeScript. */
import { Worker } from 'node:worker_threads'
import { describe, expect, test } from 'vitest'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'

interface Result {
  readonly admitted: number
  readonly collisions: number
  readonly remaining: number
}

const NOW_US = 1_700_000_000_000_000

/** Lets threads race on one key while the clock stands still, so that the number of admissions is exactly known. */
async function race(type: string, options: { threads: number; capacity: number; calls: number }): Promise<Result[]> {
  const { handle } = sharedStore({ maxKeys: 10, recordWords: 16 })
  const gate = new SharedArrayBuffer(8)
  const workers = Array.from({ length: options.threads }, () => {
    return new Worker(new URL('hammer.worker.mjs', import.meta.url), { workerData: { handle, gate, type, nowUs: NOW_US, ...options } })
  })
  const results = workers.map((worker) => {
    return new Promise<Result>((resolve, reject) => worker.once('message', resolve).once('error', reject))
  })
  await openGate(new Int32Array(gate), options.threads)
  return Promise.all(results)
}

/** All threads start at the same moment: the race is real, not one after the other. */
async function openGate(gate: Int32Array, threads: number): Promise<void> {
  while (Atomics.load(gate, 0) < threads) await new Promise((resolve) => setImmediate(resolve))
  Atomics.store(gate, 1, 1)
  Atomics.notify(gate, 1)
}

const total = (results: readonly Result[], field: keyof Result) => results.reduce((sum, result) => sum + result[field], 0)

/** On a busy machine two threads may happen to run one after the other: races are run until some have collided. */
const MOST_RACES = 20

async function collidingRaces(
  type: string,
  options: { capacity: number; calls: number },
  check: (results: readonly Result[]) => void,
): Promise<number> {
  let collisions = 0
  for (let k = 0; k < MOST_RACES && collisions === 0; k++) {
    const results = await race(type, { threads: 2, ...options })
    check(results)
    collisions += total(results, 'collisions')
  }
  return collisions
}

describe.each(['gcra', 'tokenBucket', 'both'])('two threads hammering one key with %s', (type) => {
  test('admit exactly the permitted number', async () => {
    const collisions = await collidingRaces(type, { capacity: 100_000, calls: 80_000 }, (results) => {
      expect(total(results, 'admitted')).toBe(100_000)
      // Whoever came last saw everything used up.
      expect(Math.min(...results.map(({ remaining }) => remaining))).toBe(0)
    })
    console.log(`${type}: 100000 admitted, ${collisions} collisions`)
    expect(collisions).toBeGreaterThan(0)
  })

  test('lose no charge when there is room for all', async () => {
    const collisions = await collidingRaces(type, { capacity: 1_000_000, calls: 60_000 }, (results) => {
      expect(total(results, 'admitted')).toBe(120_000)
      expect(Math.min(...results.map(({ remaining }) => remaining))).toBe(1_000_000 - 120_000)
    })
    expect(collisions).toBeGreaterThan(0)
  })
})

test('eight threads on two cores admit exactly the permitted number', async () => {
  const results = await race('tokenBucket', { threads: 8, capacity: 50_000, calls: 10_000 })
  expect(total(results, 'admitted')).toBe(50_000)
})
