/**
 * Refusals that are repeated without asking Redis: by the numbers, with times as arguments, and on
 * a real server.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RULE as OF } from '../../src/algorithms/algorithm.ts'
import type { Verdict } from '../../src/algorithms/decide.ts'
import { createLimiter, fixedWindow, gcra, type Limit, memoryStore, tokenBucket } from '../../src/index.ts'
import { type RedisSender, type RedisStoreOptions, redisStore } from '../../src/stores/redis/index.ts'
import { DenialCache, Denials, type Sent } from '../../src/stores/remote/denials.ts'
import { Part, Step } from '../../src/stores/step.ts'
import { Opened } from '../support/opened.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

const ruleOf = (limit: Limit) => limit[OF]
const RULE = ruleOf(gcra({ rate: '1/s', burst: 2 }))
const QUICK_RULE = ruleOf(gcra({ rate: '20/s', burst: 3 }))
const OTHER_RULE = ruleOf(gcra({ rate: '1/s', burst: 3 }))

function stepOf(changes: Partial<Step> & { key?: string; cost?: number; rule?: typeof RULE } = {}): Step {
  const { key = 'k', cost = 1, rule = RULE, ...rest } = changes
  const scope = { name: 'api', limits: [{ name: 'default', rule }] }
  return Object.assign(new Step('take', scope, [new Part('default', rule, key, cost)], -1, -1, undefined), rest)
}

function refusal(retryUs: number): Verdict {
  return { outcome: 'limited', remaining: 0, retryUs, resetUs: retryUs + 1_000, delayUs: 0, atUs: 500, enteredUs: 500 }
}

/**
 * A store of many connections: it decides in another order than it was asked in, and answers in yet
 * another.
 */
class TimedStore {
  readonly #events: { readonly atUs: number; run(): void }[] = []
  /** What it decided, in that order, and whether that was answered. */
  readonly #decided: { readonly step: Step; readonly atUs: number; isAnswered: boolean }[] = []

