/** Limiters with very many limits: the work grows with their number, and with nothing else. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, fixedWindow, gcra, type Limit, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

function namesOf(count: number): string[] {
  return Array.from({ length: count }, (_, k) => `limit${k}`)
}

function limitsOf(count: number, limit: Limit): Record<string, Limit> {
  return Object.fromEntries(namesOf(count).map((name) => [name, limit]))
}

/** Counts what is read of it, names and values. */
function counted<Value>(given: Record<string, Value>): { readonly given: Record<string, Value>; readonly reads: () => number } {
  let reads = 0
  const proxy = new Proxy(given, {
    get(target, name) {
      reads += 1
      return target[name as string]
    },
    getOwnPropertyDescriptor(target, name) {
      reads += 1
      return Object.getOwnPropertyDescriptor(target, name)
    },
    ownKeys(target) {
      reads += Object.keys(target).length
      return Object.keys(target)
    },
  })
  return { given: proxy, reads: () => reads }
}

describe('keys and costs by name', () => {
  function readsFor(count: number): number {
    const limiter = createLimiter(limitsOf(count, gcra({ rate: '1/s', burst: 5 })), { clock: fakeClock() })
    const keys = counted(Object.fromEntries(namesOf(count).map((name) => [name, `key-${name}`])))
    const costs = counted(Object.fromEntries(namesOf(count).map((name, k) => [name, k % 3])))
    expect(limiter.consume(keys.given, costs.given).allowed).toBe(true)
    return keys.reads() + costs.reads()
  }

  test('are read a few times for each limit, however many there are', () => {
    expect(readsFor(3_000)).toBe(30 * readsFor(100))
    expect(readsFor(100)).toBeLessThanOrEqual(1_500)
  })

  test('for a limit that does not exist are refused, also among thousands', () => {
    const limiter = createLimiter(limitsOf(2_000, gcra({ rate: '1/s', burst: 5 })))
    const costs = Object.fromEntries(namesOf(2_000).map((name) => [name, 1]))
    expect(() => limiter.consume('k', { ...costs, limit7: 1, limt7: 1 })).toThrow('cost for "limt7": there is no such limit')
    const { limit7: _, ...others } = costs
    expect(() => limiter.consume('k', others)).toThrow("cost undefined of limit 'limit7' must be a whole number")
    expect(() => limiter.consume('k', { ...others, limt7: 1 })).toThrow('cost for "limt7": there is no such limit')
  })
})

describe('on Redis', () => {
  let client: TestRedis
  const storeWith = (maxBatch: number): AsyncStore => redisStore(client, { prefix: `test:${randomUUID()}`, maxBatch })
  beforeAll(async () => {
    client = await connectRedis()
  })
  afterAll(() => client.close())

  const kinds: [string, Limit][] = [
    ['gcra', gcra({ rate: '1/h', burst: 2 })],
    ['fixedWindow', fixedWindow({ limit: 2, window: '1d' })],
    ['tokenBucket', tokenBucket({ capacity: 2, refill: '1/h' })],
  ]

  test.each(kinds)('4,000 limits of type %s are decided as one', async (_, limit) => {
    const limiter = createLimiter(limitsOf(4_000, limit), { name: 'api', store: storeWith(1_000), storeTimeoutMs: 60_000 })
    const decisions = await Promise.all([1, 1, 1].map((cost) => limiter.consume('k', cost)))
    expect(decisions.map(({ allowed }) => allowed)).toEqual([true, true, false])
    await limiter.refund('k')
    expect((await limiter.peek('k')).remaining).toBe(1)
    limiter.close()
  })

  test.each([
    [8_000, 1],
    [4_001, 32],
    [4_001, 1_000],
  ])('%i limits with a maxBatch of %i are refused when the limiter is made', (count, maxBatch) => {
    const make = () => createLimiter(limitsOf(count, kinds[0]?.[1] as Limit), { name: 'api', store: storeWith(maxBatch) })
    expect(make).toThrow(
      expect.objectContaining({
        code: 'CONFIG',
        message: expect.stringContaining(`${count} limits are too many for one limiter on Redis: it may have 4000`),
      }),
    )
  })

  test('more limits than an update may bring change nothing', async () => {
    const limiter = createLimiter(limitsOf(3, kinds[0]?.[1] as Limit), { name: 'api', store: storeWith(128) })
    expect(() => limiter.update(limitsOf(1_001, kinds[0]?.[1] as Limit))).toThrow('must have the same limits')
    await expect(limiter.consume('k')).resolves.toMatchObject({ allowed: true })
    limiter.close()
  })
})
