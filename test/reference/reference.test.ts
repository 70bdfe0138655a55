/** The older package loads, and decides as this one does. */
import { randomUUID } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import * as current from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { connectRedis } from '../support/redis-client.ts'
import { REFERENCE, unpackedReference } from '../support/reference.ts'

const reference = unpackedReference()
afterAll(() => reference.remove())

type Library = typeof current

/** What each algorithm answers to the same calls. */
async function answers({ createLimiter, ...factories }: Library, store?: (name: string) => object): Promise<unknown[]> {
  const limits = {
    gcra: factories.gcra({ rate: '7/s', burst: 3 }),
    tokenBucket: factories.tokenBucket({ capacity: 3, refill: '7/s' }),
    leakyBucket: factories.leakyBucket({ capacity: 3, leak: '7/s' }),
    fixedWindow: factories.fixedWindow({ limit: 3, window: '1s' }),
    slidingWindow: factories.slidingWindow({ limit: 3, window: '1s' }),
    slidingLog: factories.slidingLog({ limit: 3, window: '1s' }),
  }
  const all: unknown[] = []
  for (const [name, limit] of Object.entries(limits)) {
    const clock = fakeClock(1_000)
    const limiter = createLimiter(limit, { clock, ...store?.(name) })
    for (const [cost, thenMs] of [
      [2, 100],
      [2, 300],
      [1, 0],
      [4, 900],
      [3, 0],
    ] as const) {
      all.push([name, JSON.parse(JSON.stringify(await limiter.consume('ann', cost)))])
      clock.advanceMs(thenMs)
    }
  }
  return all
}

test('is the package of a commit: its ES modules only, below 400 kB', () => {
  const { commit, exports } = JSON.parse(readFileSync(join(reference.folder, 'package.json'), 'utf8'))
  expect(commit).toMatch(/^[0-9a-f]{40}$/)
  expect(Object.values(exports)).toContainEqual(expect.stringMatching(/redis.index\.js$/))
  expect(statSync(REFERENCE).size).toBeLessThan(400_000)
})

test('decides in memory as this package does', async () => {
  const older = (await reference.load('index.js')) as unknown as Library
  expect(older.createLimiter).not.toBe(current.createLimiter)
  expect(await answers(older)).toEqual(await answers(current))
})

test('decides on Redis as this package does', async () => {
  const older = (await reference.load('index.js')) as unknown as Library
  const { redisStore: olderStore } = (await reference.load('stores/redis/index.js')) as { redisStore: typeof redisStore }
  const redis = await connectRedis()
  try {
    const on = (make: typeof redisStore) => {
      const store = make(redis, { prefix: randomUUID() })
      return (name: string) => ({ name, store })
    }
    expect(await answers(older, on(olderStore))).toEqual(await answers(current, on(redisStore)))
  } finally {
    redis.close()
  }
})
