/**
 * When a cell counts as that of a dead thread, and what becomes of the cell of one that was only
 * slow.
 */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Journals } from '../../src/stores/shared-memory/journals.ts'
import { AT_REST, FREED_AT, SCOPE_AND_TAG, SEEN_AT, SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { audit } from './audit.ts'

/** As in layout.ts. */
const STATE = 0
const COUNTS = 3
const RECLAIM_AFTER_MS = 9
const LIMIT = gcra({ rate: '1/h', burst: 1 })

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

function opened(reclaimAfterMs = 60_000, maxKeys = 4) {
  const store = sharedStore({ maxKeys, maxThreads: 3, limits: LIMIT, reclaimAfterMs })
  return { store, memory: new SharedMemory(store.handle) }
}

describe('the time after which a cell is taken over', () => {
  function lookedAt(reclaimAfterMs: number) {
    let nowMs = 5_000
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    const { memory } = opened(reclaimAfterMs)
    const cells = new Journals(memory)
    // A thread died with it.
    memory.ints[memory.journalAt(2) + STATE] = 7
    expect(cells.takeOver(2)).toBe(false)
    return (afterMs: number) => {
      nowMs += afterMs
      return cells.takeOver(2)
    }
  }

  test('is the time that threads could have gone on in: a stop of the whole process counts for a second', () => {
    const look = lookedAt(60_000)
    expect(look(3_600_000)).toBe(false)
    for (let k = 0; k < 58; k++) expect(look(1_000)).toBe(false)
    expect(look(999)).toBe(false)
    expect(look(1)).toBe(true)
  })

  test('is never up after one stop, however short it is', () => {
    const look = lookedAt(1_000)
    expect([look(3_600_000), look(3_600_000)]).toEqual([false, true])
  })

  test('begins again with every step', () => {
    const { memory } = opened(1_000)
    let nowMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    const cells = new Journals(memory)
    for (let step = 1; step < 20; step += 2, nowMs += 900) {
      memory.ints[memory.journalAt(2) + STATE] = step
      expect(cells.takeOver(2)).toBe(false)
    }
  })
})

describe('when all cells are taken', () => {
  /** As if so many threads had died in the middle of a step. */
  function withTaken(cells: readonly number[]) {
    const { store, memory } = opened(1_000)
    const limiter = createLimiter(LIMIT, { name: 'taken', store })
    expect(limiter.tryAcquire('held')).toBe(true)
    for (const cell of cells) memory.ints[memory.journalAt(cell) + STATE] = 7
    return { store, memory, limiter }
  }

  test('a call that needs one fails, after a wait of some looks; the next does not wait as long, and all work again once one is free', () => {
    const { memory, limiter } = withTaken([0, 1, 2])
    const rests = vi.spyOn(Atomics, 'wait')
    const failed = () => {
      rests.mockClear()
      expect(() => limiter.reset('held')).toThrow(
        expect.objectContaining({ code: 'STORE', message: expect.stringContaining('store.watch') }),
      )
      return rests.mock.calls.map(([, , , ms]) => ms)
    }
    expect(failed()).toEqual(Array(20).fill(1))
    expect(failed()).toEqual([])
    // One that changes nothing needs none.
    expect(limiter.tryAcquire('held')).toBe(false)
    memory.ints[memory.journalAt(1) + STATE] = 8
    limiter.reset('held')
    expect(limiter.tryAcquire('held')).toBe(true)
    for (const cell of [0, 1, 2]) memory.ints[memory.journalAt(cell) + STATE] = 7
    expect(failed()).toHaveLength(20)
  })

  test('each call looks at all of them, so that the first to have been taken for too long is taken over', () => {
    let nowMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    const { store, limiter } = withTaken([0, 1, 2])
    for (; nowMs < 1_000; nowMs += 500) expect(() => limiter.reset('held')).toThrow('all 3 places')
    limiter.reset('held')
    expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 2 })
  })

  test('a thread that needs none has looked once a second, and takes over what was taken for too long', () => {
    let nowMs = 0
    vi.spyOn(performance, 'now').mockImplementation(() => nowMs)
    const { store, memory } = opened(1_000)
    const clock = { nowUs: () => 1_700_000_000_000_000 + nowMs * 1000, setTimer: () => () => undefined }
    const limiter = createLimiter(LIMIT, { name: 'taken', store, clock })
    expect(limiter.tryAcquire('held')).toBe(true)
    const taken = [0, 1, 2].filter((cell) => memory.ints[memory.journalAt(cell) + STATE] === 0)
    expect(taken).toHaveLength(2)
    for (const cell of taken) memory.ints[memory.journalAt(cell) + STATE] = 7
    const seen: number[] = []
    for (; nowMs <= 4_000; nowMs += 250) {
      limiter.tryAcquire('held')
      limiter.peek('held')
      seen.push(audit(store.handle).takenCells)
    }
    // Seen after one second, taken over after the two looks that make reclaimAfterMs.
    expect(seen.indexOf(0) * 250).toBe(3_000)
  })
})

