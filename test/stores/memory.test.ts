/** The memory store alone: what it forgets, what it never forgets, and how much it holds. */
import { describe, expect, test, vi } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { gcraAlgorithm } from '../../src/algorithms/gcra/gcra.ts'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  memoryStore,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { Part, Step } from '../../src/stores/step.ts'
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

test('three million distinct keys neither unblock a blocked key nor grow the store', () => {
  const clock = fakeClock()
  const store = memoryStore({ maxKeys: 100_000 })
  const limiter = createLimiter(tokenBucket({ capacity: 5, refill: '1/h' }), { store, clock })
  const flood = createLimiter(gcra({ rate: '1000/s', burst: 5 }), { store, clock, name: 'flood' })
  expect(limiter.consume('victim', 5).allowed).toBe(true)
  const heapBefore = process.memoryUsage().heapUsed
  let largest = 0
  for (let k = 0; k < 3_000_000; k++) {
    // A key every 2 microseconds, each in use for a millisecond: never more than 500 at once.
    if (k % 500 === 0) clock.advanceMs(1)
    flood.tryAcquire(`attacker:${k}`)
    if (k % 100_000 === 0) {
      largest = Math.max(largest, store.size)
      expect(limiter.tryAcquire('victim')).toBe(false)
    }
  }
  console.log(`3,000,000 keys: at most ${largest} held at once`)
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

test.each([
  ['full, denying', { maxKeys: 1 }],
  ['full, allowing', { maxKeys: 1, onFull: 'allow' }],
  ['with room', {}],
] as const)('a key with a lone surrogate is refused each time, and leaves nothing behind: %s', (_, options) => {
  const store = memoryStore(options)
  const plans = { pro: gcra({ rate: '1/h', burst: 2 }) }
  const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }), { store, plans, clock: fakeClock() })
  limiter.tryAcquire('held')
  const wrong = 'user:\ud83d'
  const calls = [
    () => limiter.tryAcquire(wrong),
    () => limiter.tryAcquire(wrong, 0),
    () => limiter.tryAcquire(wrong, 5),
    () => limiter.tryAcquire(wrong, 1, { plan: 'pro' }),
    () => limiter.consume(wrong),
    () => limiter.charge(wrong),
  ]
  for (let k = 0; k < 2; k++) for (const call of calls) expect(call).toThrow(expect.objectContaining({ code: 'KEY' }))
  expect(store.size).toBe(1)
  expect(limiter.tryAcquire('held')).toBe(false)
})

describe('a flood of new keys on a full table', () => {
  const limit = gcra({ rate: '1/s', burst: 1 })

  function full(maxKeys: number) {
    const clock = fakeClock(1_000)
    const store = memoryStore({ maxKeys })
    const limiter = createLimiter(limit, { store, clock })
    for (let k = 0; k < maxKeys; k++) limiter.consume(`user:${k}`)
    return { clock, store, limiter }
  }

  test('is refused without a search for each of them', () => {
    const { clock, limiter } = full(2_000)
    const looks = vi.spyOn(gcraAlgorithm, 'resetUs')
    try {
      for (let k = 0; k < 500; k++) {
        expect(limiter.tryAcquire(`new:${k}`)).toBe(false)
        clock.advanceMs(0.01)
      }
      // Three searches of a thousand, in five milliseconds, and what each refusal tells of its own
      // key.
      expect(looks.mock.calls.length).toBeLessThanOrEqual(3_500)
    } finally {
      looks.mockRestore()
    }
  })

  test('is told the true time, by the clock of each call', () => {
    const { clock, limiter } = full(10)
    for (const afterUs of [0, 500, 1_999, 2_000, 500_000, 999_999]) {
      clock.setUs(1_000_000 + afterUs)
      expect(limiter.consume('new')).toMatchObject({ outcome: 'limited', retryAfterMs: (1_000_000 - afterUs) / 1_000 })
    }
    clock.setMs(2_000)
    expect(limiter.consume('new').allowed).toBe(true)
  })

  test('is let in as soon as a key is forgotten, and two milliseconds after one became idle', () => {
    const { clock, limiter } = full(10)
    expect(limiter.tryAcquire('new')).toBe(false)
    limiter.reset('user:3')
    expect(limiter.tryAcquire('new')).toBe(true)
    expect(limiter.tryAcquire('newer')).toBe(false)
    limiter.refund('user:4')
    clock.advanceMs(1.999)
    expect(limiter.tryAcquire('newer')).toBe(false)
    clock.advanceMs(0.001)
    expect(limiter.tryAcquire('newer')).toBe(true)
  })

  test('is searched for anew when the clock has stepped back', () => {
    const { clock, limiter } = full(10)
    expect(limiter.tryAcquire('new')).toBe(false)
    clock.setMs(999)
    const looks = vi.spyOn(gcraAlgorithm, 'resetUs')
    try {
      expect(limiter.consume('new')).toMatchObject({ outcome: 'limited', retryAfterMs: 1_001 })
      expect(looks.mock.calls.length).toBeGreaterThan(10)
    } finally {
      looks.mockRestore()
    }
  })
})

