/** Refusals that are repeated without asking Redis: by the numbers, with times as arguments, and on a real server. */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RULE as OF } from '../../src/algorithms/algorithm.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { createLimiter, fixedWindow, gcra, type Limit, memoryStore, type Step } from '../../src/index.ts'
import { Denials } from '../../src/stores/redis/denials.ts'
import { type RedisSender, type RedisStoreOptions, redisStore } from '../../src/stores/redis/index.ts'
import { Part } from '../../src/stores/step.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

const ruleOf = (limit: Limit) => limit[OF]
const RULE = ruleOf(gcra({ rate: '1/s', burst: 2 }))
const OTHER_RULE = ruleOf(gcra({ rate: '1/s', burst: 3 }))

function stepOf(changes: Partial<Step> & { key?: string; cost?: number; rule?: typeof RULE } = {}): Step {
  const { key = 'k', cost = 1, rule = RULE, ...rest } = changes
  const scope = { name: 'api', limits: [{ name: 'default', rule }] }
  return { op: 'take', scope, parts: [new Part('default', rule, key, cost)], aheadUs: -1, ofUs: -1, nowUs: undefined, ...rest }
}

function refusal(retryUs: number): Verdict {
  return { outcome: 'limited', remaining: 0, retryUs, resetUs: retryUs + 1_000, delayUs: 0, atUs: 500, enteredUs: 500, ticket: undefined }
}

const BOUNDS = { maxUs: 1_000_000, maxKeys: 3 }

/** Sent at 1,000, refused with a wait of 10,000, received at 1,200. */
function learned(bounds = BOUNDS): Denials {
  const denials = new Denials(bounds)
  denials.learn(stepOf(), [refusal(10_000)], 1_000, 1_200, denials.changes)
  return denials
}

