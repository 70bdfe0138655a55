/**
 * The faults in the sample code of the seed documents (design, section 6), each a test of its name:
 * Sluice does not have it. On memory and, on the same clock, on the real Redis; what is about
 * expiry and the server's time, on the server's clock.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  memoryStore,
  type Store,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type RedisSender, redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

const START_MS = 1_700_000_000_000
const KEY = 'u1'

let redis: TestRedis
let prefix: string

beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())
beforeEach(() => {
  prefix = `test:${randomUUID()}`
})

/** Every algorithm with 5 permits, and a window or a fill time of 100 seconds. */
const LIMITS: readonly (readonly [name: string, limit: Limit])[] = [
  ['gcra', gcra({ rate: '5/100s', burst: 5 })],
  ['tokenBucket', tokenBucket({ refill: '5/100s', capacity: 5 })],
  ['leakyBucket', leakyBucket({ leak: '5/100s', capacity: 5 })],
  ['fixedWindow', fixedWindow({ limit: 5, window: '100s', anchor: 'first' })],
  ['slidingWindow', slidingWindow({ limit: 5, window: '100s' })],
  ['slidingLog', slidingLog({ limit: 5, window: '100s' })],
]

const STORES: readonly (readonly [name: string, open: () => Store])[] = [
  ['memory', () => memoryStore()],
  ['redis', () => redisStore(redis, { prefix })],
]

/** A limiter whose clock the test moves. */
function onStore(limit: Limit, open: () => Store, startMs = START_MS) {
  const clock = fakeClock(startMs)
  return { clock, limiter: createLimiter(limit, { name: 'api', store: open() as AsyncStore, clock, maxAheadMs: 0 }) }
}

/** A limiter on the server's clock. */
function onServer(limit: Limit, client: RedisSender = redis) {
  return createLimiter(limit, { name: 'api', store: redisStore(client, { prefix }), maxAheadMs: 0 })
}

const redisName = () => `${prefix}:api:{${KEY}}`
const stateNow = async () => (await inspectKey(redis, redisName()))[0]?.state
const ttlMs = async () => Number(await redis.send(['PTTL', redisName()]))

describe('INCR then EXPIRE as two commands: a crash between them blocks a key for ever', () => {
  test.each(LIMITS)('%s: one command decides and sets the expiry, so nothing can come between', async (_, limit) => {
    const sent: string[] = []
    const watched: RedisSender = {
      send(args) {
        sent.push(args[0] as string)
        return redis.send(args)
      },
    }
    const limiter = onServer(limit, watched)
    await limiter.consume('warm-up')
    sent.length = 0
    await limiter.consume(KEY)
    expect(sent).toEqual([expect.stringMatching(/^EVAL/)])
    expect(await ttlMs()).toBeGreaterThan(0)
  })

  test.each(LIMITS)('%s: a key that has lost its expiry is no longer limited once it would have been gone', async (_, limit) => {
    const { limiter, clock } = onStore(limit, () => redisStore(redis, { prefix }))
    await limiter.consume(KEY, 5)
    await redis.send(['PERSIST', redisName()])
    expect((await limiter.consume(KEY)).allowed).toBe(false)
    clock.advanceMs(200_000)
    expect(await limiter.consume(KEY, 5)).toMatchObject({ allowed: true, remaining: 0 })
  })
})