describe('long keys', () => {
  const limit = gcra({ rate: '1/h', burst: 1 })
  const heldOf = (maxKeys: number, keys: readonly string[]) => {
    const store = memoryStore({ maxKeys })
    const limiter = createLimiter(limit, { store, clock: fakeClock() })
    for (const key of keys) limiter.tryAcquire(key)
    return store.size
  }
  const keysOf = (count: number, length: number, filler: string) => Array.from({ length: count }, (_, k) => `${k}`.padStart(length, filler))

  test('take the room of several in a large table: 64 bytes for each of maxKeys, two bytes a character outside Latin-1', () => {
    expect(heldOf(5_000, keysOf(6_000, 64, 'é'))).toBe(5_000)
    expect(heldOf(5_000, keysOf(6_000, 128, 'é'))).toBe(2_500)
    expect(heldOf(5_000, keysOf(6_000, 32, '鍵'))).toBe(5_000)
    expect(heldOf(5_000, keysOf(6_000, 64, '鍵'))).toBe(2_500)
    expect(heldOf(5_000, keysOf(6_000, 1_024, '鍵'))).toBe(156)
  })

  test('find room in a small table', () => {
    expect(heldOf(30, keysOf(40, 1_024, '鍵'))).toBe(30)
  })

  test('find room again when others have left', () => {
    const clock = fakeClock()
    const store = memoryStore({ maxKeys: 1_024 })
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { store, clock })
    for (const key of keysOf(64, 1_024, 'x')) expect(limiter.tryAcquire(key)).toBe(true)
    expect(limiter.consume('short')).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000 })
    clock.advanceMs(1_000)
    for (const key of keysOf(64, 1_024, 'y')) expect(limiter.tryAcquire(key)).toBe(true)
    expect(store.size).toBe(64)
  })

  test('that need the room of very many short ones get it after a few tries', () => {
    const clock = fakeClock()
    const limiter = createLimiter(gcra({ rate: '1000/s', burst: 1_000 }), { store: memoryStore({ maxKeys: 10_000 }), clock })
    for (const key of keysOf(620, 1_024, 'x')) limiter.consume(key, 1_000)
    for (let k = 0; k < 4_000; k++) limiter.consume(String.fromCharCode(100 + (k % 80), 100 + k / 80))
    clock.advanceMs(1)
    let tries = 0
    let { allowed, retryAfterMs } = limiter.consume('鍵'.repeat(1_024))
    while (!allowed && tries++ < 5) {
      expect(retryAfterMs).toBeLessThan(999)
      clock.advanceMs(retryAfterMs)
      ;({ allowed, retryAfterMs } = limiter.consume('鍵'.repeat(1_024)))
    }
    expect(allowed).toBe(true)
  })
})

