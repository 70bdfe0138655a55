/** Logs in Redis under several limits at once, and after a burst. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLimiter, gcra, type Limit, slidingLog } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { putBytes } from '../support/state-bytes.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

function limiterOf(prefix: string, limit: Limit, clock: FakeClock) {
  return createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix, denialCache: false }), clock })
}

const bytesOf = async (prefix: string) => Number(await redis.send(['STRLEN', `${prefix}:api:{k}`]))

test('a long log that is charged under a smaller limit stays readable, under both', async () => {
  const [prefix, clock] = [randomUUID(), fakeClock(1_700_000_000_000)]
  const large = limiterOf(prefix, slidingLog({ limit: 100, window: '10s' }), clock)
  const small = limiterOf(prefix, slidingLog({ limit: 10, window: '10s' }), clock)
  for (let k = 0; k < 50; k++) {
    clock.advanceMs(1)
    await large.consume('k')
  }
  clock.advanceMs(9_995)
  // Five of the fifty are left.
  for (const remaining of [4, 3, 2]) expect(await small.consume('k')).toMatchObject({ allowed: true, remaining })
  expect(await large.consume('k')).toMatchObject({ allowed: true, remaining: 91 })
})

test('a log shrinks when its entries leave', async () => {
  const [prefix, clock] = [randomUUID(), fakeClock(1_700_000_000_000)]
  const limiter = limiterOf(prefix, slidingLog({ limit: 2_000, window: '10s' }), clock)
  for (let k = 0; k < 300; k++) {
    clock.setUs(clock.nowUs() + 100)
    await limiter.consume('k')
  }
  const most = await bytesOf(prefix)
  for (let k = 0; k < 400; k++) {
    clock.advanceMs(100)
    await limiter.consume('k')
  }
  const settled = await bytesOf(prefix)
  for (let k = 0; k < 400; k++) {
    clock.advanceMs(1_000)
    await limiter.consume('k')
  }
  const least = await bytesOf(prefix)
  expect([settled < most * 3, least < most / 4, least < settled]).toEqual([true, true, true])
})

test('where every decision of a turn fails, each is told of its own key', async () => {
  const [prefix, clock] = [randomUUID(), fakeClock()]
  const limiter = limiterOf(prefix, gcra({ rate: '1/s', burst: 3 }), clock)
  for (const key of ['a', 'b']) await putBytes(redis, `${prefix}:api:{${key}}`, Uint8Array.of(1, 2, 3, 4))
  const failures = await Promise.allSettled(['a', 'b'].map((key) => limiter.consume(key)))
  expect(failures.map((failure) => failure.status === 'rejected' && String(failure.reason))).toEqual([
    expect.stringContaining(`{a}`),
    expect.stringContaining(`{b}`),
  ])
})

/** By server time: entries of their own. */
function twoWindows() {
  const plans = { long: slidingLog({ limit: 8, window: '60s' }) }
  return createLimiter(slidingLog({ limit: 5, window: '10s' }), { name: 'api', store: redisStore(redis, { prefix: randomUUID() }), plans })
}

test.each([
  ['consume under another window', (limiter: ReturnType<typeof twoWindows>) => limiter.consume('key', 1, { plan: 'long' })],
  ['charge under another window', (limiter: ReturnType<typeof twoWindows>) => limiter.charge('key', 1, { plan: 'long' })],
] as const)('an entry that was given back makes no later one go missing: %s', async (_, use) => {
  const limiter = twoWindows()
  const first = await limiter.consume('key')
  await limiter.consume('key')
  await first.cancel()
  for (let used = 2; used <= 8; used++) {
    await use(limiter)
    expect((await limiter.peek('key', 0, { plan: 'long' })).remaining).toBe(8 - used)
  }
  limiter.close()
})