describe.each(STORES)('on %s', (storeName, open) => {
  describe('INCR counts rejected calls', () => {
    test.each(LIMITS)('%s: a hundred refused calls leave the key as it was', async (_, limit) => {
      const { limiter } = onStore(limit, open)
      const { resetAfterMs } = await limiter.consume(KEY, 5)
      for (let k = 0; k < 100; k++) expect((await limiter.consume(KEY)).allowed).toBe(false)
      expect((await limiter.peek(KEY)).resetAfterMs).toBe(resetAfterMs)
      await limiter.refund(KEY, 1)
      expect((await limiter.consume(KEY)).allowed).toBe(true)
    })
  })

  test('a sliding window that adds the rejected request to the sorted set: a client that keeps knocking is never let in', async () => {
    const { limiter, clock } = onStore(slidingLog({ limit: 5, window: '1s' }), open)
    await limiter.consume(KEY, 5)
    for (let ms = 10; ms < 1_000; ms += 10) {
      clock.setMs(START_MS + ms)
      expect((await limiter.consume(KEY)).allowed).toBe(false)
    }
    clock.setMs(START_MS + 1_000)
    expect(await limiter.consume(KEY, 5)).toMatchObject({ allowed: true, remaining: 0 })
    if (storeName === 'redis') expect(await stateNow()).toEqual({ atUs: 1_700_000_001_000_000, '1700000001000000': 5 })
  })

  test("the millisecond, or the user's id, as member: two requests become one", async () => {
    const { limiter, clock } = onStore(slidingLog({ limit: 4, window: '1s' }), open)
    expect((await limiter.consume(KEY)).remaining).toBe(3)
    expect((await limiter.consume(KEY)).remaining).toBe(2)
    clock.setUs(START_MS * 1000 + 1)
    expect((await limiter.consume(KEY)).remaining).toBe(1)
    if (storeName === 'redis') {
      expect(await stateNow()).toEqual({ atUs: 1_700_000_000_000_001, '1700000000000000': 2, '1700000000000001': 1 })
    }
  })

  describe('permits in the prose, one member in the script', () => {
    test.each(LIMITS)('%s: a cost of 3 takes 3', async (_, limit) => {
      const { limiter } = onStore(limit, open)
      expect(await limiter.consume(KEY, 3)).toMatchObject({ allowed: true, remaining: 2 })
      expect(await limiter.consume(KEY, 3)).toMatchObject({ allowed: false, remaining: 2 })
    })
  })

  test('the wait taken from the oldest entry is wrong for cost > 1', async () => {
    const { limiter, clock } = onStore(slidingLog({ limit: 3, window: '1s' }), open)
    for (const ms of [0, 400, 800]) {
      clock.setMs(START_MS + ms)
      await limiter.consume(KEY)
    }
    clock.setMs(START_MS + 900)
    expect((await limiter.consume(KEY, 1)).retryAfterMs).toBe(100)
    expect((await limiter.consume(KEY, 2)).retryAfterMs).toBe(500)
    expect((await limiter.consume(KEY, 3)).retryAfterMs).toBe(900)
    clock.setMs(START_MS + 1_800)
    expect((await limiter.consume(KEY, 3)).allowed).toBe(true)
  })

  describe('sub-windows cleared only when the next slot is entered: after an idle gap stale slots still count', () => {
    // After ten windows, and a few slots, the seed's ring comes to the same places again and finds
    // the old counts in them.
    test.each([1_100, 2_000, 10_000, 10_300, 86_400_000])('after %i ms without a call nothing counts any more', async (gapMs) => {
      const { limiter, clock } = onStore(slidingWindow({ limit: 10, window: '1s', slots: 10 }), open)
      for (let slot = 0; slot < 10; slot++) {
        clock.setMs(START_MS + 100 * slot)
        await limiter.consume(KEY)
      }
      expect((await limiter.peek(KEY)).remaining).toBe(0)
      clock.advanceMs(gapMs)
      expect(await limiter.consume(KEY, 10)).toMatchObject({ allowed: true, remaining: 0 })
    })
  })

  describe("> where >= is meant at the window's end", () => {
    const windows: [string, Limit][] = [
      ['fixedWindow from the epoch', fixedWindow({ limit: 5, window: '1s' })],
      ['fixedWindow from the first call', fixedWindow({ limit: 5, window: '1s', anchor: 'first' })],
      ['slidingLog', slidingLog({ limit: 5, window: '1s' })],
    ]
    test.each(windows)('%s: a microsecond before its end the window is still full, at its end it is over', async (_, limit) => {
      const { limiter, clock } = onStore(limit, open)
      await limiter.consume(KEY, 5)
      clock.setUs(START_MS * 1000 + 999_999)
      expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, retryAfterMs: 0.001 })
      clock.setUs(START_MS * 1000 + 1_000_000)
      expect((await limiter.consume(KEY, 5)).allowed).toBe(true)
    })
  })

  describe('negative elapsed time not guarded', () => {
    test.each(LIMITS)('%s: a clock that steps back gives nothing back and takes nothing more', async (_, limit) => {
      const { limiter, clock } = onStore(limit, open)
      await limiter.consume(KEY, 3)
      for (const backMs of [0.001, 1, 50_000, 100_000, 1_000_000]) {
        clock.setMs(START_MS - backMs)
        const { remaining, resetAfterMs } = await limiter.peek(KEY)
        // GCRA keeps a moment and not a level: seen from earlier it has more in use, up to all of
        // it.
        if (limit.type === 'gcra') expect(remaining).toBeLessThanOrEqual(2)
        else expect(remaining).toBe(2)
        expect(resetAfterMs).toBeLessThanOrEqual(220_000)
      }
    })
  })

  describe('HMGET assigned to two variables: the state is never read, every call finds a fresh bucket', () => {
    test.each(LIMITS)('%s: each call finds what the one before left', async (_, limit) => {
      const { limiter } = onStore(limit, open)
      const left: number[] = []
      for (let k = 0; k < 6; k++) left.push((await limiter.consume(KEY)).remaining)
      expect(left).toEqual([4, 3, 2, 1, 0, 0])
      expect((await limiter.consume(KEY)).allowed).toBe(false)
    })
  })

  test('leaky bucket "water >= threshold" overshoots with fractional water and disagrees with its own script', async () => {
    const { limiter, clock } = onStore(leakyBucket({ capacity: 2, leak: '1/s' }), open)
    await limiter.consume(KEY, 2)
    clock.advanceMs(500)
    // 1.5 are in the bucket: below the threshold of 2, but one more would overflow.
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, retryAfterMs: 500 })
    clock.advanceMs(499.999)
    expect((await limiter.consume(KEY)).allowed).toBe(false)
    clock.advanceMs(0.001)
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: true, remaining: 0, delayMs: 1_000 })
  })

  describe('permits <= 0 silently 1', () => {
    test.each(LIMITS)('%s: cost 0 is a question and a negative cost is refused', async (_, limit) => {
      const { limiter } = onStore(limit, open)
      await limiter.consume(KEY, 2)
      expect(await limiter.consume(KEY, 0)).toMatchObject({ allowed: true, remaining: 3 })
      await expect(async () => limiter.consume(KEY, -1)).rejects.toThrow('cost -1 must be a whole number from 0 to 1,000,000,000')
      expect((await limiter.peek(KEY)).remaining).toBe(3)
    })
  })

  test('the prose of the token bucket example says three in a row, its table shows two: the table is right', async () => {
    const { limiter, clock } = onStore(tokenBucket({ capacity: 2, refill: '1/s' }), open, 0)
    clock.setMs(100)
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: true, remaining: 1 })
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: true, remaining: 0 })
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, retryAfterMs: 1_000 })
    clock.setMs(1_500)
    // 0.4 tokens are left, so the next whole one is 0.6 seconds away.
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: true, remaining: 0 })
    expect(await limiter.consume(KEY)).toMatchObject({ allowed: false, retryAfterMs: 600 })
  })
})

