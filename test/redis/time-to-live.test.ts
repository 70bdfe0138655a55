/**
 * How long keys live: until their states are idle, rounded up to a multiple of an eighth of the
 * window. A write sets the time to live only where that is another moment than before.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
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
import { bytesAt, livesUntilUs, recordsAt, stepUs } from '../support/state-bytes.ts'

/** By a clock of the caller, a time to live that is set is a day: so it can be told from this. */
const GIVEN_MS = 500_000
const HOUR_US = 3_600_000_000

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

/** A record begins with when it is idle. */
async function idleAtUs(key: string): Promise<number> {
  const bytes = await bytesAt(redis, key)
  return bytes === undefined ? 0 : Number(Buffer.from(bytes).readBigUInt64BE(0) >> 8n)
}

/**
 * Each with the milliseconds of which up to four pass between two calls: so few for permits that
 * none is renewed.
 */
const LIMITS: [string, Limit, number][] = [
  ['gcra', gcra({ rate: '10/s', burst: 40 }), 50],
  ['tokenBucket', tokenBucket({ refill: '10/s', capacity: 40 }), 50],
  ['leakyBucket', leakyBucket({ leak: '10/s', capacity: 40 }), 50],
  ['fixedWindow', fixedWindow({ limit: 10_000, window: '400ms' }), 5],
  ['slidingWindow', slidingWindow({ limit: 10_000, window: '2s', slots: 10 }), 25],
  ['a short log', slidingLog({ limit: 10_000, window: '900ms' }), 10],
  ['a long log', slidingLog({ limit: 10_000, window: '8s' }), 100],
  ['concurrency', concurrency({ max: 1_000, lease: '60s' }), 40],
  ['a window that has no whole eighth', gcra({ rate: '1000000/s', burst: 2_000_009 }), 25],
  ['a window of less than 8 ms', gcra({ rate: '10000/s', burst: 40 }), 0.05],
  ['a window of more than 8 h', slidingLog({ limit: 10_000, window: '10d' }), 360_000],
]

describe.each(LIMITS)('%s', (_, limit, tickMs) => {
  test('the time to live is kept where it ends at the same moment, and set where it does not', async () => {
    const [clock, prefix, random] = [fakeClock(1_763_200_000_000), randomUUID(), new Random(11)]
    const limiter = createLimiter(limit, { name: 'api', clock, store: redisStore(redis, { prefix, denialCache: false }) })
    const key = `${prefix}:api:{k}`
    const seen = { kept: 0, set: 0 }
    await limiter.consume('k')
    for (let step = 0; step < 200; step++) {
      clock.advanceMs(random.whole(0, 4) * tickMs)
      const before = await idleAtUs(key)
      await redis.send(['PEXPIRE', key, `${GIVEN_MS}`])
      const verb = limit.type === 'concurrency' ? 'consume' : random.pick(['consume', 'consume', 'charge', 'refund'] as const)
      await limiter[verb]('k')
      const after = await idleAtUs(key)
      const isKept = Number(await redis.send(['PTTL', key])) <= GIVEN_MS
      const isSame = livesUntilUs(limit[RULE], before) === livesUntilUs(limit[RULE], after)
      // A refund that writes always sets it.
      expect(isKept, `${verb} ${before} ${after}`).toBe(verb === 'refund' ? isKept && isSame : isSame)
      seen[isKept ? 'kept' : 'set'] += 1
    }
    expect(seen.kept).toBeGreaterThan(20)
    expect(seen.set).toBeGreaterThan(1)
  })
})

/** A key that lives for a millisecond may be over before it is looked at. */
const LASTING = LIMITS.filter(([, limit]) => limit[RULE].windowUs >= 100_000)

describe.each(LASTING)('%s', (_, limit) => {
  test('by the time of the server, a key lives until its state is idle, rounded up', async () => {
    const prefix = randomUUID()
    const limiter = createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix, denialCache: false }) })
    const late = []
    for (let step = 0; step < 60; step++) {
      // A key keeps a time to live that was set late while the server stood still.
      const key = `k${step % 20}`
      await limiter.consume(key)
      late.push((await lateMs(`${prefix}:api:{${key}}`, (idleUs) => livesUntilUs(limit[RULE], idleUs))) ?? STANDSTILL_MS)
    }
    expect(Math.min(...late)).toBeLessThanOrEqual(1)
    expect(Math.max(...late)).toBeLessThanOrEqual(STANDSTILL_MS)
  })
})

/**
 * How many milliseconds later than that a key ends: 1 at most, unless the server stood still
 * between reading its clock and writing. Undefined for one that is over already.
 */
async function lateMs(key: string, untilUs: (idleUs: number) => number): Promise<number | undefined> {
  const idleUs = await idleAtUs(key)
  const endsMs = Number(await redis.send(['PEXPIRETIME', key]))
  if (idleUs === 0 || endsMs < 0) return undefined
  const late = endsMs - untilUs(idleUs) / 1000
  expect(late).toBeGreaterThan(-1)
  return late
}

