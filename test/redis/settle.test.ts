/**
 * `charge` and `settle` on Redis: one trip with what else is decided in the turn, one read and one
 * write, and what happens while Redis is away.
 */
import { randomUUID } from 'node:crypto'
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLimiter, type FailurePolicy, fixedWindow, gcra, type Limit, slidingLog, tokenBucket } from '../../src/index.ts'
import { type RedisSender, type RedisStoreOptions, redisStore } from '../../src/stores/redis/index.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { countingSender } from '../support/counted-commands.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { startCluster, until } from '../support/redis-servers.ts'

let redis: TestRedis
const sent: (readonly string[])[] = []
const counting: RedisSender = {
  send(args) {
    sent.push(args)
    return redis.send(args)
  },
}

beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

/** So slow that nothing drains while a test runs. */
const LIMITS: readonly Limit[] = [
  gcra({ rate: '10/d', burst: 10 }),
  tokenBucket({ capacity: 10, refill: '10/d' }),
  fixedWindow({ limit: 10, window: '366d' }),
  slidingLog({ limit: 10, window: '1d' }),
]
const [LIMIT] = LIMITS as [Limit]

function limiterOn(limit: Limit, options: RedisStoreOptions = {}, sender: RedisSender = counting) {
  return createLimiter<Limit, ReturnType<typeof redisStore>>(limit, {
    name: 'api',
    store: redisStore(sender, { prefix: randomUUID(), ...options }),
  })
}

test('consume, settle and charge in one turn are one script call', async () => {
  const limiter = limiterOn(LIMIT)
  const first = await limiter.consume('u1', 5)
  sent.length = 0
  const [, second, debt] = await Promise.all([first.settle(2), limiter.consume('u1', 8), limiter.charge('u2', 11)])
  expect(sent.length).toBe(1)
  expect([second.allowed, second.remaining, debt.outcome]).toEqual([true, 0, 'limited'])
})

test.each(LIMITS)('$type: a charge and a settlement read once and write once, and one of nothing asks nobody', async (limit) => {
  const sender = countingSender(redis)
  const limiter = limiterOn(limit, { denialCache: false }, sender)
  const isLog = limit.type === 'slidingLog'
  await limiter.charge('u1', 2)
  expect(isLog || sender.counts).toEqual(isLog || { get: 1, set: 1 })
  const decision = await limiter.consume('u1', 5)
  await decision.settle(1)
  expect(isLog || sender.counts).toEqual(isLog || { get: 1, set: 1 })
  expect((await limiter.peek('u1', 0)).remaining).toBe(7)
  sender.counts = {}
  await decision.settle(0)
  await (await limiter.consume('u1', 1)).settle(1)
  await (await limiter.consume('u1', 9)).settle(0)
  expect((await limiter.peek('u1', 0)).remaining).toBe(6)
})

test('a log of two hundred entries is settled in its head, one of the newest entries by one more reading', async () => {
  const sender = countingSender(redis)
  const limiter = limiterOn(slidingLog({ limit: 10_000, window: '1d' }), { denialCache: false }, sender)
  for (let k = 0; k < 200; k++) await limiter.consume('u1')
  const older = await limiter.consume('u1', 5)
  const newest = await limiter.consume('u1', 5)
  await newest.settle(1)
  expect(sender.counts).toMatchObject({ getrange: 1, setrange: 2 })
  await older.settle(2)
  expect(sender.counts).toMatchObject({ getrange: 2, setrange: 3 })
  expect((await limiter.peek('u1', 0)).remaining).toBe(10_000 - 203)
})

test('a log whose ring is full, with entries that count nothing among them, takes debt', async () => {
  const limit = slidingLog({ limit: 40, window: '1d' })
  const limiter = limiterOn(limit)
  const decisions: Awaited<ReturnType<typeof limiter.consume>>[] = []
  const consume = async (times: number) => {
    for (let k = 0; k < times; k++) decisions.push(await limiter.consume('u1'))
  }
  const settleAt0 = (from: number, to: number) => Promise.all(decisions.slice(from, to).map((decision) => decision.settle(0)))
  await consume(40)
  await settleAt0(0, 7)
  await consume(7)
  await limiter.charge('u1')
  await settleAt0(7, 11)
  await consume(3)
  expect(decisions.every(({ allowed }) => allowed)).toBe(true)
  await decisions.at(-1)?.settle(30)
  expect(await limiter.peek('u1')).toMatchObject({ outcome: 'limited', remaining: 0 })
  await settleAt0(11, 50)
  expect((await limiter.peek('u1')).remaining).toBe(40 - 31)
})