describe('a refusal', () => {
  test('holds while now < s + R, and answers r + R - now', () => {
    const denials = learned()
    expect(denials.answer(stepOf(), 1_200)).toMatchObject([{ outcome: 'limited', retryUs: 10_000, resetUs: 11_000, atUs: 500 }])
    expect(denials.answer(stepOf(), 10_999)).toMatchObject([{ outcome: 'limited', retryUs: 201, resetUs: 1_201, atUs: 10_299 }])
    expect(denials.answer(stepOf(), 11_000)).toBeUndefined()
  })

  test('is believed no longer than maxMs', () => {
    const denials = learned({ maxUs: 5_000, maxKeys: 3 })
    expect(denials.answer(stepOf(), 5_999)).toMatchObject([{ retryUs: 5_201 }])
    expect(denials.answer(stepOf(), 6_000)).toBeUndefined()
  })

  test('holds for its cost, its key and its numbers only', () => {
    const denials = learned()
    for (const other of [stepOf({ cost: 2 }), stepOf({ key: 'other' }), stepOf({ rule: OTHER_RULE })]) {
      expect(denials.answer(other, 2_000)).toBeUndefined()
    }
  })

  test('holds for a take only, and never for a time that a test gives', () => {
    const denials = learned()
    for (const changes of [{ op: 'ask' }, { op: 'give' }, { op: 'forget' }, { aheadUs: 0 }, { nowUs: 5 }] as const) {
      expect(denials.answer(stepOf(changes), 2_000)).toBeUndefined()
      const none = new Denials(BOUNDS)
      none.learn(stepOf(changes), [refusal(10_000)], 1_000, 1_200, 0)
      expect(none.answer(stepOf(), 2_000)).toBeUndefined()
    }
  })

  test('whatever is allowed, impossible or over already is not kept', () => {
    const denials = new Denials(BOUNDS)
    denials.learn(stepOf(), [{ ...refusal(0), outcome: 'allowed' }], 1_000, 1_200, 0)
    denials.learn(stepOf(), [{ ...refusal(Number.POSITIVE_INFINITY), outcome: 'impossible' }], 1_000, 1_200, 0)
    denials.learn(stepOf(), [refusal(200)], 1_000, 1_200, 0)
    expect(denials.answer(stepOf(), 1_200)).toBeUndefined()
  })

  test('the oldest goes first when there are too many', () => {
    const denials = learned()
    for (const key of ['a', 'b', 'c']) denials.learn(stepOf({ key }), [refusal(10_000)], 1_000, 1_200, 0)
    const held = ['k', 'a', 'b', 'c'].filter((key) => denials.answer(stepOf({ key }), 2_000) !== undefined)
    expect(held).toEqual(['a', 'b', 'c'])
  })

  test.each(['give', 'forget'] as const)('%s drops it, and what was asked before and is answered after', (op) => {
    const denials = learned()
    const { changes } = denials
    denials.notice(stepOf({ op }))
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    denials.learn(stepOf(), [refusal(10_000)], 1_500, 2_000, changes)
    expect(denials.answer(stepOf(), 2_100)).toBeUndefined()
    denials.learn(stepOf(), [refusal(10_000)], 1_500, 2_000, denials.changes)
    expect(denials.answer(stepOf(), 2_100)).toBeDefined()
  })

  test('however many keys were changed meanwhile', () => {
    const denials = new Denials(BOUNDS)
    const { changes } = denials
    for (const key of ['k', 'a', 'b', 'c', 'd', 'e', 'f']) denials.notice(stepOf({ op: 'give', key }))
    denials.learn(stepOf(), [refusal(10_000)], 1_500, 2_000, changes)
    expect(denials.answer(stepOf(), 2_100)).toBeUndefined()
  })

  test('contact under other numbers drops it for good, also while it is on its way: the state has moved', () => {
    const denials = new Denials(BOUNDS)
    denials.notice(stepOf())
    const { changes } = denials
    denials.learn(stepOf(), [refusal(10_000)], 1_000, 1_200, changes)
    denials.notice(stepOf({ rule: OTHER_RULE }))
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    denials.learn(stepOf(), [refusal(10_000)], 1_000, 1_200, changes)
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    denials.notice(stepOf())
    denials.learn(stepOf(), [refusal(10_000)], 1_000, 1_200, denials.changes)
    expect(denials.answer(stepOf(), 2_000)).toBeDefined()
  })

  test('the numbers of more keys than are held are forgotten, and with them what was refused', () => {
    const denials = new Denials(BOUNDS)
    denials.notice(stepOf())
    denials.notice(stepOf({ key: 'other', rule: OTHER_RULE }))
    const { changes } = denials
    for (const key of ['a', 'b', 'c', 'd']) denials.notice(stepOf({ key, rule: OTHER_RULE }))
    denials.learn(stepOf(), [refusal(10_000)], 1_000, 1_200, changes)
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    denials.notice(stepOf())
    denials.learn(stepOf(), [refusal(10_000)], 1_000, 1_200, denials.changes)
    expect(denials.answer(stepOf(), 2_000)).toBeDefined()
  })

  test('a flood of new keys goes round, the oldest first', () => {
    const denials = new Denials(BOUNDS)
    const keys = Array.from({ length: 50 }, (_, k) => `key ${k}`)
    for (const key of keys) denials.learn(stepOf({ key }), [refusal(10_000)], 1_000, 1_200, 0)
    expect(keys.filter((key) => denials.answer(stepOf({ key }), 2_000) !== undefined)).toEqual(['key 47', 'key 48', 'key 49'])
  })

  test('on random calls and delays it never refuses what the store would have allowed, and never promises too early', () => {
    const call = fc.record({ gapUs: fc.nat(150_000), upUs: fc.nat(30_000), downUs: fc.nat(30_000), cost: fc.integer({ min: 1, max: 2 }) })
    const seen = { local: 0, asked: 0 }
    const property = fc.property(fc.array(call, { minLength: 20, maxLength: 60 }), (calls) => {
      const denials = new Denials({ maxUs: 1_000_000, maxKeys: 10 })
      let nowUs = 1_000_000
      let storeUs = nowUs
      const states = memoryStore().open(stepOf().scope, () => storeUs)
      const decided = (step: Step, atUs: number) => {
        storeUs = atUs
        states.apply(step, true)
        return step.parts.map(({ verdict }) => ({ ...verdict }))
      }
      let isUntouched = true
      for (const { gapUs, upUs, downUs, cost } of calls) {
        nowUs += gapUs
        const step = stepOf({ cost })
        const known = denials.answer(step, nowUs)
        if (known !== undefined) {
          seen.local += 1
          // The same question, put to the store without a trip.
          const [truth] = decided({ ...step, op: 'ask' }, nowUs) as [Verdict]
          expect(truth.outcome).toBe('limited')
          // Another cost that was allowed since makes the wait longer than it was.
          if (isUntouched) expect(known[0]?.retryUs).toBeGreaterThanOrEqual(truth.retryUs)
          continue
        }
        seen.asked += 1
        const { changes } = denials
        const verdicts = decided(step, nowUs + upUs)
        isUntouched = verdicts[0]?.outcome === 'limited'
        denials.learn(step, verdicts, nowUs, nowUs + upUs + downUs, changes)
        nowUs += upUs + downUs
      }
    })
    fc.assert(property, { numRuns: 500, seed: 20_260_417 })
    console.log(`${seen.local} refused without asking, ${seen.asked} asked`)
    expect(Math.min(seen.local, seen.asked)).toBeGreaterThan(1_000)
  })
})