/** No server of a test stands still for so long. */
const STANDSTILL_MS = 5_000

const NANO = gcra({ rate: '1000000/s', burst: 32_000_000 })

test.each([
  ['at the very end of a step', 8_000_000, true],
  ['a microsecond behind it', 8_000_001, false],
])('a state that is idle %s', async (_, idleUs, isKept) => {
  expect(stepUs(NANO[RULE])).toBe(4_000_000)
  const [clock, prefix] = [fakeClock(1_763_200_000_000), randomUUID()]
  const limiter = createLimiter(NANO, { name: 'api', clock, store: redisStore(redis, { prefix }) })
  const key = `${prefix}:api:{k}`
  await limiter.consume('k', 4_000_001)
  await redis.send(['PEXPIRE', key, `${GIVEN_MS}`])
  await limiter.consume('k', idleUs - 4_000_001)
  expect(Number(await redis.send(['PTTL', key])) <= GIVEN_MS).toBe(isKept)
})

describe('a key of several limits', () => {
  const fast = gcra({ rate: '100/s', burst: 10 })
  const slow = slidingLog({ limit: 100, window: '80s' })
  const limiterOf = (prefix: string, limits: Record<string, Limit>) =>
    createLimiter(limits, { name: 'api', store: redisStore(redis, { prefix, denialCache: false }), storeTimeoutMs: 60_000 })

  async function endsMs(key: string): Promise<number> {
    return Number(await redis.send(['PEXPIRETIME', key]))
  }

  async function idleOfSlow(prefix: string): Promise<number> {
    const records = await recordsAt(redis, `${prefix}:api:{k}`)
    return records.find(({ name }) => name === 'slow')?.idleAtUs as number
  }

  test('lives as long as the one that lives longest, rounded up by its own numbers', async () => {
    const prefix = randomUUID()
    const limiter = limiterOf(prefix, { fast, slow })
    const late = []
    for (let step = 0; step < 30; step++) {
      await limiter.consume('k')
      late.push((await endsMs(`${prefix}:api:{k}`)) - livesUntilUs(slow[RULE], await idleOfSlow(prefix)) / 1000)
    }
    expect(Math.min(...late)).toBeGreaterThan(-1)
    expect(Math.min(...late)).toBeLessThanOrEqual(1)
    expect(Math.max(...late)).toBeLessThanOrEqual(STANDSTILL_MS)
  })

  test('is told its end by each call, also after the clock has stepped back', async () => {
    const [clock, prefix] = [fakeClock(1_763_200_000_000), randomUUID()]
    const slow = gcra({ rate: '1/s', burst: 36_000 })
    const log = slidingLog({ limit: 500, window: '1600ms' })
    const limiter = createLimiter({ slow, log }, { name: 'api', clock, store: redisStore(redis, { prefix, denialCache: false }) })
    const key = `${prefix}:api:{k}`
    const isSet = async () => {
      await redis.send(['PEXPIRE', key, `${GIVEN_MS}`])
      await limiter.consume('k')
      return Number(await redis.send(['PTTL', key])) > GIVEN_MS
    }
    await limiter.consume('k')
    for (let k = 0; k < 60; k++) {
      clock.advanceMs(20)
      await limiter.consume('k', { slow: 0, log: 1 })
    }
    // `slow` is idle, and its record may stay where the log is written in place.
    expect(await isSet()).toBe(true)
    clock.advanceMs(-500)
    expect(await isSet()).toBe(true)
  })

  test('lives an hour longer than those that took no part', async () => {
    const prefix = randomUUID()
    await limiterOf(prefix, { fast, slow }).consume('k')
    await limiterOf(prefix, { fast }).consume('k')
    const late = (await endsMs(`${prefix}:api:{k}`)) - ((await idleOfSlow(prefix)) + HOUR_US) / 1000
    expect(late).toBeGreaterThan(-1)
    expect(late).toBeLessThanOrEqual(STANDSTILL_MS)
  })

  test('under other numbers it lives as long as those say', async () => {
    const prefix = randomUUID()
    await limiterOf(prefix, { slow }).consume('k')
    const longer = slidingLog({ limit: 100, window: '800s' })
    await limiterOf(prefix, { slow: longer }).consume('k')
    expect(await lateMs(`${prefix}:api:{k}`, (idleUs) => livesUntilUs(longer[RULE], idleUs))).toBeLessThanOrEqual(STANDSTILL_MS)
    // Given back by the numbers that the state has.
    await limiterOf(prefix, { slow }).refund('k')
    expect(await lateMs(`${prefix}:api:{k}`, (idleUs) => livesUntilUs(longer[RULE], idleUs))).toBeLessThanOrEqual(STANDSTILL_MS)
  })
})