describe('a refusal that was remembered', () => {
  test('holds no longer once something was given back', async () => {
    const limiter = limiterOn(LIMIT)
    const decision = await limiter.consume('u1', 8)
    expect((await limiter.consume('u1', 5)).allowed).toBe(false)
    await decision.settle(1)
    expect((await limiter.consume('u1', 5)).allowed).toBe(true)
  })

  test('is told anew once something was charged, also by a call of the same turn', async () => {
    const limiter = limiterOn(LIMIT)
    await limiter.consume('u1', 10)
    const before = await limiter.consume('u1', 1)
    const [, after] = await Promise.all([limiter.charge('u1', 10), limiter.consume('u1', 1)])
    // A day for ten permits.
    expect(after.retryAfterMs - before.retryAfterMs).toBeGreaterThan(80_000_000)
  })
})

test('a debt is kept as long as it lasts', async () => {
  const prefix = randomUUID()
  const limiter = limiterOn(gcra({ rate: '1/s', burst: 10 }), { prefix })
  const { resetAfterMs } = await limiter.charge('u1', 1_000)
  const ttlMs = Number(await redis.send(['PTTL', redisKey({ prefix, hashTag: undefined }, 'api', 'u1')]))
  expect(ttlMs).toBeGreaterThan(resetAfterMs - 60_000)
  await limiter.charge('u1', 1_000_000_000_000)
  const longest = Number(await redis.send(['PTTL', redisKey({ prefix, hashTag: undefined }, 'api', 'u1')]))
  expect(longest).toBeLessThanOrEqual(2 ** 52 / 1_000 + 3_600_000)
})

test('wrong input is a rejection, and the decision can still be settled', async () => {
  const limiter = limiterOn(LIMIT)
  const decision = await limiter.consume('u1', 5)
  await expect(decision.settle(1.5)).rejects.toMatchObject({ code: 'COST' })
  await expect(limiter.charge('u1', -1)).rejects.toMatchObject({ code: 'COST' })
  await expect(limiter.settle('u1', 1, { of: undefined as never })).rejects.toMatchObject({ code: 'CONFIG' })
  await decision.settle(2)
  expect((await limiter.peek('u1', 0)).remaining).toBe(8)
})

describe('while Redis is away', () => {
  let isAway = false
  const unsteady: RedisSender = { send: (args) => (isAway ? Promise.reject(new Error('connection lost')) : redis.send(args)) }
  const limiterWith = (onStoreError: FailurePolicy) =>
    createLimiter(LIMIT, { name: 'api', onStoreError, store: redisStore(unsteady, { prefix: randomUUID() }) })

  test.each(['allow', 'deny', 'local'] as const)(
    'with %s a decision stays as it was estimated, and what stood in is not settled in Redis',
    async (policy) => {
      isAway = false
      const limiter = limiterWith(policy)
      const decision = await limiter.consume('u1', 5)
      isAway = true
      await decision.settle(1)
      const degraded = await limiter.consume('u1', 2)
      const charged = await limiter.charge('u1', 20)
      expect([degraded.degraded, charged.degraded, charged.allowed]).toEqual([true, true, policy === 'allow'])
      isAway = false
      await degraded.settle(0)
      await degraded.settle(9)
      // What stands open is the store's.
      await until(async () => limiter.health().state === 'up')
      const other = createLimiter(LIMIT, { name: 'api', store: limiter.store as ReturnType<typeof redisStore> })
      expect((await other.peek('u1', 0)).remaining).toBe(5)
      limiter.close()
      other.close()
    },
  )

  test('with throw it is told', async () => {
    isAway = false
    const limiter = limiterWith('throw')
    const decision = await limiter.consume('u1', 5)
    isAway = true
    await expect(decision.settle(1)).rejects.toMatchObject({ code: 'STORE' })
    await expect(limiter.charge('u1', 1)).rejects.toMatchObject({ code: 'STORE' })
    limiter.close()
  })
})

test('on a cluster, limits whose keys lie on different servers are charged and settled each', async () => {
  const cluster = await startCluster()
  const client = new Cluster(cluster.servers.map(({ host, port }) => ({ host, port })))
  try {
    const limiter = createLimiter({ user: LIMIT, tenant: LIMITS[2] as Limit }, { name: 'api', store: redisStore(client) })
    const key = { user: 'u1', tenant: 't7' }
    const decision = await limiter.consume(key, { user: 5, tenant: 5 })
    await decision.settle({ user: 2, tenant: 8 })
    await limiter.charge(key, { user: 1, tenant: 4 })
    const { parts } = await limiter.peek(key, 0)
    expect([parts.user.remaining, parts.tenant.remaining]).toEqual([7, 0])
    limiter.close()
  } finally {
    client.disconnect()
    await cluster.stop()
  }
})

test.each(LIMITS)('$type: a permit that is given back to a key that holds nothing, beside other calls', async (limit) => {
  const limiter = limiterOn(limit)
  const decision = await limiter.consume('u1', 5)
  await limiter.reset('u1')
  const [, other] = await Promise.all([decision.settle(4), limiter.consume('u2', 3)])
  expect([other.outcome, other.remaining]).toEqual(['allowed', 7])
  expect((await limiter.peek('u1', 0)).remaining).toBe(10)
})
