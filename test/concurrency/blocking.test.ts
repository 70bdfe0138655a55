/** `acquireSync`: a thread that stands still until its turn has come. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  acquireSync,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  memoryStore,
  type SyncStore,
  slidingLog,
  tokenBucket,
  WaitError,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Crew, gate } from './crew.ts'

afterEach(() => vi.unstubAllGlobals())

/**
 * A clock that moves only while a thread is blocked: `Atomics.wait` moves it, and wakes a
 * microsecond early every other time.
 */
function blockingClock() {
  const clock = { us: 1_700_000_000_000_000, blockedUs: 0, waits: 0, nowUs: () => clock.us, setTimer: () => () => undefined }
  const wait = (_: Int32Array, __: number, expected: number, ms = Number.POSITIVE_INFINITY) => {
    if (expected !== 0) return 'not-equal'
    clock.waits += 1
    const us = Math.max(1, Math.round(ms * 1000) - (clock.waits % 2))
    clock.us += us
    clock.blockedUs += us
    return 'timed-out'
  }
  vi.stubGlobal('Atomics', { wait, load: Atomics.load, store: Atomics.store, compareExchange: Atomics.compareExchange, add: Atomics.add })
  return clock
}

const errorOf = (fn: () => unknown): WaitError => {
  try {
    fn()
  } catch (error) {
    return error as WaitError
  }
  throw new Error('it did not throw')
}

const STORES: readonly [string, () => SyncStore][] = [
  ['memory', () => memoryStore()],
  ['shared memory', () => sharedStore({ maxKeys: 5, recordWords: 40 })],
]

describe.each(STORES)('on %s', (_, open) => {
  test.each<[string, Limit, number[]]>([
    ['gcra', gcra({ rate: '10/s', burst: 1 }), [0, 100, 200]],
    ['tokenBucket', tokenBucket({ refill: '10/s', capacity: 1 }), [0, 100, 200]],
    ['leakyBucket', leakyBucket({ leak: '10/s', capacity: 3 }), [0, 100, 200]],
    ['fixedWindow', fixedWindow({ limit: 1, window: '100ms', anchor: 'first' }), [0, 100, 200]],
    ['slidingLog', slidingLog({ limit: 1, window: '100ms' }), [0, 100, 200]],
  ])('it waits as long as %s says, and not a microsecond less', (__, limit, turns) => {
    const clock = blockingClock()
    const limiter = createLimiter(limit, { name: 'blocking', store: open(), clock })
    const startUs = clock.us
    const got = turns.map(() => {
      const { allowed, waitedMs } = acquireSync(limiter, 'k')
      expect([allowed, waitedMs]).toEqual([true, expect.any(Number)])
      return (clock.us - startUs) / 1000
    })
    expect(got).toEqual(turns)
  })

  test.each<[string, Limit | Record<string, Limit>]>([
    ['gcra', gcra({ rate: '10/s', burst: 2 })],
    ['tokenBucket', tokenBucket({ refill: '10/s', capacity: 2 })],
    ['leakyBucket', leakyBucket({ leak: '10/s', capacity: 5 })],
    ['fixedWindow', fixedWindow({ limit: 2, window: '300ms' })],
    ['slidingLog', slidingLog({ limit: 2, window: '300ms' })],
    ['two that can be booked', { a: gcra({ rate: '10/s', burst: 2 }), b: tokenBucket({ refill: '5/s', capacity: 3 }) }],
  ])('of %s it returns what acquire resolves with', async (__, limits) => {
    const startMs = 1_700_000_000_000
    const clock = fakeClock(startMs)
    const promising = createLimiter(limits as Limit, { name: 'promising', store: open(), clock })
    const promised: unknown[] = []
    const taken = (async () => {
      for (let k = 0; k < 5; k++) promised.push(await promising.acquire('k'))
    })()
    // Time goes on only where one waits for it.
    for (let turn = 0; turn < 10_000 && promised.length < 5; turn++) {
      await Promise.resolve()
      if (turn % 50 === 49 && promising.waiting() > 0) clock.advanceMs(100)
    }
    await taken
    const blocking = Object.assign(blockingClock(), { us: startMs * 1000 })
    const limiter = createLimiter(limits as Limit, { name: 'blocking', store: open(), clock: blocking })
    const returned = Array.from({ length: 5 }, () => acquireSync(limiter, 'k'))
    expect(returned).toEqual(promised)
    expect(returned.some(({ waitedMs }) => waitedMs > 0)).toBe(true)
    for (const { delayMs } of returned) expect(delayMs).toBe(0)
  })

  test('a deadline that cannot be met is answered at once and takes nothing', () => {
    const clock = blockingClock()
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'blocking', store: open(), clock })
    acquireSync(limiter, 'k')
    const error = errorOf(() => acquireSync(limiter, 'k', { timeoutMs: 999.999 }))
    expect([error instanceof WaitError, error.code, error.decision?.retryAfterMs, clock.blockedUs]).toEqual([true, 'TIMEOUT', 1000, 0])
    expect(acquireSync(limiter, 'k', { timeoutMs: 1000 }).waitedMs).toBe(1000)
    expect(errorOf(() => acquireSync(limiter, 'k', { timeoutMs: 0 })).code).toBe('TIMEOUT')
  })

  test('a thread that must wait longer than may be booked ahead waits unbooked first', () => {
    const clock = blockingClock()
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'blocking', store: open(), clock, maxAheadMs: 300 })
    acquireSync(limiter, 'k')
    expect(acquireSync(limiter, 'k', { timeoutMs: 5_000 }).waitedMs).toBe(1000)
    expect(acquireSync(limiter, 'k').waitedMs).toBe(1000)
  })

  test('a cost that can never fit is impossible', () => {
    blockingClock()
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'blocking', store: open() })
    expect(errorOf(() => acquireSync(limiter, 'k', { cost: 2 })).code).toBe('IMPOSSIBLE')
    expect(errorOf(() => acquireSync(limiter, '')).code).toBe('KEY')
    expect(errorOf(() => acquireSync(limiter, 'k', { wait: 5 } as object)).code).toBe('CONFIG')
  })
})

