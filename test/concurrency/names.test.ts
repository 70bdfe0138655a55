/** Names of limiters in shared memory: they are given back, and never while they are needed. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { concurrency, createLimiter, fixedWindow, gcra, type Limiter } from '../../src/index.ts'
import { Catalog } from '../../src/stores/shared-memory/catalog.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { audit } from './audit.ts'
import { Crew, gate } from './crew.ts'

const START_MS = 1_700_000_000_000
const ONE = gcra({ rate: '1/min', burst: 1 })

const opened = () => ({ store: sharedStore({ maxKeys: 2_000 }), clock: fakeClock(START_MS) })

test('three thousand limiters that are closed again fit, one after the other', () => {
  const { store, clock } = opened()
  for (let k = 0; k < 3_000; k++) {
    const limiter = createLimiter(ONE, { name: `tenant-${k}`, store, clock })
    expect(limiter.tryAcquire('k')).toBe(true)
    limiter.close()
    clock.advanceMs(1_000)
  }
  expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
})

test('a name that is closed is kept while a key of it is in use, and found again', () => {
  const { store, clock } = opened()
  const first = createLimiter(ONE, { name: 'first', store, clock })
  expect(first.tryAcquire('ann')).toBe(true)
  first.close()
  const others = (from: number) => {
    for (let k = from; k < from + 1_000; k++) createLimiter(ONE, { name: `other-${k}`, store, clock }).close()
  }
  others(0)
  clock.advanceMs(59_999)
  others(1_000)
  const again = createLimiter(ONE, { name: 'first', store, clock })
  expect(again.tryAcquire('ann')).toBe(false)
  again.close()
  clock.advanceMs(1)
  others(2_000)
  // Nothing is left of it: it may mean other limits.
  expect(createLimiter(fixedWindow({ limit: 1, window: '1s' }), { name: 'first', store, clock }).tryAcquire('ann')).toBe(true)
})

test('a name that is open in any thread is never given away, whatever the others do', () => {
  const { store, clock } = opened()
  const elsewhere = createLimiter(ONE, { name: 'open', store: sharedStore(store.handle), clock })
  createLimiter(ONE, { name: 'open', store, clock }).close()
  for (let k = 0; k < 1_000; k++) createLimiter(ONE, { name: `other-${k}`, store, clock }).close()
  expect(elsewhere.tryAcquire('ann')).toBe(true)
  expect(createLimiter(ONE, { name: 'open', store, clock }).tryAcquire('ann')).toBe(false)
})

test('more than fit at the same time are refused, and fit when one is closed', () => {
  const { store, clock } = opened()
  const limiters: Limiter<typeof ONE>[] = []
  const make = () => limiters.push(createLimiter(ONE, { name: `tenant-${limiters.length}`, store, clock }))
  expect(() => {
    for (;;) make()
  }).toThrow(/^limiter 'tenant-\d+' is one too many for this shared store: .* Call close\(\) on limiters that are done/)
  expect(limiters.length).toBeGreaterThan(190)
  limiters[7]?.close()
  make()
  expect(make).toThrow('is one too many')
})

test('a limiter that was closed settles its decision, also when its number is another one by then', () => {
  const { store, clock } = opened()
  const first = createLimiter(gcra({ rate: '1/min', burst: 5 }), { name: 'first', store, clock })
  const decision = first.consume('ann', 2)
  first.close()
  decision.settle(3)
  const again = createLimiter(gcra({ rate: '1/min', burst: 5 }), { name: 'first', store, clock })
  expect(again.peek('ann').remaining).toBe(2)
  again.close()
  clock.advanceMs(3_600_000)
  for (let k = 0; k < 1_000; k++) createLimiter(ONE, { name: `other-${k}`, store, clock }).close()
  const other = createLimiter(ONE, { name: 'other', store, clock })
  decision.settle(3)
  expect(other.tryAcquire('ann')).toBe(true)
  expect(audit(store.handle).faults).toEqual([])
})

test('permits that are held keep the name of their closed limiter', () => {
  const { store, clock } = opened()
  const two = sharedStore({ maxKeys: 100, limits: concurrency({ max: 1, lease: '1min' }) })
  const first = createLimiter(concurrency({ max: 1, lease: '1min' }), { name: 'jobs', store: two, clock })
  const permit = first.consume('k')
  first.close()
  for (let k = 0; k < 1_000; k++) createLimiter(ONE, { name: `other-${k}`, store: two, clock }).close()
  const again = createLimiter(concurrency({ max: 1, lease: '1min' }), { name: 'jobs', store: two, clock })
  expect(again.consume('k').allowed).toBe(false)
  permit.release()
  expect(again.consume('k').allowed).toBe(true)
  expect(store.size).toBe(0)
})

describe('real threads', () => {
  const THREADS = 4
  let crew: Crew
  beforeAll(() => {
    crew = new Crew(THREADS)
  })
  afterAll(() => crew.dismiss())

  test('that open and close limiters of the same names at the same time have each to itself, or share it', async () => {
    const store = sharedStore({ maxKeys: 4_000, maxThreads: THREADS + 1 })
    // As many permits as threads that may hold one of a name at a time. They are given back at once.
    const made = ['gcra', { rate: '1/h', burst: 1 }]
    const order = { handle: store.handle, gate: gate(), limits: made, names: 400, calls: 3_000 }
    expect(await crew.work<number>(THREADS, 'named', order)).toEqual([0, 0, 0, 0])
    expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
  })
})

test('names that an ended thread had open are given back, and so is its page', () => {
  const { store, clock } = opened()
  const memory = new SharedMemory(store.handle)
  const ONES = [{ name: 'default', rule: createLimiter(ONE).scope().limits[0]?.rule as never }]
  for (let thread = 1_000; thread < 1_200; thread++) {
    const dying = new Catalog(memory, thread)
    for (let k = 0; k < 100; k++) dying.open({ name: `of-${thread}-${k}`, limits: ONES }, () => new Set())
    if (thread % 2 === 0) dying.open({ name: 'common', limits: ONES }, () => new Set())
    store.ended(thread - 1)
  }
  expect(createLimiter(ONE, { name: 'mine', store, clock }).tryAcquire('k')).toBe(true)
})
