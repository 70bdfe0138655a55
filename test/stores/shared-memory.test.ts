/** The shared memory store alone: its bounds, what it refuses, one time for all threads. */
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { Rule } from '../../src/algorithms/algorithm.ts'
import type * as sluice from '../../src/index.ts'
import { createLimiter, fixedWindow, gcra, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { type SharedHandle, type SharedStoreOptions, sharedStore } from '../../src/stores/shared-memory/index.ts'
import { CATALOG_ENDS, CATALOG_HEAD, SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { Part, Step } from '../../src/stores/step.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { audit } from '../concurrency/audit.ts'

afterEach(() => vi.unstubAllGlobals())

const START_MS = 1_700_000_000_000
const ONE = gcra({ rate: '1/s', burst: 1 })

function limiterOf(options: SharedStoreOptions, clock = fakeClock(START_MS)) {
  const store = sharedStore({ limits: ONE, ...options })
  return { store, clock, limiter: createLimiter(ONE, { name: 'bounds', store, clock }) }
}

const errorOf = (fn: () => unknown): sluice.SluiceError => {
  try {
    fn()
  } catch (error) {
    return error as sluice.SluiceError
  }
  throw new Error('it did not throw')
}

test('a key that is too long for the store is refused by every verb', () => {
  const { store, clock, limiter } = limiterOf({ maxKeys: 2 })
  limiter.tryAcquire('k')
  const rule = limiter.scope().limits[0]?.rule as Rule
  const step = new Step('take', limiter.scope(), [new Part('default', rule, 'x'.repeat(1025), 1)], -1, -1, undefined)
  const states = store.open(limiter.scope(), clock.nowUs)
  expect(errorOf(() => states.apply(step, true))).toMatchObject({
    code: 'KEY',
    message: expect.stringContaining('at most 1024 characters'),
  })
  expect([store.size, limiter.peek('k').remaining]).toEqual([1, 0])
})

describe('the bound', () => {
  test.each([1, 2, 7, 1_000])('is tight: of %i keys all are held, and one more is limited until one is idle', (maxKeys) => {
    const { store, clock, limiter } = limiterOf({ maxKeys })
    for (let k = 0; k < maxKeys; k++) expect(limiter.tryAcquire(`key:${k}`)).toBe(true)
    expect(store.size).toBe(maxKeys)
    expect(limiter.peek('one more')).toMatchObject({ outcome: 'limited', retryAfterMs: 1000 })
    expect(limiter.consume('one more')).toMatchObject({ outcome: 'limited', retryAfterMs: 1000 })
    expect(limiter.tryAcquire('one more')).toBe(false)
    clock.advanceMs(1000)
    expect(limiter.tryAcquire('one more')).toBe(true)
    expect(store.size).toBe(maxKeys)
    expect(audit(store.handle).faults).toEqual([])
  })

  test('always says when to come again, also if no record is in any chain for the moment', () => {
    const { store, limiter } = limiterOf({ maxKeys: 1 })
    const memory = new SharedMemory(store.handle)
    // As while other threads have them in hand.
    for (let head = 0; head < memory.headCount; head++) memory.ints[memory.headAt(head)] = 0
    expect(limiter.consume('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 1000 })
    expect(limiter.peek('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 1000 })
  })

  test('lets a new key through uncounted if it is told to', () => {
    const { store, limiter } = limiterOf({ maxKeys: 2, onFull: 'allow' })
    for (const key of ['a', 'b', 'c', 'c']) expect(limiter.tryAcquire(key)).toBe(true)
    expect([limiter.tryAcquire('a'), store.size]).toEqual([false, 2])
  })

  test('never forgets a key that is in use, however many new ones come', () => {
    const { limiter, clock } = limiterOf({ maxKeys: 50 })
    limiter.tryAcquire('held')
    for (let k = 0; k < 5_000; k++) {
      limiter.tryAcquire(`new:${k}`)
      if (k % 100 === 0) clock.advanceMs(7)
    }
    expect(limiter.tryAcquire('held')).toBe(false)
  })

  test('makes room of idle keys for ever, and of what was reset', () => {
    const { store, limiter, clock } = limiterOf({ maxKeys: 10 })
    for (let k = 0; k < 10_000; k++) {
      expect(limiter.tryAcquire(`key:${k}`)).toBe(true)
      if (k % 3 === 0) limiter.reset(`key:${k}`)
      clock.advanceMs(150)
    }
    expect(store.size).toBeLessThanOrEqual(10)
    expect(audit(store.handle)).toMatchObject({ faults: [], takenCells: 0 })
  })

  test('is one for all limiters of a store', () => {
    const { store, clock, limiter } = limiterOf({ maxKeys: 2 })
    const other = createLimiter(ONE, { name: 'other', store, clock })
    expect([limiter.tryAcquire('a'), other.tryAcquire('a'), limiter.tryAcquire('b')]).toEqual([true, true, false])
    clock.advanceMs(1000)
    // A key of one limiter gives way to one of the other.
    expect([limiter.tryAcquire('b'), limiter.tryAcquire('c'), other.tryAcquire('a')]).toEqual([true, true, false])
  })

  test.each([
    ['gcra', ONE],
    ['tokenBucket', tokenBucket({ refill: '1/s', capacity: 5 })],
  ])('takes at most 96 bytes a key for %s, of a hundred thousand', (_, limits) => {
    const store = sharedStore({ maxKeys: 100_000, limits })
    expect(store.bytes / 100_000).toBeLessThanOrEqual(96)
    expect(store.handle.buffer.byteLength).toBe(store.bytes)
  })
})

describe('is refused', () => {
  test.each<[Partial<Record<keyof SharedStoreOptions, unknown>>, string]>([
    [{ maxKeys: 0 }, 'sharedStore maxKeys 0 must be a whole number from 1 to 16000000'],
    [{ maxKeys: 1, maxThreads: 255 }, 'sharedStore maxThreads 255 must be a whole number from 1 to 254'],
    [{ maxKeys: 1, reclaimAfterMs: 999 }, 'sharedStore reclaimAfterMs 999 must be a whole number from 1000 to 3600000'],
    [{ maxKeys: 1, onFull: 'throw' }, `sharedStore onFull "throw" must be 'deny' or 'allow'`],
    [{ maxKeys: 1, recordWords: 1.5 }, 'sharedStore recordWords 1.5 must be a whole number from 1 to 500020'],
    [{ maxKeys: 1, limits: {} }, 'sharedStore limits {} must be a limit such as gcra({ ... }), or an object of them by name'],
    [{ maxKeys: 1, limits: 5 }, 'sharedStore limits 5 must be a limit such as gcra({ ... }), or an object of them by name'],
  ])('%j', (options, message) => {
    expect(errorOf(() => sharedStore(options as SharedStoreOptions))).toMatchObject({ code: 'CONFIG', message })
  })

  test('a limiter that needs more room, when it is made, with what to write instead', () => {
    const store = sharedStore({ maxKeys: 10 })
    const error = errorOf(() => createLimiter(slidingWindow({ limit: 5, window: '1s' }), { name: 'large', store }))
    expect(error.code).toBe('CONFIG')
    expect(error.message).toBe(
      "limiter 'large' needs recordWords 17, the shared store was made with 14: make it with sharedStore({ maxKeys, limits }), or with recordWords 17",
    )
    const two = { a: gcra({ rate: '1/s', burst: 1 }), b: slidingLog({ limit: 10, window: '1s' }) }
    expect(errorOf(() => createLimiter(two, { name: 'large', store })).message).toMatch(/needs recordWords 68/)
    const plans = { pro: slidingWindow({ limit: 5, window: '1s', slots: 20 }) }
    const small = sharedStore({ maxKeys: 10, recordWords: 17 })
    expect(errorOf(() => createLimiter(slidingWindow({ limit: 5, window: '1s' }), { name: 'x', store: small, plans })).message).toMatch(
      / 27,/,
    )
  })

  describe('numbers that would not fit beside those of before', () => {
    const slots = (count: number) => slidingWindow({ limit: 5, window: '1s', slots: count })
    /**
     * The one limit becomes larger, the other smaller: either set needs 38 doubles, both at their
     * largest 54.
     */
    const before = { a: slots(20), b: slots(4) }
    const after = { a: slots(4), b: slots(20) }
    const message =
      "limiter 'api' needs recordWords 54, 38 for these numbers and the rest for limits of it that were larger before, the shared store was made with 38: make it with sharedStore({ maxKeys, limits }), or with recordWords 54"

    test('are refused by the update, before anything is touched', () => {
      const store = sharedStore({ maxKeys: 10, limits: before })
      const limiter = createLimiter(before, { name: 'api', store, clock: fakeClock(START_MS) })
      expect(limiter.tryAcquire('k', 2)).toBe(true)
      expect(errorOf(() => limiter.update(after))).toMatchObject({ code: 'CONFIG', message })
      // By the numbers of before, one limit at a time.
      expect([limiter.tryAcquire('k', { a: 0, b: 3 }), limiter.peek('k').parts]).toMatchObject([
        true,
        { a: { remaining: 3 }, b: { remaining: 0 } },
      ])
      expect(store.inspect('api', 'a', 'k')).toMatchObject({ atUs: START_MS * 1000 })
      // Others whose limits are no larger are welcome.
      limiter.update({ a: slots(2), b: slots(4) })
    })

    test('are refused in a thread that comes with them later, and leave room for others', () => {
      const store = sharedStore({ maxKeys: 10, limits: before })
      createLimiter(before, { name: 'api', store })
      const elsewhere = sharedStore(store.handle)
      expect(errorOf(() => createLimiter(after, { name: 'api', store: elsewhere }))).toMatchObject({ code: 'CONFIG', message })
      expect(createLimiter(after, { name: 'other', store: elsewhere }).tryAcquire('k')).toBe(true)
      expect(createLimiter(before, { name: 'api', store: elsewhere }).tryAcquire('k')).toBe(true)
    })

    test('come in once if threads bring them at the same moment, and of two that do not fit together one is refused', () => {
      const store = sharedStore({ maxKeys: 10, recordWords: 46 })
      const narrow = { a: slots(4), b: slots(4) }
      const limiters = [store, sharedStore(store.handle)].map((each) => createLimiter(narrow, { name: 'api', store: each }))
      const [one, other] = limiters as [sluice.SyncLimiter<typeof narrow>, sluice.SyncLimiter<typeof narrow>]
      /** Updates the one, and the other right before the first comes in. */
      const atOnce = (first: typeof narrow, second: typeof narrow) => {
        const { compareExchange } = Atomics
        let isFirst = true
        const spy = vi.spyOn(Atomics, 'compareExchange').mockImplementation(((array: Int32Array, at: number, from: number, to: number) => {
          if (isFirst && at === CATALOG_HEAD) {
            isFirst = false
            other.update(second)
          }
          return compareExchange(array, at, from, to)
        }) as typeof Atomics.compareExchange)
        try {
          one.update(first)
        } finally {
          spy.mockRestore()
        }
        expect(isFirst).toBe(false)
      }
      atOnce({ a: slots(8), b: slots(4) }, { a: slots(8), b: slots(4) })
      expect(errorOf(() => atOnce({ a: slots(20), b: slots(4) }, { a: slots(4), b: slots(20) })).message).toMatch(
        /needs recordWords 54, 38 for/,
      )
      one.update({ a: slots(8), b: slots(20) })
    })

    test('are welcome where there is room for every limit at its largest, whichever is charged', () => {
      const store = sharedStore({ maxKeys: 10, recordWords: 54 })
      const limiter = createLimiter(before, { name: 'api', store, clock: fakeClock(START_MS) })
      expect(limiter.tryAcquire('k', 2)).toBe(true)
      limiter.update(after)
      expect([limiter.tryAcquire('k', { a: 0, b: 1 }), limiter.tryAcquire('k', { a: 3, b: 0 })]).toEqual([true, true])
      limiter.update(before)
      expect([limiter.tryAcquire('k', { a: 0, b: 2 }), limiter.tryAcquire('k')]).toEqual([true, false])
      expect(Object.values(limiter.peek('k', 0).parts).map(({ remaining }) => remaining)).toEqual([0, 0])
    })
  })

  test('no sliding log, however large', () => {
    const limit = slidingLog({ limit: 100_000, window: '1h' })
    const store = sharedStore({ maxKeys: 1, maxThreads: 1, limits: limit })
    expect(createLimiter(limit, { name: 'large', store }).consume('k').remaining).toBe(99_999)
  })

  test('no limit in a record of as many doubles as the reference says', () => {
    const page = readFileSync(new URL('../../docs/reference/limiter.md', import.meta.url), 'utf8')
    const wordsOf = (type: string, pattern: RegExp) =>
      Number(new RegExp(`^\\| [^|]*\`${type}\`[^|]*\\| ${pattern.source}`, 'm').exec(page)?.[1])
    const fits = (limits: sluice.Limit, recordWords: number) =>
      expect(createLimiter(limits, { name: 'said', store: sharedStore({ maxKeys: 1, maxThreads: 1, recordWords }) }).tryAcquire('k')).toBe(
        true,
      )
    fits(ONE, wordsOf('gcra', /(\d+)/))
    fits(tokenBucket({ capacity: 1, refill: '1/s' }), wordsOf('tokenBucket', /(\d+)/))
    fits(fixedWindow({ limit: 1, window: '1s' }), wordsOf('fixedWindow', /(\d+)/))
    fits(slidingWindow({ limit: 1, window: '3s', slots: 30 }), 30 + wordsOf('slidingWindow', /`slots` \+ (\d+)/))
    const beside = wordsOf('slidingLog', /5 x `limit` \+ (\d+)/)
    for (const limit of [1, 2, 3, 4, 5, 100]) fits(slidingLog({ limit, window: '1s' }), 5 * limit + beside)
  })

  test('a limiter whose limits are not those it has in another thread', () => {
    const { handle } = limiterOf({ maxKeys: 10, recordWords: 20 }).store
    const elsewhere = sharedStore(handle)
    const error = errorOf(() => createLimiter(fixedWindow({ limit: 5, window: '1s' }), { name: 'bounds', store: elsewhere }))
    expect(error).toMatchObject({
      code: 'CONFIG',
      message:
        "limiter 'bounds' needs recordWords 8, the shared store was made with 6: make it with sharedStore({ maxKeys, limits }), or with recordWords 8",
    })
    const roomy = sharedStore({ maxKeys: 10 })
    createLimiter({ a: ONE, b: ONE }, { name: 'api', store: roomy })
    expect(errorOf(() => createLimiter({ b: ONE, a: ONE }, { name: 'api', store: sharedStore(roomy.handle) }))).toMatchObject({
      code: 'CONFIG',
      message:
        "limiter 'api' with { b: gcra, a: gcra } must have the limits, in the order, that it has in the other threads of this shared store: { a: gcra, b: gcra }",
    })
  })

  test('one limiter too many', () => {
    const store = sharedStore({ maxKeys: 1 })
    const make = () => {
      for (let k = 0; k < 1_000; k++) createLimiter(ONE, { name: `limiter-number-${k}`, store })
    }
    expect(errorOf(make)).toMatchObject({ code: 'CONFIG', message: expect.stringMatching(/is one too many for this shared store/) })
  })

  test('a limiter for which there is no room, without taking any from those that fit', () => {
    const store = sharedStore({ maxKeys: 1 })
    const ints = new Int32Array(store.handle.buffer)
    let k = 0
    const make = () => {
      for (; ; k++) createLimiter(ONE, { name: `${'limiter-'.repeat(12)}${k}`, store })
    }
    errorOf(make)
    const end = ints[CATALOG_ENDS]
    for (let again = 0; again < 10; again++) errorOf(make)
    expect(ints[CATALOG_ENDS]).toBe(end)
    expect(createLimiter(ONE, { name: 'a', store }).tryAcquire('k')).toBe(true)
  })

  test('no room for a limiter that another thread enters at the same moment: it is entered once', () => {
    const store = sharedStore({ maxKeys: 1 })
    const ints = new Int32Array(store.handle.buffer)
    const { compareExchange } = Atomics
    let isFirst = true
    let afterOther = 0
    const spy = vi.spyOn(Atomics, 'compareExchange').mockImplementation(((array: Int32Array, at: number, from: number, to: number) => {
      if (isFirst && at === CATALOG_ENDS) {
        isFirst = false
        createLimiter(ONE, { name: 'both', store: sharedStore(store.handle) })
        afterOther = ints[CATALOG_ENDS] as number
      }
      return compareExchange(array, at, from, to)
    }) as typeof Atomics.compareExchange)
    expect(createLimiter(ONE, { name: 'both', store }).tryAcquire('k')).toBe(true)
    spy.mockRestore()
    expect(ints[CATALOG_ENDS]).toBe(afterOther)
  })

  test('a handle that was put together from two', () => {
    const [one, two] = [sharedStore({ maxKeys: 1 }).handle, sharedStore({ maxKeys: 1 }).handle]
    const error = errorOf(() => sharedStore({ buffer: one.buffer, memory: two.memory as object }))
    expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringMatching(/must be of one store/) })
    expect(errorOf(() => sharedStore({ buffer: one.buffer, memory: { buffer: new SharedArrayBuffer(2) } })).code).toBe('CONFIG')
    expect(sharedStore({ buffer: one.buffer }).size).toBe(0)
  })

  test('a handle that was made by another version', () => {
    const { handle } = sharedStore({ maxKeys: 1 })
    new Int32Array(handle.buffer)[1] = 1
    const error = errorOf(() => sharedStore(handle))
    expect(error.code).toBe('CONFIG')
    expect(error.message).toMatch(/^the shared handle was made by another version of Sluice: its layout is 1, this one reads 9;/)
  })

  test('a buffer that is something else', () => {
    expect(errorOf(() => sharedStore({ buffer: new SharedArrayBuffer(4096) })).message).toBe(
      'this SharedArrayBuffer was not made by sharedStore()',
    )
    for (const bytes of [0, 3, 4097]) expect(errorOf(() => sharedStore({ buffer: new SharedArrayBuffer(bytes) })).code).toBe('CONFIG')
  })

  test('a handle that lost its memory on the way to another process', () => {
    const { handle } = sharedStore({ maxKeys: 1 })
    const sent = JSON.parse(JSON.stringify(handle)) as SharedHandle
    const error = errorOf(() => sharedStore(sent))
    expect(error.code).toBe('CONFIG')
    expect(error.message).toMatch(/processes \(node:cluster, child_process\) share no memory: use sluice\/redis there$/)
  })

  test('more memory than can be had', () => {
    const error = errorOf(() => sharedStore({ maxKeys: 16_000_000, recordWords: 250_020 }))
    expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringMatching(/bytes of shared memory and did not get them/) })
  })

  test('a runtime without SharedArrayBuffer', () => {
    vi.stubGlobal('SharedArrayBuffer', undefined)
    expect(errorOf(() => sharedStore({ maxKeys: 1 }))).toMatchObject({
      code: 'UNSUPPORTED',
      message: expect.stringMatching(/no SharedArrayBuffer/),
    })
  })

  test('a key for each limit', () => {
    const limiter = createLimiter({ a: ONE, b: ONE }, { name: 'two', store: sharedStore({ maxKeys: 5 }) })
    expect(errorOf(() => limiter.consume({ a: 'x', b: 'y' }))).toMatchObject({ code: 'UNSUPPORTED' })
    expect(limiter.consume({ a: 'x', b: 'x' }).allowed).toBe(true)
  })
})

describe('two stores on one memory, as in two threads', () => {
  const clock = fakeClock(START_MS)
  const pair = (limits: sluice.Limits, options: object = {}) => {
    const first = sharedStore({ maxKeys: 10, recordWords: 40 })
    return [first, sharedStore(first.handle)].map((store) => createLimiter(limits, { name: 'pair', store, clock, ...options })) as [
      sluice.SyncLimiter,
      sluice.SyncLimiter,
    ]
  }

  test('see updates of the numbers, and what was used stays used', () => {
    const [one, two] = pair(tokenBucket({ refill: '1/s', capacity: 10 }))
    one.consume('k', 6)
    one.update(tokenBucket({ refill: '1/s', capacity: 20 }))
    expect(one.peek('k', 0).remaining).toBe(14)
    expect(two.peek('k', 0).remaining).toBe(4)
    two.update(tokenBucket({ refill: '1/s', capacity: 20 }))
    expect(two.consume('k', 14).allowed).toBe(true)
  })

  test('have plans in common', () => {
    const plans = { pro: slidingWindow({ limit: 30, window: '1s', slots: 20 }) }
    const [one, two] = pair(slidingWindow({ limit: 3, window: '1s', slots: 5 }), { plans })
    expect(one.consume('k', 20, { plan: 'pro' }).remaining).toBe(10)
    expect(two.consume('k', 1).outcome).toBe('limited')
    expect(two.reset('k')).toBe(undefined)
    expect(one.consume('k', 3).remaining).toBe(0)
  })

  test('queue by reserving, in the order of the calls', () => {
    const [one, two] = pair(gcra({ rate: '1/s', burst: 1 }))
    const delays = [one, two, one, two].map((limiter) => limiter.reserve('k').delayMs)
    expect(delays).toEqual([0, 1000, 2000, 3000])
  })
})

test('without WebAssembly it is the same store, also beside one with it', () => {
  const first = sharedStore({ maxKeys: 10 })
  vi.stubGlobal('WebAssembly', undefined)
  const [second, third] = [sharedStore(first.handle), sharedStore({ maxKeys: 10 })]
  expect(third.handle.memory).toBe(undefined)
  const clock = fakeClock(START_MS)
  const limit = gcra({ rate: '1/s', burst: 3 })
  const remaining = [first, second, first].map((store) => createLimiter(limit, { name: 'w', store, clock }).consume('k').remaining)
  expect(remaining).toEqual([2, 1, 0])
  expect(createLimiter(limit, { name: 'w', store: third, clock }).consume('k').remaining).toBe(2)
})

test('threads have one time, and it is that of the thread that made the memory', async () => {
  const store = sharedStore({ maxKeys: 1 })
  const code = `
    import { parentPort, workerData } from 'node:worker_threads'
    import { sharedStore } from ${JSON.stringify(new URL('../../dist/stores/shared-memory/index.js', import.meta.url).href)}
    const { nowUs } = sharedStore(workerData)
    parentPort.on('message', () => parentPort.postMessage(nowUs()))`
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`), { workerData: store.handle })
  const nowUs = store.nowUs as () => number
  for (let k = 0; k < 20; k++) {
    const beforeUs = nowUs()
    worker.postMessage('')
    const thereUs = await new Promise<number>((resolve) => worker.once('message', resolve))
    // Not a matter of how long it took: it lies between two readings of this thread, to the
    // microsecond.
    expect(thereUs).toBeGreaterThanOrEqual(beforeUs)
    expect(thereUs).toBeLessThanOrEqual(nowUs())
  }
  await worker.terminate()
})
