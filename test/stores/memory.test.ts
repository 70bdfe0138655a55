/** What is particular to the memory store: what it forgets, what it never forgets, and how much it holds. */
import { describe, expect, test } from 'vitest'
import { createLimiter, gcra, type Limit, memoryStore, SluiceError, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const SECOND_MS = 1_000
const HOUR_MS = 3_600_000

describe('idle keys', () => {
  test('leave when new keys arrive, and those in use stay', () => {
    const clock = fakeClock()
    const store = memoryStore()
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 10 }), { store, clock })
    for (let k = 0; k < 10_000; k++) limiter.consume(`early:${k}`)
    clock.advanceMs(5 * SECOND_MS)
    limiter.consume('busy', 10)
    for (let k = 0; k < 10_000; k++) limiter.consume(`late:${k}`, 10)
    expect(store.size).toBe(10_001)
    expect(limiter.peek('busy', 1).allowed).toBe(false)
  })

  test('stay for a second, because they may come back', () => {
    const clock = fakeClock()
    const store = memoryStore()
    const limiter = createLimiter(gcra({ rate: '1000/s', burst: 1 }), { store, clock })
    limiter.consume('a')
    clock.advanceMs(500)
    for (let k = 0; k < 10; k++) limiter.consume(`b:${k}`)
    expect(store.inspect(limiter.name, 'default', 'a')).toBeDefined()
    clock.advanceMs(600)
    for (let k = 0; k < 10; k++) limiter.consume(`c:${k}`)
    expect(store.inspect(limiter.name, 'default', 'a')).toBeUndefined()
  })
})

test('ten million distinct keys neither unblock a blocked key nor grow the store', () => {
  const clock = fakeClock()
  const store = memoryStore({ maxKeys: 100_000 })
  const limiter = createLimiter(tokenBucket({ capacity: 5, refill: '1/h' }), { store, clock })
  const flood = createLimiter(gcra({ rate: '1000/s', burst: 5 }), { store, clock, name: 'flood' })
  expect(limiter.consume('victim', 5).allowed).toBe(true)
  const heapBefore = process.memoryUsage().heapUsed
  let largest = 0
  for (let k = 0; k < 10_000_000; k++) {
    // A key every 2 microseconds, each in use for a millisecond: never more than 500 at once.
    if (k % 500 === 0) clock.advanceMs(1)
    flood.tryAcquire(`attacker:${k}`)
    if (k % 100_000 === 0) {
      largest = Math.max(largest, store.size)
      expect(limiter.tryAcquire('victim')).toBe(false)
    }
  }
  console.log(`10,000,000 keys: at most ${largest} held at once`)
  expect(largest).toBeLessThanOrEqual(100_001)
  expect(limiter.peek('victim', 1)).toMatchObject({ outcome: 'limited', remaining: 0 })
  // A key takes about a hundred bytes: what is held now is all there is.
  expect(process.memoryUsage().heapUsed - heapBefore).toBeLessThan(400_000_000)
})

describe('a store that is full of keys in use', () => {
  const MANY = 1_000_000

  function filled(onFull: 'deny' | 'allow') {
    const clock = fakeClock()
    const store = memoryStore({ maxKeys: MANY, onFull })
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }), { store, clock })
    for (let k = 0; k < MANY; k++) limiter.tryAcquire(`user:${k}`)
    return { clock, store, limiter }
  }

  test('denies a new key until a held one is idle, and keeps the held ones limited', () => {
    const { clock, store, limiter } = filled('deny')
    const refused = limiter.consume('new')
    expect(refused).toMatchObject({ outcome: 'limited', retryAfterMs: HOUR_MS })
    expect(limiter.tryAcquire('new')).toBe(false)
    expect(limiter.peek('new')).toMatchObject({ outcome: 'limited', retryAfterMs: HOUR_MS })
    expect(limiter.peek('new', 0).allowed).toBe(true)
    expect(store.size).toBe(MANY)
    for (const k of [0, 1, 77, MANY - 1]) expect(limiter.tryAcquire(`user:${k}`)).toBe(false)
    clock.advanceMs(refused.retryAfterMs)
    expect(limiter.tryAcquire('new')).toBe(true)
    expect(limiter.tryAcquire('new')).toBe(false)
    expect(store.size).toBeLessThanOrEqual(MANY)
  })

  test('lets a new key through uncounted if told so, and keeps the held ones limited', () => {
    const { store, limiter } = filled('allow')
    for (let k = 0; k < 3; k++) expect(limiter.consume('new')).toMatchObject({ outcome: 'allowed', remaining: 0 })
    expect(store.size).toBe(MANY)
    for (const k of [0, 1, 77, MANY - 1]) expect(limiter.tryAcquire(`user:${k}`)).toBe(false)
  })
})