describe('a thread that ended', () => {
  test('must be another than this one, and is named by its id', () => {
    const { store } = opened()
    const own = process.getBuiltinModule('node:worker_threads').threadId
    for (const threadId of [-1, 1.5, own, undefined, '3'] as number[]) {
      expect(() => store.ended(threadId)).toThrow(expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(/^threadId /) }))
      expect(() => store.watch({ threadId, once: () => undefined })).toThrow('must be that of another thread')
    }
    store.ended(own + 1)
  })

  test('is watched by the id that it had when it was shown', () => {
    const { store, memory } = opened()
    const [exit, worker] = [[] as (() => void)[], { threadId: 1_000, once: (_: 'exit', listener: () => void) => exit.push(listener) }]
    expect(store.watch(worker)).toBe(worker)
    const dying = new Journals(memory, 1_001)
    dying.claim()
    worker.threadId = -1
    expect(audit(store.handle).takenCells).toBe(1)
    for (const listener of exit) listener()
    expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
  })

  test('cannot be known as such where threads have no ids, or their end is told too early', () => {
    vi.stubGlobal('Deno', {})
    const { store } = opened()
    expect(() => store.ended(5)).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }))
  })
})

test('a thread that wakes up after its cell was taken over does not give it back for the other', () => {
  const { store, memory } = opened()
  const slow = new Journals(memory)
  slow.claim()
  memory.ints[RECLAIM_AFTER_MS] = 0
  const other = new Journals(new SharedMemory(store.handle))
  const taken = [0, 1, 2].find((cell) => other.takeOver(cell) || other.takeOver(cell)) as number
  const state = memory.ints[memory.journalAt(taken) + STATE]
  slow.release()
  expect(memory.ints[memory.journalAt(taken) + STATE]).toBe(state)
  other.release()
  expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
})

test('a record of another key that bears a repeated tag is not taken for the one that was let go', () => {
  const { store, memory } = opened()
  const limiter = createLimiter(LIMIT, { name: 'tags', store })
  for (let k = 0; k < 4; k++) expect(limiter.tryAcquire(`key:${k}`)).toBe(true)
  const { ints } = memory
  const live = [1, 2, 3, 4, 5, 6, 7, 8].map((k) => ints[memory.headAt(k - 1)] as number).find((record) => record !== 0) as number
  // Long ago a thread died that was about to let the record go; since then the same cell, 4,096
  // steps later, wrote another key into it, in another chain.
  const emptyHead = [0, 1, 2, 3, 4, 5, 6, 7].find((head) => ints[memory.headAt(head)] === 0) as number
  const at = memory.journalAt(2)
  const [low, high] = [1234, 5678]
  ints.set([1, 0, AT_REST, 1 | (1 << 8) | (AT_REST << 12), memory.headAt(emptyHead), 0, 0, low, high], at)
  ints[at + FREED_AT] = live
  ints[at + SEEN_AT] = ints[memory.recordAt(live) + SCOPE_AND_TAG] as number
  ints[RECLAIM_AFTER_MS] = 0
  const cells = new Journals(new SharedMemory(store.handle))
  expect(cells.takeOver(2) || cells.takeOver(2)).toBe(true)
  cells.release()
  expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0, keys: 4 })
})

test('a note is complete and done with by an atomic write, behind everything that it speaks of', () => {
  const written: number[] = []
  vi.stubGlobal('WebAssembly', undefined)
  const { store, memory } = opened(60_000, 1)
  const limiter = createLimiter(LIMIT, { name: 'notes', store })
  limiter.tryAcquire('k')
  const { store: storeAtomic } = Atomics
  const spy = (array: Int32Array, index: number, value: number) => {
    const isCounts = [0, 1, 2].some((journal) => memory.journalAt(journal) + COUNTS === index)
    if (isCounts) written.push(value)
    return storeAtomic(array, index, value)
  }
  vi.spyOn(Atomics, 'store').mockImplementation(spy as typeof Atomics.store)
  // In the place of a record of its chain.
  limiter.reset('k')
  expect(written).toEqual([1 | (1 << 4) | (1 << 8) | (AT_REST << 12), 0])
})
