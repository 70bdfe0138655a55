/** How long keys live in Redis, by the server's own clock: never shorter than they are in use. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type AsyncStore,
  createLimiter,
  type Duration,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  type Limits,
  leakyBucket,
  type Rate,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { Random } from '../model/random.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

type Numbers = readonly [limit: number, rate: Rate, window: Duration]
type Of = (...numbers: Numbers) => Limit
/** Each algorithm by both kinds of numbers, of which it takes what it needs. */
const OF: Readonly<Record<string, Of>> = {
  gcra: (burst, rate) => gcra({ rate, burst }),
  tokenBucket: (capacity, refill) => tokenBucket({ refill, capacity }),
  leakyBucket: (capacity, leak) => leakyBucket({ leak, capacity }),
  fixedWindow: (limit, _, window) => fixedWindow({ limit, window, anchor: 'first' }),
  epochWindow: (limit, _, window) => fixedWindow({ limit, window }),
  slidingWindow: (limit, _, window) => slidingWindow({ limit, window }),
  slidingLog: (limit, _, window) => slidingLog({ limit, window }),
}
const TYPES = Object.entries(OF)

/** From the fastest to the slowest. */
const NUMBERS: readonly Numbers[] = [
  [10, '10/s', '1s'],
  [10, '10/min', '1min'],
  [12, '7/10s', '17s'],
  [40, '40/2s', '2s'],
  [1_000, '999/h', '1h'],
]
type Plan = '0' | '1' | '2' | '3' | '4'

type Any = Limiter<Limits, AsyncStore, Plan>

/** A limiter by the clock of the server, with each set of numbers as a plan of it. */
function limiterOf(made: (numbers: Numbers) => Limits, all = NUMBERS): { readonly limiter: Any; readonly keyOf: (key: string) => string } {
  const prefix = randomUUID()
  const options = { name: 'api', store: redisStore(redis, { prefix, denialCache: false }), plans: { ...all.map(made) } }
  const limiter = createLimiter(made(all[0] as Numbers), options as never) as unknown as Any
  return { limiter, keyOf: (key) => redisKey({ prefix, hashTag: undefined }, 'api', key) }
}

/**
 * The key lives until it is idle, to the server's clock of whole milliseconds: it is there while
 * that shows the one it ends in.
 */
async function expectToLive(limiter: Any, key: string, name: string, story: string): Promise<void> {
  const { atMs, resetAfterMs } = await limiter.peek(key, 0)
  const endsMs = Number(await redis.send(['PEXPIRETIME', name]))
  if (endsMs >= 0) expect(endsMs + 1, story).toBeGreaterThan(atMs + resetAfterMs)
  else if (endsMs === -2) expect(await serverMs(), story).toBeGreaterThanOrEqual(atMs + resetAfterMs)
  else expect(endsMs, story).toBe('with a time to live')
}

async function serverMs(): Promise<number> {
  const [seconds, us] = (await redis.send(['TIME'])) as [string, string]
  return Number(seconds) * 1000 + Number(us) / 1000
}

