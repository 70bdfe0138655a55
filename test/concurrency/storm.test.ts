/**
 * Threads that are terminated one after the other, many of them in the middle of a step, on a store with few cells that watches them: no call
 * fails, in any thread. `SLUICE_STORM=1000 npx vitest run test/concurrency/storm.test.ts` does it with a thousand.
 */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { limitFrom } from '../../src/config/index.ts'
import { createLimiter } from '../../src/index.ts'
import { STATE, THREAD } from '../../src/stores/shared-memory/cell-layout.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { SharedMemory } from '../../src/stores/shared-memory/memory.ts'
import { numberOf } from '../../src/stores/shared-memory/thread-number.ts'
import { audit } from './audit.ts'

/** A key is idle after half a millisecond. */
const MADE = { type: 'gcra', rate: '2000/s', burst: 1 }
const KEYS = 100
const VICTIMS = Number(process.env.SLUICE_STORM ?? 32)
const AT_ONCE = 3
/** One for each thread at work: if they were not watched, so many that end in the middle of a step would stop all others. */
const CELLS = AT_ONCE + 1

test(`${VICTIMS} watched threads that are terminated, one after the other, cause no error with ${CELLS} cells`, async () => {
  const limits = limitFrom(MADE)
  const store = sharedStore({ maxKeys: KEYS, maxThreads: CELLS, limits, reclaimAfterMs: 3_600_000 })
  const memory = new SharedMemory(store.handle)
  const limiter = createLimiter(limits, { name: 'storm', store })
  const failures: unknown[] = []
  let [begun, ended, inStep, own] = [0, 0, 0, 0]

  async function victim(): Promise<void> {
    const started = new SharedArrayBuffer(4)
    const workerData = { handle: store.handle, started, made: MADE, number: begun }
    const worker = new Worker(new URL('storm.worker.mjs', import.meta.url), { workerData })
    const thread = numberOf(worker.threadId)
    worker.once('error', (error) => failures.push(error))
    // Before the store is told.
    worker.once('exit', () => {
      inStep += cellsOf(thread)
    })
    store.watch(worker)
    const exit = once(worker, 'exit')
    await until(() => Atomics.load(new Int32Array(started), 0) === 1 || failures.length > 0)
    await worker.terminate()
    await exit
    if (cellsOf(thread) > 0) failures.push(`thread ${thread} still has a cell`)
    ended += 1
  }

  function cellsOf(thread: number): number {
    const { ints, cellCount } = memory
    const cells = Array.from({ length: cellCount }, (_, cell) => memory.cellAt(cell))
    return cells.filter((at) => ((ints[at + STATE] as number) & 1) === 1 && ints[at + THREAD] === thread).length
  }

  /** This thread calls meanwhile, too. */
  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      for (let k = 0; k < 10; k++, own++) limiter.tryAcquire(`own:${own}`)
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  async function oneAfterTheOther(): Promise<void> {
    while (begun < VICTIMS && failures.length === 0) {
      begun += 1
      await victim()
    }
  }

  const startMs = performance.now()
  await Promise.all(Array.from({ length: AT_ONCE }, oneAfterTheOther))
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
  console.log(`${ended} threads terminated in ${seconds} s, ${inStep} of them in the middle of a step; ${own} calls of this thread`)
  expect(failures).toEqual([])
  expect(ended).toBe(VICTIMS)
  expect(inStep).toBeGreaterThan(0)
  expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
})