test('a new key that one of several limits has no room for is charged to none', () => {
  const clock = fakeClock()
  const store = memoryStore({ maxKeys: 1 })
  const limits = { user: gcra({ rate: '1/h', burst: 2 }), tenant: gcra({ rate: '1/h', burst: 9 }) }
  const limiter = createLimiter(limits, { store, clock })
  expect(limiter.consume({ user: 'u1', tenant: 't1' }).allowed).toBe(true)
  expect(limiter.consume({ user: 'u2', tenant: 't1' }).allowed).toBe(false)
  expect(limiter.peek({ user: 'u1', tenant: 't1' }).parts.tenant.remaining).toBe(8)
})

test('keys are counted for each limit of each limiter', () => {
  const [clock, store] = [fakeClock(), memoryStore()]
  const two = { user: gcra({ rate: '1/s', burst: 9 }), team: gcra({ rate: '1/s', burst: 9 }) }
  createLimiter(two, { name: 'api', store, clock }).consume({ user: 'a', team: 't' })
  createLimiter(two, { name: 'api', store, clock }).consume({ user: 'b', team: 't' })
  createLimiter(two.user, { name: 'other', store, clock }).consume('a')
  const sizes = [store.sizeOf('api', 'user'), store.sizeOf('api', 'team'), store.sizeOf('other', 'default'), store.sizeOf('nobody', 'user')]
  expect(sizes).toEqual([2, 1, 1, 0])
})

describe('states of every size survive new numbers', () => {
  const cases: [string, Limit, Limit][] = [
    ['more slots', slidingWindow({ limit: 10, window: '1s', slots: 2 }), slidingWindow({ limit: 10, window: '1s', slots: 50 })],
    ['fewer slots', slidingWindow({ limit: 10, window: '1s', slots: 50 }), slidingWindow({ limit: 10, window: '1s', slots: 2 })],
    ['a longer log', slidingLog({ limit: 10, window: '1s' }), slidingLog({ limit: 500, window: '1s' })],
    ['a shorter log', slidingLog({ limit: 500, window: '1s' }), slidingLog({ limit: 10, window: '1s' })],
  ]

  test.each(cases)('%s', (_, before, after) => {
    const clock = fakeClock(5_000)
    const limiter = createLimiter(before, { clock, maxAheadMs: 0 })
    const keys = Array.from({ length: 3_000 }, (_, k) => `user:${k}`)
    for (const key of keys) limiter.consume(key, 4)
    limiter.update(after)
    for (const key of keys) expect(limiter.consume(key, 3).remaining).toBe(limiter.peek(key).limit - 7)
    for (const key of keys) expect(limiter.tryAcquire(key, 3)).toBe(true)
  })
})

test('a log grows with its entries, and its answers stay exact', () => {
  const clock = fakeClock()
  const limiter = createLimiter(slidingLog({ limit: 5_000, window: '1s' }), { clock })
  for (let k = 0; k < 5_000; k++) {
    expect(limiter.tryAcquire('key')).toBe(true)
    clock.advanceMs(0.1)
  }
  expect(limiter.consume('key')).toMatchObject({ outcome: 'limited', retryAfterMs: 500 })
  clock.advanceMs(500)
  expect(limiter.consume('key').allowed).toBe(true)
})

test('one name cannot be two algorithms in one store', () => {
  const store = memoryStore()
  createLimiter(gcra({ rate: '1/s', burst: 1 }), { store, name: 'api' }).consume('u1')
  const other = () => createLimiter(tokenBucket({ refill: '1/s', capacity: 1 }), { store, name: 'api' }).consume('u1')
  expect(other).toThrow(SluiceError)
  expect(other).toThrow("limit 'default' is a gcra in this store")
})

test.each([
  [{ maxKeys: 0 }, 'maxKeys 0 must be a whole number from 1'],
  [{ maxKeys: 1.5 }, 'maxKeys 1.5 must be'],
  [{ onFull: 'panic' }, `onFull "panic" must be 'deny' or 'allow'`],
  [{ size: 5 }, '"size" is not an option'],
])('bad options are refused: %j', (options, message) => {
  expect(() => memoryStore(options as never)).toThrow(message)
})