describe('a closed limiter', () => {
  const limit = gcra({ rate: '1/s', burst: 5 })
  const setUp = () => ({ clock: fakeClock(), store: memoryStore() })

  test('is found again under its name, with what was used', () => {
    const { clock, store } = setUp()
    const first = createLimiter(limit, { name: 'api', store, clock })
    first.consume('ann', 5)
    first.close()
    const second = createLimiter(limit, { name: 'api', store, clock })
    expect(second.consume('ann')).toMatchObject({ outcome: 'limited', remaining: 0 })
    // Also after others have come and gone.
    second.close()
    for (let k = 0; k < 100; k++) createLimiter(limit, { name: 'other', store, clock }).consume(`key:${k}`)
    expect(createLimiter(limit, { name: 'api', store, clock }).tryAcquire('ann')).toBe(false)
  })

  test('leaves once its keys are idle, when new keys arrive', () => {
    const { clock, store } = setUp()
    const closed = createLimiter({ user: limit, team: gcra({ rate: '1/min', burst: 5 }) }, { name: 'api', store, clock })
    for (let k = 0; k < 10; k++) closed.consume({ user: `u${k}`, team: 't' })
    closed.close()
    const other = createLimiter(limit, { name: 'other', store, clock })
    clock.advanceMs(299_999)
    for (let k = 0; k < 20; k++) other.consume(`a:${k}`)
    expect([store.sizeOf('api', 'user'), store.sizeOf('api', 'team')]).toEqual([0, 1])
    clock.advanceMs(1)
    for (let k = 0; k < 20; k++) other.consume(`b:${k}`)
    expect([store.sizeOf('api', 'team'), store.inspect('api', 'team', 't')]).toEqual([0, undefined])
    // Nothing is left of it: the name is free for another algorithm.
    const next = createLimiter(tokenBucket({ capacity: 1, refill: '1/s' }), { name: 'api', store, clock })
    expect(next.tryAcquire('ann')).toBe(true)
    expect(other.tryAcquire('b:0')).toBe(true)
  })

  test('keeps its tables for another of its name that is open', () => {
    const { clock, store } = setUp()
    const [one, other] = [createLimiter(limit, { name: 'api', store, clock }), createLimiter(limit, { name: 'api', store, clock })]
    one.consume('ann', 5)
    one.close()
    one.close()
    clock.advanceMs(60_000)
    for (let k = 0; k < 50; k++) createLimiter(limit, { name: 'flood', store, clock }).consume(`key:${k}`)
    other.consume('ann', 5)
    expect([other.tryAcquire('ann'), store.sizeOf('api', 'default')]).toEqual([false, 1])
  })

  test('that was never used leaves nothing at all', () => {
    const { clock, store } = setUp()
    createLimiter(limit, { name: 'api', store, clock, plans: { pro: gcra({ rate: '9/s', burst: 9 }) } }).close()
    const other = createLimiter(tokenBucket({ capacity: 1, refill: '1/s' }), { name: 'api', store, clock })
    expect(other.tryAcquire('ann')).toBe(true)
  })

  test('and updates and plans count as one: the tables stay while the limiter is open', () => {
    const { clock, store } = setUp()
    const limiter = createLimiter(limit, { name: 'api', store, clock, plans: { pro: gcra({ rate: '9/s', burst: 9 }) } })
    for (let k = 0; k < 5; k++) limiter.update(gcra({ rate: '1/s', burst: 5 + k }), { pro: gcra({ rate: '9/s', burst: 9 + k }) })
    expect(() => limiter.update(limit, { pro: gcra({ rate: '0/s', burst: 1 }) })).toThrow()
    limiter.consume('ann', 9)
    clock.advanceMs(3_600_000)
    for (let k = 0; k < 20; k++) createLimiter(limit, { name: 'other', store, clock }).consume(`key:${k}`)
    expect(() => createLimiter(tokenBucket({ capacity: 1, refill: '1/s' }), { name: 'api', store, clock })).toThrow(
      'is a gcra in this store',
    )
    limiter.close()
    for (let k = 20; k < 40; k++) createLimiter(limit, { name: 'other', store, clock }).consume(`key:${k}`)
    expect(() => createLimiter(tokenBucket({ capacity: 1, refill: '1/s' }), { name: 'api', store, clock })).not.toThrow()
  })
})