describe('bad options answered as "denied, 1000 ms"; rate 0', () => {
  const bad: [string, () => unknown][] = [
    ['gcra', () => gcra({ rate: '0/s', burst: 5 })],
    ['gcra', () => gcra({ rate: '5/s', burst: -1 })],
    ['tokenBucket', () => tokenBucket({ refill: { permits: 0, per: '1s' }, capacity: 5 })],
    ['tokenBucket', () => tokenBucket({ refill: '5/s', capacity: -1 })],
    ['leakyBucket', () => leakyBucket({ leak: '0/s', capacity: 5 })],
    ['leakyBucket', () => leakyBucket({ leak: '5/s', capacity: Number.NaN })],
    ['fixedWindow', () => fixedWindow({ limit: -1, window: '1s' })],
    ['fixedWindow', () => fixedWindow({ limit: 5, window: '0s' })],
    ['slidingWindow', () => slidingWindow({ limit: 0.5, window: '1s' })],
    ['slidingWindow', () => slidingWindow({ limit: 5, window: '-1s' })],
    ['slidingLog', () => slidingLog({ limit: -1, window: '1s' })],
    ['slidingLog', () => slidingLog({ limit: 5, window: '0s' })],
  ]
  test.each(bad)('%s refuses them when it is made, with the value and the rule', (type, make) => {
    expect(make).toThrow(expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(new RegExp(`^${type} .* must be `)) }))
  })
})

describe('time from the client: two machines disagree', () => {
  test.each(LIMITS)('%s: a machine whose clock is ten years off decides by the same time', async (_, limit) => {
    const first = await onServer(limit).consume(KEY, 3)
    const other = await connectRedis()
    vi.useFakeTimers({ toFake: ['Date', 'performance'], now: Date.now() + 10 * 365 * 86_400_000 })
    try {
      const second = await onServer(limit, other).consume(KEY, 3)
      expect(second).toMatchObject({ allowed: false, remaining: 2 })
      expect(Math.abs(second.atMs - first.atMs)).toBeLessThan(10_000)
    } finally {
      vi.useRealTimers()
      other.close()
    }
  })
})