test('where threads may not block it says so before it takes anything', () => {
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }))
  vi.stubGlobal('Atomics', {
    wait: () => {
      throw new TypeError('Atomics.wait cannot be called in this context')
    },
  })
  const error = errorOf(() => acquireSync(limiter, 'k'))
  expect([error.code, error.message]).toEqual(['UNSUPPORTED', expect.stringMatching(/^this thread may not block/)])
  expect(limiter.tryAcquire('k')).toBe(true)
})

test('a clock that does not move while the thread is blocked is refused after one wait, and what was booked is given back', () => {
  const clock = fakeClock(1_700_000_000_000)
  for (const limit of [gcra({ rate: '100/s', burst: 1 }), fixedWindow({ limit: 1, window: '10ms' })] as Limit[]) {
    const limiter = createLimiter(limit, { clock })
    acquireSync(limiter, 'k')
    const error = errorOf(() => acquireSync(limiter, 'k'))
    expect([error.code, error.message]).toEqual(['UNSUPPORTED', expect.stringMatching(/^the clock of the limiter does not move/)])
    expect(limiter.peek('k').retryAfterMs).toBe(10)
  }
})

test('a store that answers with promises is refused before anything is taken', () => {
  const sent: unknown[] = []
  const store = redisStore({ send: async (args) => sent.push(args) })
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'remote', store })
  const error = errorOf(() => acquireSync(limiter as never, 'k'))
  expect(error.code).toBe('UNSUPPORTED')
})

test('threads that block queue in the order of the table: nobody acts before its time, and no two at the same', async () => {
  const crew = new Crew(4)
  const limits = ['gcra', { rate: '1000/s', burst: 1 }]
  const { handle } = sharedStore({ maxKeys: 5 })
  const turns = (await crew.work<{ dueUs: number; gotUs: number }[]>(4, 'queue', { handle, gate: gate(), limits, turns: 50 })).flat()
  await crew.dismiss()
  for (const { dueUs, gotUs } of turns) expect(gotUs).toBeGreaterThanOrEqual(dueUs)
  const due = turns.map(({ dueUs }) => dueUs).sort((a, b) => a - b)
  for (let k = 1; k < due.length; k++) expect((due[k] as number) - (due[k - 1] as number)).toBeGreaterThanOrEqual(1000)
})