test('a limiter that is refused leaves nothing behind', () => {
  const store = memoryStore()
  const window = fixedWindow({ limit: 1, window: '1s' })
  createLimiter({ b: window }, { name: 'api', store })
  const refused = () => createLimiter({ a: gcra({ rate: '1/s', burst: 1 }), b: gcra({ rate: '1/s', burst: 1 }) }, { name: 'api', store })
  expect(refused).toThrow("limit 'b' is a fixedWindow in this store")
  expect(createLimiter({ a: window, b: window }, { name: 'api', store }).tryAcquire('k')).toBe(true)
})

describe('numbers that change', () => {
  test('and come back find the keys that were written under them', () => {
    const clock = fakeClock(5_000)
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1_000 }), { clock })
    const keys = Array.from({ length: 50 }, (_, k) => `user:${k}`)
    for (const [round, key] of keys.entries()) {
      limiter.update(gcra({ rate: '1/h', burst: 1_000 + (round % 7) }))
      limiter.consume(key, 10)
    }
    for (const burst of [1_000, 1_003, 1_006, 1_001]) {
      limiter.update(gcra({ rate: '1/h', burst }))
      for (const key of keys) expect(limiter.peek(key).remaining).toBe(burst - 10)
    }
  })

  test('leave keys that are held where they are, whether or not others were there in between', () => {
    const clock = fakeClock(5_000)
    const plans = { pro: gcra({ rate: '1/h', burst: 2_000 }) }
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1_000 }), { clock, plans })
    const charges = vi.spyOn(gcraAlgorithm, 'charge')
    try {
      limiter.tryAcquire('ann', 1, { plan: 'pro' })
      limiter.reset('ann')
      for (let k = 0; k < 5; k++) {
        limiter.tryAcquire('bob')
        limiter.tryAcquire('ann', 1, { plan: 'pro' })
      }
      const [, , , bob, ann, ...others] = charges.mock.calls.map(([, , s, i]) => ({ s, i }))
      expect(bob?.i).not.toBe(ann?.i)
      expect(others).toHaveLength(6)
      // All but the first of each are charged in place: the same numbers of the same page, whatever
      // the plan before.
      others.forEach(({ s, i }, k) => {
        expect(s).toBe(bob?.s)
        expect(i).toBe(k % 2 === 0 ? bob?.i : ann?.i)
      })
    } finally {
      charges.mockRestore()
    }
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

test('a step by numbers that were never opened leaves the states beside its own alone', () => {
  const few = slidingWindow({ limit: 10, window: '1s', slots: 5 })
  const many = slidingWindow({ limit: 10, window: '1s', slots: 40 })
  const clock = fakeClock(10_000)
  const store = memoryStore()
  const limiter = createLimiter(few, { name: 'api', store, clock })
  for (const key of ['a', 'b', 'c']) limiter.consume(key, 4)
  const fields = () => ['b', 'c'].map((key) => store.inspect('api', 'default', key))
  const before = fields()
  const states = store.open(limiter.scope(), clock.nowUs)
  const step = new Step('take', limiter.scope(), [new Part('default', many[RULE], 'a', 2)], -1, -1, undefined)
  for (let k = 0; k < 3; k++) {
    states.apply(step, true)
    clock.advanceMs(26)
  }
  expect(fields()).toEqual(before)
  expect(limiter.peek('a', 0).remaining).toBe(0)
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