describe('R11: a key lives as long as it is in use, whichever call wrote last and by whatever numbers', () => {
  describe.each(TYPES)('%s', (type, of) => {
    const made = (numbers: Numbers) => of(...numbers)

    test('one call by a second and nine by a minute: it lives for what is in use', async () => {
      const { limiter, keyOf } = limiterOf(made)
      await limiter.consume('k')
      for (let k = 0; k < 9; k++) {
        expect((await limiter.consume('k', 1, { plan: '1' })).allowed).toBe(true)
        await expectToLive(limiter, 'k', keyOf('k'), `after ${k + 1} by a minute`)
      }
      // By the calendar a minute may just be over.
      if (type === 'epochWindow') return
      expect((await limiter.peek('k', 0, { plan: '1' })).remaining).toBeLessThanOrEqual(1)
      expect(Number(await redis.send(['PTTL', keyOf('k')]))).toBeGreaterThan(40_000)
    })

    test('nine calls by a minute and one by a second: it lives for what is in use', async () => {
      const { limiter, keyOf } = limiterOf(made)
      await limiter.consume('k', 9, { plan: '1' })
      await limiter.consume('k')
      await expectToLive(limiter, 'k', keyOf('k'), 'after one by a second')
    })

    test('a refund by faster numbers than those of the state leaves it what is still in use', async () => {
      const { limiter, keyOf } = limiterOf(made)
      for (let k = 0; k < 20; k++) {
        await limiter.consume(`k${k}`, 9, { plan: '1' })
        await limiter.refund(`k${k}`, 1 + (k % 8), { plan: '0' })
        await expectToLive(limiter, `k${k}`, keyOf(`k${k}`), `after a refund of ${1 + (k % 8)}`)
      }
    })

    test('so does a settlement after a call by faster numbers', async () => {
      const { limiter, keyOf } = limiterOf(made)
      for (const actual of [0, 1, 5, 9, 14, 25]) {
        const key = `k${actual}`
        const decision = await limiter.consume(key, 9, { plan: '1' })
        await limiter.charge(key, 1, { plan: '3' })
        await decision.settle(actual)
        await expectToLive(limiter, key, keyOf(key), `settled to ${actual}`)
      }
    })
  })

  test('after each of 2,400 random steps on one to three limits by five sets of numbers', async () => {
    const random = new Random(11)
    for (let round = 0; round < 24; round++) {
      const types = Array.from({ length: 1 + (round % 3) }, (_, k) => TYPES[(round + 2 * k) % TYPES.length] as (typeof TYPES)[number])
      const { limiter, keyOf } = limiterOf((numbers) =>
        Object.fromEntries(
          types.map(([type, of], k) => [type, of(...(NUMBERS[(NUMBERS.indexOf(numbers) + k) % NUMBERS.length] as Numbers))]),
        ),
      )
      const taken: { readonly key: string; readonly decision: Awaited<ReturnType<Any['reserve']>> }[] = []
      for (let step = 0; step < 100; step++) {
        const plan = `${random.whole(0, NUMBERS.length - 1)}` as Plan
        const verb = random.pick(['consume', 'consume', 'reserve', 'charge', 'refund', 'settle', 'settle', 'cancel'] as const)
        let key = `k${random.whole(0, 3)}`
        const cost = random.whole(0, 6)
        const earlier = random.pick([...taken.slice(-6), undefined])
        if (verb === 'charge' || verb === 'refund') await limiter[verb](key, verb === 'charge' ? 2 * cost : cost, { plan })
        else if (verb === 'settle' || verb === 'cancel') {
          key = earlier?.key ?? key
          await (verb === 'settle' ? earlier?.decision.settle(2 * cost) : earlier?.decision.cancel())
        } else taken.push({ key, decision: (await limiter[verb](key, cost, { plan })) as never })
        const story = `round ${round}, ${types.map(([type]) => type)}, step ${step}: ${verb} ${cost} by ${plan}`
        await expectToLive(limiter, key, keyOf(key), story)
      }
    }
  })
})

describe('R11: a key counts until it is idle and is as fresh from then on, when it really expires', () => {
  const SHORT: readonly Numbers[] = [
    [3, '3/20ms', '20ms'],
    [5, '7/60ms', '60ms'],
    [7, '7/200ms', '200ms'],
  ]
  /** Longer than a server of a test stands still. */
  const MOST_MS = 10_000

  /** Asks until it is idle by the server's clock, and a last time then. */
  async function watched(limiter: Any, key: string, idleUs: number): Promise<void> {
    for (;;) {
      const { atMs, limit, remaining, resetAfterMs } = await limiter.peek(key, 0)
      const leftUs = idleUs - Math.round(atMs * 1000)
      expect(resetAfterMs, `${leftUs} us before it is idle`).toBe(Math.max(0, leftUs) / 1000)
      if (leftUs <= 0) return expect(remaining).toBe(limit)
      expect(remaining).toBeLessThan(limit)
    }
  }

  async function isGone(name: string, idleUs: number): Promise<boolean> {
    while ((await redis.send(['EXISTS', name])) !== 0) if ((await serverMs()) > idleUs / 1000 + MOST_MS) return false
    return true
  }

  const idleUs = ({ atMs, resetAfterMs }: { readonly atMs: number; readonly resetAfterMs: number }) =>
    Math.round(atMs * 1000) + Math.round(resetAfterMs * 1000)

  test.each(TYPES)('%s', async (_, of) => {
    for (const [k, first] of SHORT.entries()) {
      for (const last of SHORT) {
        const { limiter, keyOf } = limiterOf((numbers) => of(...numbers), [last, first])
        const key = `${k}:${last[0]}`
        await limiter.consume(key, 2, { plan: '1' })
        const until = idleUs(await limiter.charge(key, 2))
        await watched(limiter, key, until)
        expect(await isGone(keyOf(key), until)).toBe(true)
        expect(await limiter.consume(key, last[0])).toMatchObject({ allowed: true, remaining: 0 })
      }
    }
  })
})