describe('on a real server', () => {
  let redis: TestRedis
  let sent = 0
  const counting: RedisSender = {
    send(args) {
      sent += 1
      return redis.send(args)
    },
  }
  beforeAll(async () => {
    redis = await connectRedis()
  })
  afterAll(() => redis.close())

  const LIMITS = { hourly: gcra({ rate: '2/h', burst: 2 }), daily: fixedWindow({ limit: 100, window: '1d' }) }

  function limiterWith(options: RedisStoreOptions = {}) {
    return createLimiter(gcra({ rate: '2/h', burst: 2 }), {
      name: 'api',
      store: redisStore(counting, { prefix: randomUUID(), ...options }),
    })
  }

  async function callsFor(ask: () => Promise<unknown>): Promise<number> {
    sent = 0
    await ask()
    return sent
  }

  test('a client that keeps knocking costs the server nothing, by any verb that takes', async () => {
    const limiter = limiterWith()
    for (let k = 0; k < 3; k++) await limiter.consume('k')
    expect(
      await callsFor(async () => {
        for (let k = 0; k < 100; k++) {
          const decision = await limiter.consume('k')
          expect(decision).toMatchObject({ outcome: 'limited', limit: 2, remaining: 0, degraded: false })
          expect(decision.retryAfterMs).toBeGreaterThan(1_700_000)
          expect(await limiter.tryAcquire('k')).toBe(false)
        }
      }),
    ).toBe(0)
  })

  test('peek, another cost and another key are asked', async () => {
    const limiter = limiterWith()
    for (let k = 0; k < 3; k++) await limiter.consume('k')
    expect(await callsFor(() => limiter.peek('k'))).toBe(1)
    expect(await callsFor(() => limiter.consume('k', 2))).toBe(1)
    expect(await callsFor(() => limiter.consume('other'))).toBe(1)
  })

  test('a refund, a reset and other numbers are seen at once', async () => {
    const limiter = limiterWith()
    const refused = async () => {
      for (let k = 0; k < 3; k++) await limiter.consume('k')
      expect(await callsFor(() => limiter.consume('k'))).toBe(0)
    }
    await refused()
    await limiter.refund('k')
    expect(await limiter.tryAcquire('k')).toBe(true)
    await refused()
    await limiter.reset('k')
    expect(await limiter.tryAcquire('k')).toBe(true)
    await refused()
    limiter.update(gcra({ rate: '2/h', burst: 5 }))
    expect(await limiter.tryAcquire('k')).toBe(true)
    limiter.update(gcra({ rate: '2/h', burst: 2 }))
    expect(await callsFor(() => limiter.consume('k'))).toBe(1)
  })

  test('a refund on its way together with a refused call leaves nothing behind', async () => {
    const limiter = limiterWith()
    for (let k = 0; k < 2; k++) await limiter.consume('k')
    await Promise.all([limiter.consume('k'), limiter.refund('k')])
    expect(await limiter.tryAcquire('k')).toBe(true)
  })

  test('several limits: the whole decision is repeated', async () => {
    const limiter = createLimiter(LIMITS, { name: 'api', store: redisStore(counting, { prefix: randomUUID() }) })
    for (let k = 0; k < 2; k++) await limiter.consume('k')
    const first = await limiter.consume('k')
    let again = first
    expect(await callsFor(async () => (again = await limiter.consume('k')))).toBe(0)
    expect(again).toMatchObject({
      outcome: 'limited',
      policy: 'hourly',
      parts: { daily: first.parts.daily && { outcome: 'allowed', remaining: 98 } },
    })
    expect(again.retryAfterMs).toBeLessThanOrEqual(first.retryAfterMs)
  })

  test('it can be turned off', async () => {
    const limiter = limiterWith({ denialCache: false })
    for (let k = 0; k < 3; k++) await limiter.consume('k')
    expect(await callsFor(() => limiter.consume('k'))).toBe(1)
  })

  test('what never fits is answered without asking, cache or not', async () => {
    const limiter = limiterWith({ denialCache: false })
    let decision: unknown
    expect(await callsFor(async () => (decision = await limiter.consume('k', 3)))).toBe(0)
    expect(decision).toMatchObject({
      outcome: 'impossible',
      retryAfterMs: Number.POSITIVE_INFINITY,
      limit: 2,
      remaining: 0,
      degraded: false,
    })
  })

  test.each([
    [{ denialCache: true }, /denialCache true must be false or an object/],
    [{ denialCache: { maxMs: 0 } }, /denialCache maxMs 0 must be above 0/],
    [{ denialCache: { maxMs: 60_001 } }, /maxMs 60001/],
    [{ denialCache: { maxKeys: 0.5 } }, /maxKeys 0.5 must be a whole number/],
    [{ denialCache: { max: 1 } }, /max/],
    [{ maxBatch: 0 }, /maxBatch 0 must be a whole number from 1 to 1000/],
    [{ maxBatch: 1.5 }, /maxBatch 1.5/],
  ])('%o is refused', (options, message) => {
    expect(() => redisStore(counting, options as never)).toThrow(message)
  })
})
