/**
 * States that are written in place, or beside others in one key: whatever is done to one of them,
 * memory would hold the same.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, type Limits, slidingLog } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { recordsAt } from '../support/state-bytes.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

/** A limiter of these limits on Redis, and one in memory, by one clock. */
function twins<L extends Limits>(limits: L, prefix = randomUUID(), clock = fakeClock(1_763_200_000_000)) {
  const remote = createLimiter(limits, { name: 'api', clock, store: redisStore(redis, { prefix, denialCache: false }) })
  return { remote, memory: createLimiter(limits, { clock }), clock, prefix }
}

const LIMITS = { few: fixedWindow({ limit: 100_000, window: '1h' }), log: slidingLog({ limit: 900, window: '1h' }) }

test('a small record that grows by a byte before a large one', async () => {
  const { remote, memory, clock, prefix } = twins(LIMITS)
  for (let k = 0; k < 120; k++) {
    clock.advanceMs(1)
    const cost = { few: 5, log: 1 }
    expect((await remote.consume('k', cost)).parts).toEqual(memory.consume('k', cost).parts)
  }
  expect((await recordsAt(redis, `${prefix}:api:{k}`)).map(({ name }) => name)).toEqual(['few', 'log'])
})

test('a record that is new to a key with a large one, behind a decision on a key that has both', async () => {
  const { remote, memory, clock } = twins(LIMITS)
  const take = async (key: string, cost: { few: number; log: number }) =>
    expect((await remote.consume(key, cost)).parts, key).toEqual(memory.consume(key, cost).parts)
  for (let k = 0; k < 60; k++) {
    clock.advanceMs(1)
    await take('both', { few: 1, log: 1 })
    await take('one', { few: 0, log: 1 })
  }
  // The first of a turn is sent alone.
  await Promise.all([take('other', { few: 1, log: 1 }), take('both', { few: 1, log: 1 }), take('one', { few: 1, log: 1 })])
  await take('one', { few: 1, log: 1 })
})

test('settlements of one turn, on a state that stands beside another, each of its own time', async () => {
  const first = gcra({ rate: '7/s', burst: 20 })
  const { remote, memory, clock, prefix } = twins({ first })
  await twins({ first, beside: gcra({ rate: '100/h', burst: 50 }) }, prefix, clock).remote.consume('k', { first: 0, beside: 1 })
  const left = []
  for (const limiter of [remote, memory]) {
    clock.setMs(1_763_200_000_000)
    const taken = []
    for (const cost of [6, 5, 7]) {
      taken.push(await limiter.consume('k', cost))
      clock.advanceMs(310)
    }
    await Promise.all([limiter.peek('k'), ...taken.map((decision) => (decision as { settle(actual: number): unknown }).settle(1))])
    const { remaining, resetAfterMs } = await limiter.peek('k')
    left.push([remaining, resetAfterMs])
  }
  expect(left[0]).toEqual(left[1])
})

test('a permit given back of the oldest call of a log, after which its sums are the numbers of words', async () => {
  const { remote, memory, clock } = twins(slidingLog({ limit: 2_000, window: '1min' }))
  const left = []
  for (const limiter of [remote, memory]) {
    clock.setMs(1_763_200_000_000)
    const oldest = await limiter.consume('k', 14)
    for (let k = 0; k < 60; k++) {
      clock.advanceMs(0.5)
      await limiter.consume('k', 2)
    }
    await oldest.settle(13)
    const remaining = []
    // As the calls leave, one after the other.
    for (let k = 0; k < 70; k++) {
      clock.setMs(1_763_200_060_000 + k * 0.5)
      remaining.push((await limiter.peek('k')).remaining)
    }
    left.push(remaining)
  }
  expect(left[0]).toEqual(left[1])
})