describe('whole-second expiry under a sub-second window', () => {
  const short: [string, Limit][] = [
    ['gcra', gcra({ rate: '5/300ms', burst: 5 })],
    ['tokenBucket', tokenBucket({ refill: '5/300ms', capacity: 5 })],
    ['leakyBucket', leakyBucket({ leak: '5/300ms', capacity: 5 })],
    ['fixedWindow', fixedWindow({ limit: 5, window: '300ms', anchor: 'first' })],
    ['slidingWindow', slidingWindow({ limit: 5, window: '300ms' })],
    ['slidingLog', slidingLog({ limit: 5, window: '300ms' })],
  ]
  test.each(short)('%s: the key lives until it is idle, in milliseconds, and little longer', async (_, limit) => {
    const { resetAfterMs } = await onServer(limit).consume(KEY, 5)
    expect(resetAfterMs).toBeGreaterThanOrEqual(299)
    // An eighth of the window, which a sliding one has a slot more of.
    expect(await ttlMs()).toBeLessThanOrEqual(Math.ceil(resetAfterMs) + 42)
    expect(await ttlMs()).not.toBe(-1)
  })

  test.each(short)('%s: all is back when the window has passed, though the key is there', async (_, limit) => {
    const clock = fakeClock(START_MS)
    const limiter = createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix }), clock })
    const { resetAfterMs } = await limiter.consume(KEY, 5)
    clock.advanceMs(resetAfterMs)
    expect(await redis.send(['EXISTS', redisName()])).toBe(1)
    expect((await limiter.consume(KEY, 5)).allowed).toBe(true)
  })

  test.each([
    ['fixedWindow', fixedWindow({ limit: 5, window: '1us', anchor: 'first' })],
    ['slidingWindow', slidingWindow({ limit: 5, window: '1us' })],
    ['slidingLog', slidingLog({ limit: 5, window: '1us' })],
  ] as [string, Limit][])('%s: a window of a microsecond is not an expiry of zero', async (_, limit) => {
    expect((await onServer(limit).consume(KEY, 5)).allowed).toBe(true)
    expect(await ttlMs()).not.toBe(-1)
  })
})

describe('writing state on rejection prolongs a key for ever under attack', () => {
  test.each(LIMITS)('%s: being refused neither writes the key nor prolongs it', async (_, limit) => {
    const limiter = onServer(limit)
    await limiter.consume(KEY, 5)
    await redis.send(['PEXPIRE', redisName(), '5000'])
    const before = await redis.send(['DUMP', redisName()])
    for (let k = 0; k < 20; k++) expect((await limiter.consume(KEY, 5)).outcome).toBe('limited')
    expect(await redis.send(['DUMP', redisName()])).toEqual(before)
    expect(await ttlMs()).toBeLessThanOrEqual(5_000)
  })
})

describe('Lua tostring above 14 digits loses digits', () => {
  const atUs = 1_700_000_000_000_007
  const kept: [string, Limit, Readonly<Record<string, number>>][] = [
    ['gcra', gcra({ rate: '1/s', burst: 5 }), { tatUs: 1_700_000_001_000_007 }],
    ['tokenBucket', tokenBucket({ refill: '1/s', capacity: 5 }), { tokens: 4, atUs }],
    ['leakyBucket', leakyBucket({ leak: '1/s', capacity: 5 }), { water: 1, atUs }],
    ['fixedWindow', fixedWindow({ limit: 5, window: '1s', anchor: 'first' }), { startUs: atUs, endUs: atUs + 1_000_000, atUs }],
    ['slidingWindow', slidingWindow({ limit: 5, window: '100us', slots: 100 }), { '1700000000000007': 1, atUs }],
    ['slidingLog', slidingLog({ limit: 5, window: '1s' }), { '1700000000000007': 1, atUs }],
  ]
  test.each(kept)('%s: every digit of a time in microseconds is in Redis', async (_, limit, fields) => {
    const { limiter, clock } = onStore(limit, () => redisStore(redis, { prefix }))
    clock.setUs(atUs)
    await limiter.consume(KEY)
    expect(await stateNow()).toMatchObject(fields)
  })

  test.each(LIMITS)('%s: answers on Redis are exact to the microsecond', async (_, limit) => {
    const answers = await Promise.all(
      STORES.map(async ([, open]) => {
        const { limiter, clock } = onStore(limit, open)
        clock.setUs(START_MS * 1000 + 123_457)
        await limiter.consume(KEY, 5)
        clock.setUs(START_MS * 1000 + 123_458)
        return limiter.consume(KEY)
      }),
    )
    expect(answers[1]).toEqual(answers[0])
  })
})