  send(step: Step, decidedUs: number, answeredUs: number, onVerdicts: (verdicts: readonly Verdict[], receivedUs: number) => void): void {
    const decide = () => {
      const entry = { step, atUs: decidedUs, isAnswered: false }
      this.#decided.push(entry)
      const verdicts = played(this.#decided)
      const answer = () => {
        entry.isAnswered = true
        onVerdicts(verdicts, answeredUs)
      }
      this.#add(answeredUs, answer)
    }
    this.#add(decidedUs, decide)
  }

  /** Lets everything happen that is due. */
  runUntil(nowUs: number): void {
    while ((this.#events[0]?.atUs ?? Number.POSITIVE_INFINITY) <= nowUs) this.#events.shift()?.run()
  }

  /**
   * Whether it refuses this now, with no longer a wait, at a place behind all that it has answered:
   * what is under way may come before or after.
   */
  couldRefuse(step: Step, nowUs: number, retryUs: number): boolean {
    const ofKey = this.#decided.filter((decided) => decided.step.parts[0]?.key === step.parts[0]?.key)
    const asked = { step: { ...step, op: 'ask' as const }, atUs: nowUs }
    for (let count = ofKey.findLastIndex(({ isAnswered }) => isAnswered) + 1; count <= ofKey.length; count++) {
      const [verdict] = played([...ofKey.slice(0, count), asked])
      if (verdict?.outcome === 'limited' && verdict.retryUs <= retryUs) return true
    }
    return false
  }

  #add(atUs: number, run: () => void): void {
    const place = this.#events.findIndex((event) => event.atUs > atUs)
    this.#events.splice(place < 0 ? this.#events.length : place, 0, { atUs, run })
  }
}

/** What the last of some steps is answered. */
function played(steps: readonly { readonly step: Step; readonly atUs: number }[]): Verdict[] {
  const memory = new Opened(memoryStore())
  let verdicts: readonly Verdict[] = []
  for (const { step, atUs } of steps) verdicts = memory.apply(step, atUs)
  return [...verdicts]
}

const BOUNDS = { maxUs: 1_000_000, maxKeys: 3 }

/** How many batches have left: each step here is one. */
let batches = 0

function send(denials: Denials, step = stepOf(), atUs = 1_000): Sent {
  denials.asked(step)
  batches += 1
  return { number: batches, atUs }
}

/** Sent, and answered before anything else is. */
function refuse(denials: Denials, step = stepOf(), verdict = refusal(10_000)): void {
  denials.refused(step, [verdict], send(denials, step), batches, 1_200)
}

/** Sent at 1,000, refused with a wait of 10,000, received at 1,200. */
function learned(bounds = BOUNDS): Denials {
  const denials = new Denials(bounds)
  refuse(denials)
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
      refuse(none, stepOf(changes))
      expect(none.answer(stepOf(), 2_000)).toBeUndefined()
    }
  })

  test('of another limit of the same numbers, or of another algorithm, is not taken for it', () => {
    const limitsOf = (name: string, rule: typeof RULE) => stepOf({ parts: [new Part(name, rule, 'k', 1)] })
    const bucket = ruleOf(tokenBucket({ refill: '1/s', capacity: 2 }))
    expect(bucket.numbers).toBe(RULE.numbers)
    const denials = learned()
    expect(denials.answer(limitsOf('other', RULE), 2_000)).toBeUndefined()
    expect(denials.answer(limitsOf('default', bucket), 2_000)).toBeUndefined()
    expect(denials.answer(limitsOf('default', ruleOf(gcra({ rate: '1/s', burst: 2 }))), 2_000)).toBeDefined()
  })

  test('that is impossible or over already is not kept', () => {
    const denials = new Denials(BOUNDS)
    refuse(denials, stepOf(), { ...refusal(Number.POSITIVE_INFINITY), outcome: 'impossible' })
    refuse(denials, stepOf(), refusal(200))
    expect(denials.answer(stepOf(), 1_200)).toBeUndefined()
  })

  test('the oldest goes first when there are too many', () => {
    const denials = learned()
    for (const key of ['a', 'b', 'c']) refuse(denials, stepOf({ key }))
    const held = ['k', 'a', 'b', 'c'].filter((key) => denials.answer(stepOf({ key }), 2_000) !== undefined)
    expect(held).toEqual(['a', 'b', 'c'])
  })

  test.each(['give', 'forget'] as const)('%s drops it when it is sent, and again when it is answered', (op) => {
    const denials = learned()
    send(denials, stepOf({ op }))
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    // A store of many connections may have decided it before what gives back.
    refuse(denials)
    denials.granted(stepOf({ op }), batches)
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
  })

  test.each([
    ['a refund', { op: 'give' }],
    ['a reset', { op: 'forget' }],
    ['a charge under other numbers', { rule: OTHER_RULE }],
    ['a reservation', { aheadUs: 1_000 }],
  ] as const)('%s that was granted drops it, and what was under way then', (_, changes) => {
    const denials = new Denials(BOUNDS)
    send(denials, stepOf(changes))
    const sent = send(denials)
    refuse(denials)
    denials.granted(stepOf(changes), batches)
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    denials.refused(stepOf(), [refusal(10_000)], sent, batches, 1_200)
    expect(denials.answer(stepOf(), 2_000)).toBeUndefined()
    refuse(denials)
    expect(denials.answer(stepOf(), 2_000)).toBeDefined()
  })

  test('is kept though another key was granted meanwhile, or something was asked', () => {
    const denials = new Denials(BOUNDS)
    const sent = send(denials)
    for (const changes of [{ op: 'ask' }, { key: 'other' }] as const) denials.granted(stepOf(changes), batches)
    denials.refused(stepOf(), [refusal(10_000)], sent, batches, 1_200)
    expect(denials.answer(stepOf(), 2_000)).toBeDefined()
  })

  test('of several keys drops those of each: some may have been charged for a moment', () => {
    const denials = new Denials(BOUNDS)
    for (const key of ['a', 'b']) refuse(denials, stepOf({ key }))
    refuse(denials, stepOf({ parts: ['a', 'c'].map((key) => new Part('default', RULE, key, 1)) }))
    expect(['a', 'b', 'c'].map((key) => denials.answer(stepOf({ key }), 2_000) !== undefined)).toEqual([false, true, false])
  })

  test('a flood of new keys goes round, the oldest first', () => {
    const denials = new Denials(BOUNDS)
    const keys = Array.from({ length: 50 }, (_, k) => `key ${k}`)
    for (const key of keys) refuse(denials, stepOf({ key }))
    expect(keys.filter((key) => denials.answer(stepOf({ key }), 2_000) !== undefined)).toEqual(['key 47', 'key 48', 'key 49'])
  })

  // Calls of all kinds and under several sets of numbers are under way together.
  test('on random calls and delays it never refuses what the store would have allowed, and never promises too early', () => {
    const call = fc.record({
      gapUs: fc.nat(50_000),
      upUs: fc.nat(40_000),
      downUs: fc.nat(40_000),
      key: fc.constantFrom('a', 'b'),
      cost: fc.integer({ min: 1, max: 2 }),
      plan: fc.constantFrom('slow', 'slow', 'slow', 'slow', 'quick' as const),
      op: fc.constantFrom(...new Array(10).fill('take'), 'give', 'forget'),
    })
    const seen = { local: 0, asked: 0 }
    const property = fc.property(fc.array(call, { minLength: 20, maxLength: 60 }), (calls) => {
      const denials = new Denials({ maxUs: 1_000_000, maxKeys: 10 })
      const store = new TimedStore()
      let nowUs = 1_000_000
      for (const { gapUs, upUs, downUs, plan, ...rest } of calls) {
        nowUs += gapUs
        store.runUntil(nowUs)
        const step = stepOf({ ...(rest as Parameters<typeof stepOf>[0]), rule: plan === 'slow' ? RULE : QUICK_RULE })
        const known = denials.answer(step, nowUs)
        if (known !== undefined) {
          seen.local += 1
          expect(store.couldRefuse(step, nowUs, known[0]?.retryUs as number)).toBe(true)
          continue
        }
        seen.asked += 1
        const sent = send(denials, step, nowUs)
        store.send(step, nowUs + upUs, nowUs + upUs + downUs, (verdicts, receivedUs) => {
          if (verdicts.every(({ outcome }) => outcome === 'allowed')) denials.granted(step, batches)
          else denials.refused(step, verdicts, sent, batches, receivedUs)
        })
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
          expect((await limiter.consume('k')).allowed).toBe(false)
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
    expect((await limiter.consume('k')).allowed).toBe(true)
    await refused()
    await limiter.reset('k')
    expect((await limiter.consume('k')).allowed).toBe(true)
    await refused()
    limiter.update(gcra({ rate: '2/h', burst: 5 }))
    expect((await limiter.consume('k')).allowed).toBe(true)
    limiter.update(gcra({ rate: '2/h', burst: 2 }))
    expect(await callsFor(() => limiter.consume('k'))).toBe(1)
  })

  test('a refund on its way together with a refused call leaves nothing behind', async () => {
    const limiter = limiterWith()
    for (let k = 0; k < 2; k++) await limiter.consume('k')
    await Promise.all([limiter.consume('k'), limiter.refund('k')])
    expect((await limiter.consume('k')).allowed).toBe(true)
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

  test('another limit of the same numbers is asked, also under the same name', async () => {
    const store = redisStore(counting, { prefix: randomUUID() })
    const limit = gcra({ rate: '2/h', burst: 1 })
    const [one, other] = [createLimiter({ one: limit }, { name: 'api', store }), createLimiter({ other: limit }, { name: 'api', store })]
    expect([(await one.consume('k')).allowed, (await one.consume('k')).allowed, (await other.consume('k')).allowed]).toEqual([
      true,
      false,
      true,
    ])
  })

  test('it can be turned off', async () => {
    const limiter = limiterWith({ denialCache: false })
    for (let k = 0; k < 3; k++) await limiter.consume('k')
    expect(await callsFor(() => limiter.consume('k'))).toBe(1)
  })

  test('a cost that never fits is answered without asking, cache or not', async () => {
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

test('a limiter that is opened anew keeps no refusal of a batch that left before', () => {
  const cache = new DenialCache({ maxUs: 1_000_000, maxKeys: 3 })
  const step = stepOf()
  cache.open(step.scope)
  const sent = cache.sending()
  cache.release(step.scope)
  // Meanwhile the key may have been reset.
  cache.open(step.scope)
  cache.answered(step, [refusal(1_000_000)], sent)
  expect(cache.known(step)).toBeUndefined()
})
