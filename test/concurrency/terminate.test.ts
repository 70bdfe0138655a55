/**
 * Threads that are terminated in the middle of what they do, again and again, on one shared store
 * that goes on.
 */
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra } from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Journals } from '../../src/stores/shared-memory/journals.ts'
import { SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { Random } from '../model/random.ts'
import { audit } from './audit.ts'

const NOW_US = 1_700_000_000_000_000
const KEYS = 20
const CAPACITY = 1_000_000_000
/**
 * Every point at which a thread can die is explored by model-check.test.ts, and `npm run proof`
 * terminates a thousand (storm.mjs).
 */
const VICTIMS = Number(process.env.SLUICE_VICTIMS ?? 100)
/**
 * About one in fifteen dies in the middle of a step. At least one has to, and each that does keeps
 * a cell.
 */
const MOST_VICTIMS = Math.max(VICTIMS, 240)
const AT_ONCE = 4
const RECLAIM_AFTER_MS = 9

const MADE = { a: ['gcra', { rate: '1/s', burst: CAPACITY }], b: ['fixedWindow', { limit: CAPACITY, window: '1h' }] }
const LIMITS = { a: gcra({ rate: '1/s', burst: CAPACITY }), b: fixedWindow({ limit: CAPACITY, window: '1h' }) }

test(`${VICTIMS} threads, each terminated at a random instant, leave everything usable`, async () => {
  const random = new Random(11)
  // Room for few keys, so that records are wanted all the time; and no cell is taken over before
  // the end, however many die in the middle of a step.
  const store = sharedStore({ maxKeys: 100, maxThreads: 254, limits: LIMITS, reclaimAfterMs: 3_600_000 })
  const { handle } = store
  const counts = new SharedArrayBuffer(4 * (1 + KEYS))
  const counters = new Int32Array(counts)
  const clock = { nowUs: () => NOW_US, setTimer: () => () => undefined }
  const limiter = createLimiter(LIMITS, { name: 'victims', store, clock, maxAheadMs: 0 })
  const workerData = { handle, counts, limits: MADE, nowUs: NOW_US, keys: KEYS }
  const url = new URL('victim.worker.mjs', import.meta.url)
  for (let key = 0; key < KEYS; key++) if (limiter.tryAcquire(`lasting:${key}`)) Atomics.add(counters, 1 + key, 1)

  let ended = 0
  for (; ended < VICTIMS || (audit(handle).takenCells === 0 && ended < MOST_VICTIMS); ended += AT_ONCE) {
    const before = Atomics.load(counters, 0)
    const victims = Array.from(
      { length: AT_ONCE },
      () => new Worker(url, { workerData: { ...workerData, seed: random.whole(0, 999_999) } }),
    )
    await until(() => Atomics.load(counters, 0) > before)
    // This thread calls too, for a random while: the victims are ended in the middle of races.
    for (let k = random.whole(0, 3_000); k > 0; k--) {
      const key = k % KEYS
      if (limiter.tryAcquire(`lasting:${key}`)) Atomics.add(counters, 1 + key, 1)
    }
    await Promise.all(victims.map((victim) => victim.terminate()))
    expect(audit(handle).faults).toEqual([])
    expect(overcharged(ended + AT_ONCE)).toBe('')
  }

  const { takenCells } = audit(handle)
  console.log(`${ended} threads terminated, ${takenCells} of them in the middle of a step; ${Atomics.load(counters, 0)} calls`)
  expect(takenCells).toBeGreaterThan(0)
  takeOverAll()
  expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
  expect(overcharged(ended)).toBe('')

  /**
   * What was charged is what was counted as admitted, or one more for each thread that ended
   * between the two.
   */
  function overcharged(deaths: number): string {
    let surplus = 0
    for (let key = 0; key < KEYS; key++) {
      const charged = CAPACITY - limiter.peek(`lasting:${key}`, 0).remaining
      const more = charged - Atomics.load(counters, 1 + key)
      if (more < 0) return `of key ${key} ${-more} admissions were not charged`
      surplus += more
    }
    return surplus <= deaths ? '' : `${surplus} were charged and not admitted, with ${deaths} deaths`
  }

  function takeOverAll(): void {
    const memory = new SharedMemory(handle)
    memory.ints[RECLAIM_AFTER_MS] = 0
    const cells = new Journals(new SharedMemory(handle))
    // A cell must have been seen twice.
    for (let cell = 0; cell < memory.journalCount; cell++) if (cells.takeOver(cell) || cells.takeOver(cell)) cells.release()
  }
})

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setImmediate(resolve))
}
