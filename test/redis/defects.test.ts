/**
 * Defects that Redis limiters are known for, each a test of its name: Sluice does not have it. On
 * the server's own clock.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  createLimiter,
  type Duration,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { until } from '../support/redis-servers.ts'

let redis: TestRedis
let prefix: string
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())
beforeEach(() => {
  prefix = `test:${randomUUID()}`
})

/** Every algorithm with so many permits, all back after `window`. */
function limitsOf(permits: number, window: Duration): readonly (readonly [name: string, limit: Limit])[] {
  const rate = { permits, per: window }
  return [
    ['gcra', gcra({ rate, burst: permits })],
    ['tokenBucket', tokenBucket({ refill: rate, capacity: permits })],
    ['leakyBucket', leakyBucket({ leak: rate, capacity: permits })],
    ['fixedWindow', fixedWindow({ limit: permits, window, anchor: 'first' })],
    ['slidingWindow', slidingWindow({ limit: permits, window })],
    ['slidingLog', slidingLog({ limit: permits, window })],
  ]
}

const nameOf = (key: string) => redisKey({ prefix, hashTag: undefined }, 'api', key)
// Nothing here is about slow answers, and a busy machine may hold Redis up for a second.
const onServer = (limit: Limit) => createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix }), storeTimeoutMs: 60_000 })
const ttlMsOf = async (key: string) => Number(await redis.send(['PTTL', nameOf(key)]))

describe('sub-second windows', () => {
  test.each(limitsOf(2, '900ms'))('%s: 2 in 900 ms are limited, and back after that, and the key is gone', async (_, limit) => {
    const limiter = onServer(limit)
    expect((await limiter.consume('u1', 2)).allowed).toBe(true)
    const { outcome, retryAfterMs } = await limiter.consume('u1', 2)
    expect(outcome).toBe('limited')
    expect(retryAfterMs).toBeGreaterThan(0)
    expect(retryAfterMs).toBeLessThanOrEqual(990)
    expect(await ttlMsOf('u1')).toBeLessThanOrEqual(991 + 124)
    await until(async () => (await redis.send(['EXISTS', nameOf('u1')])) === 0)
    expect((await limiter.consume('u1', 2)).allowed).toBe(true)
  })
})

describe('windows beyond 24.8 days', () => {
  test.each(limitsOf(2, '300d'))('%s: 2 in 300 days', async (_, limit) => {
    const limiter = onServer(limit)
    await limiter.consume('u1', 2)
    expect((await limiter.consume('u1')).outcome).toBe('limited')
    expect(await ttlMsOf('u1')).toBeGreaterThan(290 * 86_400_000)
  })
})

describe('fractional durations', () => {
  test.each(limitsOf(2, '1234.567ms'))('%s: 2 in 1234.567 ms', async (_, limit) => {
    const limiter = onServer(limit)
    const { resetAfterMs } = await limiter.consume('u1', 2)
    expect(resetAfterMs).toBeGreaterThan(1_100)
    expect(Number.isInteger(Math.round(resetAfterMs * 1e6) / 1e3)).toBe(true)
    expect(await ttlMsOf('u1')).toBeGreaterThan(1_000)
  })
})

describe('refund after expiry leaving a key', () => {
  test.each(limitsOf(2, '50ms'))('%s: what is given back too late is nothing', async (_, limit) => {
    const limiter = onServer(limit)
    const decision = await limiter.consume('u1', 2)
    await until(async () => (await redis.send(['EXISTS', nameOf('u1')])) === 0)
    await decision.settle(1)
    await limiter.refund('u1', 1)
    expect(await redis.send(['EXISTS', nameOf('u1')])).toBe(0)
    expect((await limiter.peek('u1')).remaining).toBe(2)
  })
})

describe('a denied cost being charged', () => {
  test.each(limitsOf(5, '1h'))('%s: refused calls take nothing, not even the part that would have fitted', async (_, limit) => {
    const limiter = onServer(limit)
    await limiter.consume('u1', 3)
    for (let k = 0; k < 20; k++) expect((await limiter.consume('u1', 3)).outcome).toBe('limited')
    expect((await limiter.consume('u1', 2)).allowed).toBe(true)
  })
})

describe('first limit charged when the second refuses', () => {
  test.each(limitsOf(5, '1h'))('%s first, then one that refuses', async (_, limit) => {
    const limiter = createLimiter(
      { first: limit, second: gcra({ rate: '1/h', burst: 1 }) },
      { name: 'api', store: redisStore(redis, { prefix }) },
    )
    expect((await limiter.consume('u1')).allowed).toBe(true)
    for (let k = 0; k < 20; k++) expect(await limiter.consume('u1')).toMatchObject({ outcome: 'limited', policy: 'second' })
    expect((await limiter.peek('u1', 0)).parts.first.remaining).toBe(4)
  })
})

test('reset by pattern wiping others: a reset forgets one key, whatever it looks like', async () => {
  const limiter = onServer(gcra({ rate: '1/h', burst: 1 }))
  const others = ['user:1', 'user:10', 'user:1:a', 'user', 'xuser:1']
  for (const key of others) await limiter.consume(key)
  for (const key of ['user:*', 'user:1*', '*', 'user:?', 'user:[0-9]']) await limiter.reset(key)
  for (const key of others) expect((await limiter.consume(key)).outcome, key).toBe('limited')
})

describe('client clock off by an hour', () => {
  test.each(limitsOf(2, '10s'))('%s: the server tells the time', async (_, limit) => {
    const limiter = onServer(limit)
    const { atMs } = await limiter.consume('u1', 2)
    vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 3_600_000)
    const skew = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 3_600_000)
    try {
      const later = await limiter.consume('u1', 2)
      expect(later.outcome).toBe('limited')
      expect(later.atMs - atMs).toBeLessThan(60_000)
    } finally {
      skew.mockRestore()
      vi.restoreAllMocks()
    }
  })
})
