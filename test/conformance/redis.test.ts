/** The Redis store alone: its clock, its keys, its expiry, its scripts. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createLimiter, gcra, type Limit, SluiceError, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { bytesAt, toHex } from '../support/state-bytes.ts'

let redis: TestRedis
let prefix: string

beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())
beforeEach(() => {
  prefix = `test:${randomUUID()}`
})

const limits: [string, Limit][] = [
  ['gcra', gcra({ rate: '10/min', burst: 5 })],
  ['tokenBucket', tokenBucket({ refill: '10/min', capacity: 5 })],
]

const keyOf = (key: string) => `${prefix}:api:{${key}}`

describe.each(limits)('on the clock of the server, %s', (_, limit) => {
  const make = () => createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix }), maxAheadMs: 0 })

  test('a key lives until it is idle, and an eighth of the window longer at most', async () => {
    const { resetAfterMs } = await make().consume('u1', 3)
    expect(resetAfterMs).toBe(18_000)
    const ttlMs = Number(await redis.send(['PTTL', keyOf('u1')]))
    expect(ttlMs).toBeGreaterThan(17_000)
    expect(ttlMs).toBeLessThanOrEqual(18_000 + 30_000 / 8)
  })

  test('atMs is the time of the server', async () => {
    const [seconds] = (await redis.send(['TIME'])) as [string, string]
    const { atMs } = await make().consume('u1')
    expect(Math.abs(atMs / 1000 - Number(seconds))).toBeLessThan(60)
  })

  test('asking, being refused and giving back create no key', async () => {
    const limiter = make()
    await limiter.peek('u1')
    await limiter.consume('u1', 0)
    await limiter.consume('u1', 6)
    await limiter.refund('u1', 2)
    expect(await redis.send(['EXISTS', keyOf('u1')])).toBe(0)
  })

  test('being refused does not prolong a key', async () => {
    const limiter = make()
    await limiter.consume('u1', 5)
    await redis.send(['PEXPIRE', keyOf('u1'), '5000'])
    expect((await limiter.consume('u1', 5)).outcome).toBe('limited')
    expect(Number(await redis.send(['PTTL', keyOf('u1')]))).toBeLessThanOrEqual(5_000)
  })

  test('the script is sent again when the server forgot it', async () => {
    const limiter = make()
    expect((await limiter.consume('u1')).remaining).toBe(4)
    await redis.send(['SCRIPT', 'FLUSH'])
    expect((await limiter.consume('u1')).remaining).toBe(3)
  })

  test('a key that holds something else is a clear error and stays untouched', async () => {
    await redis.send(['SET', keyOf('u1'), 'hello'])
    const error = await make()
      .consume('u1')
      .catch((reason: unknown) => reason)
    expect(error).toBeInstanceOf(SluiceError)
    expect(error).toMatchObject({ code: 'STORE' })
    expect(await redis.send(['GET', keyOf('u1')])).toBe('hello')
  })

  test('reset forgets the key', async () => {
    const limiter = make()
    await limiter.consume('u1', 5)
    await limiter.reset('u1')
    expect((await limiter.consume('u1', 5)).allowed).toBe(true)
  })

  test('a reservation is made and cancelled in one round trip each', async () => {
    const limiter = createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix }) })
    await limiter.consume('u1', 5)
    const reserved = await limiter.reserve('u1', 2)
    expect(reserved.allowed).toBe(true)
    expect(reserved.delayMs).toBeGreaterThan(11_000)
    expect((await limiter.peek('u1', 1)).retryAfterMs).toBeGreaterThan(17_000)
    await reserved.cancel()
    expect((await limiter.peek('u1', 1)).retryAfterMs).toBeLessThanOrEqual(6_000)
  })
})

test('a person can read the keys', async () => {
  const clock = { nowUs: () => 1_700_000_000_000_000, setTimer: () => () => undefined }
  const both = { burst: gcra({ rate: '7/s', burst: 20 }), spare: tokenBucket({ refill: '10/s', capacity: 30 }) }
  const limiter = createLimiter(both, { name: 'api', store: redisStore(redis, { prefix }), clock })
  await limiter.consume('user:42', 1)
  const states = await inspectKey(redis, keyOf('user:42'))
  expect(states).toMatchObject([
    {
      policy: 'burst',
      type: 'gcra',
      numbers: '20 7 1000000',
      state: { tatUs: 1_700_000_000_142_857, part: 1, atUs: 1_700_000_000_000_000 },
    },
    { policy: 'spare', type: 'tokenBucket', numbers: '30 1 100000', state: { tokens: 29, part: 0, atUs: 1_700_000_000_000_000 } },
  ])
  const bytes = (await bytesAt(redis, keyOf('user:42'))) as Uint8Array
  const [burst, spare] = [
    '060a2418206e0a' + '0d' + '01' + '056275727374' + '0311380e' + '91b0' + '0101022e0a',
    '060a24181fc6a0' + '0d' + '02' + '057370617265' + '0319080d' + '80b0' + '0186a0',
  ]
  expect(toHex(bytes)).toBe(burst + spare)
})

test('braces in a key cannot move it to where another key is', async () => {
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store: redisStore(redis, { prefix }) })
  const keys = ['a', 'a}', '{a', '{a}', 'a%7D', 'a}:default', '%']
  for (const key of keys) expect((await limiter.consume(key)).allowed, key).toBe(true)
  for (const key of keys) expect((await limiter.consume(key)).allowed, key).toBe(false)
})
