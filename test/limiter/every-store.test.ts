/** The promises of a limiter that hold on every store. */
import { afterEach, describe, expect, test } from 'vitest'
import { concurrency, createLimiter, fixedWindow, gcra, type Limits, type SyncLimiter, slidingLog, slidingWindow } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { storeCases } from '../support/stores.ts'

describe.each(storeCases)('on $name', ({ open }) => {
  const closers: (() => void)[] = []
  afterEach(() => {
    for (const close of closers.splice(0)) close()
  })

  async function setUp() {
    const { store, close } = await open()
    closers.push(close)
    const clock = fakeClock(1_700_000_000_000)
    return { clock, make: <L extends Limits>(limits: L) => createLimiter(limits, { name: 'api', store, clock }) }
  }

  test.each([
    ['half a pair at the end', 'user:\ud83d'],
    ['half a pair in front', '\ude00:user'],
    ['two halves in the wrong order', 'a\ude00\ud83db'],
  ])('a key with a lone surrogate is refused by every verb: %s', async (_, key) => {
    const { make } = await setUp()
    const limiter = make(gcra({ rate: '1/s', burst: 5 }))
    for (const verb of ['consume', 'peek', 'reserve', 'refund', 'reset', 'acquire'] as const) {
      await expect((async () => limiter[verb](key))()).rejects.toMatchObject({ name: 'SluiceError', code: 'KEY' })
    }
    await expect(admitted(limiter, key)).rejects.toMatchObject({ name: 'SluiceError', code: 'KEY' })
  })

  test('tryAcquire answers at once, or it is an error at once: it never passes an if by being a promise', async () => {
    const { make } = await setUp()
    const limiter = make(fixedWindow({ limit: 1, window: '1h' })) as unknown as SyncLimiter
    const isAdmitted = () => {
      if (!limiter.tryAcquire('k')) return false
      return true
    }
    if (limiter.store.mode === 'sync') return expect([isAdmitted(), isAdmitted()]).toEqual([true, false])
    const message = "limiter 'api' has a store that answers later, so it has no tryAcquire: write (await limiter.consume(key)).allowed"
    expect(isAdmitted).toThrow(expect.objectContaining({ name: 'SluiceError', code: 'UNSUPPORTED', message }))
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  test.each([
    ['timeoutMs', { timeoutMs: 100 }],
    ['signal', { signal: new AbortController().signal }],
  ])('tryAcquire with %s is an error at once, before anything is taken', async (name, options) => {
    const { make } = await setUp()
    const limiter = make(fixedWindow({ limit: 1, window: '1h' })) as unknown as SyncLimiter
    const refusal =
      limiter.store.mode === 'async'
        ? { code: 'UNSUPPORTED' }
        : {
            code: 'CONFIG',
            message: `the options of a verb "${name}" is not an option: it has plan. To wait, write await limiter.acquire(key, { cost, ${name} })`,
          }
    expect(() => limiter.tryAcquire('k', 1, options as object)).toThrow(expect.objectContaining(refusal))
    expect((await limiter.peek('k')).remaining).toBe(1)
  })

  test('tryAcquire of what must be released is an error at once, too', async () => {
    const { make } = await setUp()
    const limiter = make(concurrency({ max: 1, lease: '30s' })) as unknown as SyncLimiter
    expect(() => limiter.tryAcquire('k')).toThrow(expect.objectContaining({ code: 'UNSUPPORTED' }))
  })

  test.each(['user:😀', '用户:42', 'é', '\ufffd', '\u0000', '\uffff'])('the key %j is a key', async (key) => {
    const { make } = await setUp()
    const limiter = make(gcra({ rate: '1/s', burst: 5 }))
    await limiter.consume(key, 2)
    expect(await limiter.consume(key)).toMatchObject({ remaining: 2 })
  })

  test.each([
    ['slidingLog', slidingLog({ limit: 4, window: '1s' })],
    ['slidingWindow', slidingWindow({ limit: 4, window: '1s', slots: 10 })],
    ['fixedWindow', fixedWindow({ limit: 4, window: '1s' })],
  ])('what a %s was charged by a clock a microsecond behind is given back by its decision', async (_, limit) => {
    const { clock, make } = await setUp()
    const limiter = make(limit)
    // The border of a window and of a slot lies between the two readings.
    const borderUs = clock.nowUs() + 10_000_000
    clock.setUs(borderUs)
    await limiter.consume('k')
    clock.setUs(borderUs - 1)
    const behind = await limiter.consume('k')
    clock.setUs(borderUs + 1)
    await behind.cancel()
    expect((await limiter.peek('k')).remaining).toBe(3)
  })

  test('a reservation that is cancelled after its limiter was closed is given back', async () => {
    const { make } = await setUp()
    const limiter = make(gcra({ rate: '1/s', burst: 1 }))
    await limiter.consume('k')
    const turn = await limiter.reserve('k')
    expect(turn.delayMs).toBe(1_000)
    limiter.close()
    expect(await turn.cancel()).toBeUndefined()
    // As it was before the reservation, for the next limiter of the name.
    expect(await make(gcra({ rate: '1/s', burst: 1 })).peek('k')).toMatchObject({ retryAfterMs: 1_000 })
    expect(await turn.cancel()).toBeUndefined()
  })

  test('so are the limits that were only charged along with it', async () => {
    const { make } = await setUp()
    const limits = { burst: gcra({ rate: '1/s', burst: 1 }), daily: fixedWindow({ limit: 5, window: '1d' }) }
    const limiter = make(limits)
    await limiter.consume('k')
    const turn = await limiter.reserve('k')
    expect(turn.parts.daily.remaining).toBe(3)
    limiter.close()
    await turn.cancel()
    const { parts } = await make(limits).peek('k', 0)
    expect([parts.burst.resetAfterMs, parts.daily.remaining]).toEqual([1_000, 4])
  })
})
