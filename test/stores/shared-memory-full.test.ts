/**
 * A full table in shared memory: new keys are refused without searching it again and again, and
 * told when to come again all the same.
 */
import { describe, expect, test, vi } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Journals } from '../../src/stores/shared-memory/journals.ts'
import { SCOPE_AND_TAG, type SharedHandle, SharedMemory, TAG_BITS } from '../../src/stores/shared-memory/layout.ts'
import { SharedTable } from '../../src/stores/shared-memory/shared-table.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { audit } from '../concurrency/audit.ts'

const START_MS = 1_700_000_000_000
/** A key is idle a second after it was used. */
const ONE = gcra({ rate: '1/s', burst: 1 })
const SECOND_US = 1_000_000

/** A store with all its places taken, the last of them a few milliseconds after the others. */
function full(maxKeys: number) {
  const clock = fakeClock(START_MS)
  const store = sharedStore({ maxKeys, limits: ONE })
  const limiter = createLimiter(ONE, { name: 'full', store, clock, maxAheadMs: 0 })
  for (let k = 0; k < maxKeys; k++) {
    if (k === maxKeys - 1) clock.advanceMs(3)
    expect(limiter.tryAcquire(`key:${k}`)).toBe(true)
  }
  return { clock, store, limiter }
}

describe('a table that was searched in vain', () => {
  test('is not searched again for five milliseconds, and then once', () => {
    const { clock, store } = full(1_000)
    const memory = new SharedMemory(store.handle)
    const table = new SharedTable(memory, new Journals(memory))
    const look = vi.spyOn(table.chain, 'look')
    const words = new Float64Array(memory.recordWords)
    const looksFor = (key: string, nowUs: number) => {
      look.mockClear()
      table.chain.find(key, { scope: 1, seedLow: 5, seedHigh: 6 }, words)
      return { inserted: table.insert(1, words, nowUs), looks: look.mock.calls.length }
    }
    const startUs = clock.nowUs()
    expect(looksFor('a', startUs)).toEqual({ inserted: undefined, looks: 2_100 })
    for (let k = 0; k < 100; k++) expect(looksFor(`b:${k}`, startUs + 49 * k)).toEqual({ inserted: undefined, looks: 0 })
    expect(looksFor('c', startUs + 5_000).looks).toBe(2_100)
    expect(looksFor('d', startUs + 5_001).looks).toBe(0)
    // A clock that stepped back says nothing about what was seen later.
    expect(looksFor('e', startUs).looks).toBe(2_100)
    expect(table.hasRoom(startUs + 1)).toBe(false)
    expect(look.mock.calls.length).toBe(2_100)
  })

  test('says as truly as before when to come again, and lets one in then', () => {
    const { clock, limiter } = full(50)
    expect(limiter.consume('new')).toMatchObject({ outcome: 'limited', retryAfterMs: 997 })
    for (const advanceMs of [0.001, 1, 2.5]) {
      clock.setMs(START_MS + 3 + advanceMs)
      expect(limiter.consume(`new:${advanceMs}`)).toMatchObject({ outcome: 'limited', retryAfterMs: (997_000 - 1000 * advanceMs) / 1000 })
      expect(limiter.peek(`newer:${advanceMs}`)).toMatchObject({ outcome: 'limited', retryAfterMs: (997_000 - 1000 * advanceMs) / 1000 })
    }
    // Searched a millisecond before the first key is idle: it is not waited for longer than that.
    clock.setUs(START_MS * 1000 + SECOND_US - 1_000)
    expect(limiter.consume('new')).toMatchObject({ outcome: 'limited', retryAfterMs: 1 })
    clock.setUs(START_MS * 1000 + SECOND_US - 1)
    expect(limiter.consume('new')).toMatchObject({ outcome: 'limited', retryAfterMs: 0.001 })
    clock.setUs(START_MS * 1000 + SECOND_US)
    expect(limiter.consume('new').outcome).toBe('allowed')
  })

  test('is searched again at once when this thread lets a key go, and five milliseconds later when another does', () => {
    const { clock, store, limiter } = full(50)
    expect(limiter.tryAcquire('new')).toBe(false)
    limiter.reset('key:1')
    expect(limiter.tryAcquire('new')).toBe(true)
    expect(limiter.tryAcquire('newer')).toBe(false)
    limiter.refund('key:2')
    expect(limiter.tryAcquire('newer')).toBe(true)
    expect(limiter.tryAcquire('newest')).toBe(false)
    createLimiter(ONE, { name: 'full', store: sharedStore(store.handle), clock }).reset('key:3')
    clock.advanceMs(4.999)
    const isInItsChain = limiter.tryAcquire('newest')
    clock.advanceMs(0.001)
    expect(isInItsChain || limiter.tryAcquire('newest')).toBe(true)
  })

  test('of which a chain has an idle key lets a key of that chain in at once', () => {
    const { clock, store, limiter } = full(1)
    expect(limiter.tryAcquire('new')).toBe(false)
    createLimiter(ONE, { name: 'full', store: sharedStore(store.handle), clock }).reset('key:0')
    // It has two heads: one of the keys falls on the one with the record.
    const areLetIn = Array.from({ length: 40 }, (_, k) => limiter.tryAcquire(`other:${k}`))
    expect(areLetIn.filter((allowed) => allowed)).toHaveLength(1)
  })
})

describe('a record in the hands of a thread that is held up in the middle of a step', () => {
  /** Another thread that took an empty record out of its chain, and got no further. */
  function heldUp(handle: SharedHandle) {
    const memory = new SharedMemory(handle)
    const journals = new Journals(memory, 99)
    const { chain } = new SharedTable(memory, journals)
    journals.claim()
    for (let head = 0; head < memory.headCount; head++) {
      chain.look(memory.headAt(head))
      const { length, records } = chain.seen
      for (let place = 0; place < length; place++) {
        const isEmpty = (memory.ints[memory.recordAt(records[place] as number) + SCOPE_AND_TAG] as number) >>> TAG_BITS === 0
        if (isEmpty && chain.unlink(place)) return journals
      }
    }
    throw new Error('there is no empty record')
  }

  test.each([1, 3, 50])('is not missing: all of %i keys fit, and not one more', (maxKeys) => {
    const clock = fakeClock(START_MS)
    const store = sharedStore({ maxKeys, maxThreads: 4, limits: ONE })
    const limiter = createLimiter(ONE, { name: 'full', store, clock, maxAheadMs: 0 })
    for (let k = 1; k < maxKeys; k++) expect(limiter.tryAcquire(`key:${k}`)).toBe(true)
    const journals = heldUp(store.handle)
    expect(limiter.peek('last')).toMatchObject({ allowed: true })
    expect(limiter.consume('last')).toMatchObject({ allowed: true })
    expect(limiter.consume('one more')).toMatchObject({ outcome: 'limited', retryAfterMs: 1000 })
    journals.release()
    clock.advanceMs(10)
    expect(limiter.consume('one more')).toMatchObject({ outcome: 'limited' })
    expect([store.size, audit(store.handle).faults]).toEqual([maxKeys, []])
    // The journal takes its reserve back.
    for (let k = 0; k < 20 * maxKeys; k++) {
      clock.advanceMs(1_000 / maxKeys)
      limiter.tryAcquire(`later:${k}`)
      expect(store.size).toBeLessThanOrEqual(maxKeys)
    }
    expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
  })
})
