/**
 * When a write sets the time to live of its key, and when it keeps the one that the key has: a key
 * lives until the whole second after its state is idle, so it is kept where that second is the same.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { bytesAt } from '../support/state-bytes.ts'

/** By a clock of the caller, a time to live that is set is a day: so it can be told from this. */
const GIVEN_MS = 500_000
const START_MS = 1_763_200_000_000
const SECOND_US = 1_000_000

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

/** A key of a limiter, and what becomes of its time to live. */
function watched(limit: Limit, startMs = START_MS) {
  const [clock, prefix] = [fakeClock(startMs), randomUUID()]
  const limiter = createLimiter(limit, { name: 'api', clock, store: redisStore(redis, { prefix, denialCache: false }) })
  const key = `${prefix}:api:{k}`
  /** A record begins with when it is idle. */
  const idleAtUs = async () => Number(Buffer.from((await bytesAt(redis, key)) as Uint8Array).readBigUInt64BE(0) >> 8n)
  const take = async (cost = 1) => {
    const before = await idleAtUs()
    await redis.send(['PEXPIRE', key, `${GIVEN_MS}`])
    expect(await limiter.consume('k', cost)).toMatchObject({ allowed: true })
    const isKept = Number(await redis.send(['PTTL', key])) <= GIVEN_MS
    return { before, after: await idleAtUs(), isKept }
  }
  return { clock, limiter, take }
}

const secondAfter = (us: number) => Math.ceil(us / SECOND_US)

/**
 * Each take moves when these are idle by a tenth of a second, or by when it is made. The lease is
 * longer than the test: none is renewed.
 */
const LIMITS: [string, Limit][] = [
  ['gcra', gcra({ rate: '10/s', burst: 10_000 })],
  ['tokenBucket', tokenBucket({ refill: '10/s', capacity: 10_000 })],
  ['leakyBucket', leakyBucket({ leak: '10/s', capacity: 10_000 })],
  ['fixedWindow', fixedWindow({ limit: 10_000, window: '400ms' })],
  ['slidingWindow', slidingWindow({ limit: 10_000, window: '2s', slots: 10 })],
  ['a short log', slidingLog({ limit: 10_000, window: '900ms' })],
  ['a long log', slidingLog({ limit: 10_000, window: '1h' })],
  ['concurrency', concurrency({ max: 1_000, lease: '60s' })],
]

describe.each(LIMITS)('%s', (_, limit) => {
  test('the time to live is kept where the second is the same, and set where it is not', async () => {
    const { clock, limiter, take } = watched(limit)
    const random = new Random(11)
    await limiter.consume('k')
    const seen = { kept: 0, set: 0 }
    for (let step = 0; step < 150; step++) {
      clock.advanceMs(random.whole(0, 4) * 50)
      const { before, after, isKept } = await take()
      expect(isKept, `${before} ${after}`).toBe(secondAfter(before) === secondAfter(after))
      seen[isKept ? 'kept' : 'set'] += 1
    }
    expect(seen.kept).toBeGreaterThan(20)
    expect(seen.set).toBeGreaterThan(5)
  })
})

test.each([
  ['ends with the same second', 4, true],
  ['begins a microsecond behind it', 4.000001, false],
])('a state that %s', async (_, seconds, isKept) => {
  const { take, limiter } = watched(gcra({ rate: '1000000/s', burst: 100_000_000 }))
  await limiter.consume('k', 3_000_001)
  expect(await take(Math.round(seconds * SECOND_US) - 3_000_001)).toMatchObject({ isKept })
})
