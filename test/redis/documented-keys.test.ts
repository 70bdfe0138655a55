/** The bytes on the page of keys are what a real Redis holds after the calls that it names. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
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
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

const page = readFileSync(new URL('../../docs/reference/redis-keys.md', import.meta.url), 'utf8')
const SHOWN = [...page.matchAll(/^[0-9a-f]{14} {2}[0-9a-f ]+$/gm)].map(([line]) => line.replaceAll(' ', ''))

const AT_US = 1_763_200_000_600_000
const LATER_US = 1_767_974_400_000_000
const HEX = `return (string.gsub(redis.call('GET', KEYS[1]), '.', function(letter) return string.format('%02x', string.byte(letter)) end))`

interface Example {
  readonly what: string
  readonly limits: Limit | Readonly<Record<string, Limit>>
  /** When, and how many. */
  readonly calls: readonly (readonly [atUs: number, cost: number])[]
}

const inflight = (max: number) => ({ inflight: concurrency({ max, lease: '30s' }) })

const EXAMPLES: readonly Example[] = [
  { what: 'gcra', limits: gcra({ rate: '100/min', burst: 100 }), calls: [[AT_US, 3]] },
  { what: 'tokenBucket', limits: tokenBucket({ refill: '5/s', capacity: 10 }), calls: [[AT_US, 3]] },
  { what: 'leakyBucket', limits: leakyBucket({ leak: '5/s', capacity: 10 }), calls: [[AT_US, 3]] },
  {
    what: 'fixedWindow',
    limits: fixedWindow({ limit: 10, window: '1min' }),
    calls: [
      [AT_US - 40_600_000, 2],
      [AT_US, 1],
    ],
  },
  {
    what: 'slidingWindow',
    limits: slidingWindow({ limit: 10, window: '1s' }),
    calls: [
      [AT_US - 200_000, 2],
      [AT_US, 3],
    ],
  },
  {
    what: 'slidingLog',
    limits: slidingLog({ limit: 10, window: '1s' }),
    calls: [
      [AT_US - 5, 3],
      [AT_US, 1],
    ],
  },
  {
    what: 'a large log',
    limits: slidingLog({ limit: 10, window: '1s' }),
    calls: [1, 2, 3, 4, 5, 6].map((us) => [AT_US + us, 1] as const),
  },
  { what: 'concurrency', limits: inflight(2), calls: [[LATER_US, 1]] },
  { what: 'large concurrency', limits: inflight(3), calls: [0, 1, 2].map((us) => [LATER_US + us, 1] as const) },
  { what: 'a name and a part', limits: { burst: gcra({ rate: '7/s', burst: 20 }) }, calls: [[AT_US, 1]] },
]

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

test.each(EXAMPLES)('$what', async ({ limits, calls }) => {
  const prefix = `test:${randomUUID()}`
  const clock = fakeClock(0)
  const limiter = createLimiter(limits as Limit, { name: 'shown', store: redisStore(redis, { prefix }), clock })
  for (const [atUs, cost] of calls) {
    clock.setUs(atUs)
    expect((await limiter.consume('key', cost)).allowed).toBe(true)
  }
  expect(SHOWN).toContain(await redis.send(['EVAL', HEX, '1', `${prefix}:shown:{key}`]))
  limiter.close()
})

test('nothing else is shown', () => {
  expect(SHOWN).toHaveLength(EXAMPLES.length)
})
