/**
 * Bytes that were ours until some of them were changed: a call answers or fails, the server is
 * never held up, and other keys are decided.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { bytesAt, putBytes } from '../support/state-bytes.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

const LIMITS: readonly (readonly [name: string, limit: Limit])[] = [
  ['gcra', gcra({ rate: '7/s', burst: 20 })],
  ['tokenBucket', tokenBucket({ refill: '7/s', capacity: 20 })],
  ['leakyBucket', leakyBucket({ leak: '7/s', capacity: 20 })],
  ['fixedWindow', fixedWindow({ limit: 20, window: '1min' })],
  ['slidingWindow', slidingWindow({ limit: 20, window: '1min' })],
  ['slidingLog', slidingLog({ limit: 20, window: '1min' })],
]

test.each(LIMITS)('%s', async (_, limit) => {
  const random = new Random(20_261_118)
  const prefix = randomUUID()
  const clock = fakeClock(1_700_000_000_000)
  const limiter = createLimiter<Limit, ReturnType<typeof redisStore>>(limit, {
    name: 'api',
    store: redisStore(redis, { prefix, denialCache: false }),
    clock,
  })
  const name = `${prefix}:api:{k}`
  for (let k = 0; k < 6; k++) {
    await limiter.consume('k', k % 3 === 0 ? 3 : 1)
    clock.advanceMs(7_000)
  }
  await limiter.consume('k')
  const bytes = (await bytesAt(redis, name)) as Uint8Array
  const seen = { answered: 0, failed: 0 }
  for (let round = 0; round < 400; round++) {
    const changed = bytes.slice(0, random.chance(0.1) ? random.whole(0, bytes.length) : bytes.length)
    for (let k = random.whole(1, 3); k > 0; k--)
      changed[random.whole(0, changed.length - 1)] = random.pick([0, 1, 127, 255, random.whole(0, 255)])
    await putBytes(redis, name, changed)
    const calls = [limiter.peek('k', 5), limiter.consume('other', 0), limiter.refund('k'), limiter.consume('k'), limiter.reserve('k', 2)]
    const answers = await Promise.allSettled(calls)
    expect(answers[1]).toMatchObject({ status: 'fulfilled', value: { remaining: 20 } })
    for (const answer of answers) {
      if (answer.status === 'fulfilled') seen.answered += 1
      else {
        seen.failed += 1
        expect(answer.reason).toBeInstanceOf(SluiceError)
        expect(answer.reason, String(answer.reason)).toMatchObject({ code: 'STORE', isolated: true })
      }
    }
    if (answers.every(({ status }, k) => k === 1 || status === 'rejected')) expect(await bytesAt(redis, name)).toEqual(changed)
  }
  expect(seen.answered).toBeGreaterThan(400)
  expect(seen.failed).toBeGreaterThan(200)
})

/** A large state: 7 bytes, the size of the head, a label and in 3 bytes how many words follow. */
test('a log of which the end is lost is written as a whole again', async () => {
  const prefix = randomUUID()
  const clock = fakeClock(1_700_000_000_000)
  const store = redisStore(redis, { prefix, denialCache: false })
  const limiter = createLimiter(slidingLog({ limit: 1_000, window: '1min' }), { name: 'api', store, clock })
  const name = `${prefix}:api:{k}`
  for (let k = 0; k < 100; k++) {
    await limiter.consume('k')
    clock.advanceMs(1)
  }
  const bytes = (await bytesAt(redis, name)) as Uint8Array
  const wordsAt = 8 + (bytes[7] as number)
  const words = 31
  await putBytes(redis, name, Uint8Array.of(...bytes.slice(0, wordsAt - 3), 0, 0, words, ...bytes.slice(wordsAt, wordsAt + words * 8)))
  expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 899 })
  expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 898 })
  expect((await bytesAt(redis, name))?.length).toBe(bytes.length)
  limiter.close()
})
