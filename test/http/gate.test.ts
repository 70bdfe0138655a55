/** What the gate says, where no framework is needed to see it: bad options, failing stores, full queues. */
import { describe, expect, test } from 'vitest'
import { type Entry, Gate } from '../../src/http/gate.ts'
import { createLimiter, gcra, leakyBucket } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const limit = gcra({ rate: '1/s', burst: 3 })
const http = { address: '203.0.113.9', header: (): string | undefined => undefined }
const noConnection = () => undefined

describe('options that are wrong are refused when the middleware is made', () => {
  test.each<[object, string]>([
    [{}, 'limit undefined or `limiter`: one of the two must be given'],
    [{ limit, limiter: createLimiter(limit) }, 'one of the two must be given, and not both'],
    [{ limiter: {} }, 'limiter {} must be made by createLimiter'],
    [{ limit: { burst: 3 } }, "limit 'burst' 3 must be made by a factory"],
    [{ limit, headers: 'draft-8' }, 'headers "draft-8" must be'],
    [{ limit, headers: ['draft-11', 'draft-7'] }, 'headers ["draft-11","draft-7"] must be'],
    [{ limit, headers: ['legacy', 'legacy'] }, 'must be'],
    [{ limit, status: 200 }, 'status 200 must be a whole number from 400 to 599'],
    [{ limit, shadow: 'yes' }, 'shadow "yes" must be true or false'],
    [{ limit, maxWaitMs: -1 }, 'maxWaitMs -1 must be milliseconds'],
    [{ limit, key: 7 }, 'key 7 must be a function such as byIp()'],
    [{ limit, key: { default: 7 } }, 'must be a function such as byIp()'],
    [{ limit, skip: true }, 'skip true must be a function'],
    [{ limit, refundWhen: 'failed' }, 'refundWhen "failed" must be a function'],
    [{ limit, onLimited: {} }, 'onLimited {} must be a function'],
    [{ limit, max: 100 }, 'rateLimit "max" is not an option'],
  ])('%j', (options, message) => {
    expect(() => new Gate(options, noConnection)).toThrow(message)
    expect(() => new Gate(options, noConnection)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
  })
})

describe('a decision that the store had no part in', () => {
  const decision = createLimiter(limit, { clock: fakeClock() }).peek('k')
  const scope = createLimiter(limit).scope()
  let made = 0
  const limiterThat = (answer: object, onStoreError = 'deny') => ({
    name: `degraded-${++made}`,
    onStoreError,
    scope: () => scope,
    consume: () => answer,
  })

  test('admits without headers', () => {
    const entry = new Gate({ limiter: limiterThat({ ...decision, degraded: true }) }, noConnection).enter(undefined, http, undefined)
    expect(entry).toMatchObject({ headers: [], refusal: undefined, gone: false })
  })

  test('refuses with 503, whatever the status of a refusal is', () => {
    const parts = { default: { ...decision.parts.default, outcome: 'limited' } }
    const denied = { ...decision, outcome: 'limited', allowed: false, retryAfterMs: 1_500, degraded: true, parts }
    const entry = new Gate({ limiter: limiterThat(denied), status: 420 }, noConnection).enter(undefined, http, undefined)
    expect(entry).toMatchObject({ refusal: { status: 503, headers: ['retry-after', '2', 'content-type', 'application/problem+json'] } })
    const { refusal } = entry as { refusal: { body: string } }
    expect(JSON.parse(refusal.body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      'violated-policies': ['default'],
    })
  })

  test('is told apart from a refusal by limits of whatever name', () => {
    const limited = { ...decision.parts.default, outcome: 'limited' }
    const denied = { ...decision, outcome: 'limited', allowed: false, retryAfterMs: 1_500 }
    const answers = [
      { ...denied, parts: { reduced: limited, b: limited } },
      { ...denied, parts: { reduced: decision.parts.default, b: limited }, degraded: true },
    ]
    const gate = new Gate({ limiter: { ...limiterThat({}), consume: () => answers.shift() }, headers: 'none' }, noConnection)
    const bodies = [1, 2].map(() => (gate.enter(undefined, http, undefined) as { refusal: { body: string } }).refusal.body)
    expect(bodies.map((body) => JSON.parse(body))).toMatchObject([{ status: 429 }, { status: 503, 'violated-policies': ['b'] }])
  })

  test('refused by the memory of the process it is a refusal like any other', () => {
    const denied = { ...decision, outcome: 'limited', allowed: false, retryAfterMs: 1_500, degraded: true }
    const entry = new Gate({ limiter: limiterThat(denied, 'local'), status: 420 }, noConnection).enter(undefined, http, undefined)
    expect(entry).toMatchObject({ refusal: { status: 420, headers: ['retry-after', '2', 'content-type', 'application/problem+json'] } })
  })

  test('is not refunded', () => {
    const entry = new Gate({ limiter: limiterThat({ ...decision, degraded: true }), refundWhen: () => true }, noConnection).enter(
      undefined,
      http,
      noConnection,
    )
    expect(entry).toMatchObject({ leave: undefined })
  })
})

test('a queue that is full refuses at once', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock, maxQueue: 1 })
  const gate = new Gate({ limiter, maxWaitMs: 10_000 }, noConnection)
  const [first, second, third] = [1, 2, 3].map(() => gate.enter(undefined, http, undefined))
  expect(await first).toMatchObject({ refusal: undefined })
  expect(await third).toMatchObject({ refusal: { status: 429 } })
  clock.advanceMs(1_000)
  expect(await second).toMatchObject({ refusal: undefined })
})

test('a shadow holds nobody up', () => {
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock: fakeClock() })
  const gate = new Gate({ limiter, maxWaitMs: 10_000, shadow: true }, noConnection)
  const entries = [1, 2, 3].map(() => gate.enter(undefined, http, undefined))
  expect(entries).toMatchObject([{ refusal: undefined }, { refusal: undefined }, { refusal: undefined, decision: { allowed: false } }])
})

test('who cannot wait long enough is told when it could', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(leakyBucket({ capacity: 3, leak: '1/s' }), { clock })
  const gate = new Gate({ limiter, maxWaitMs: 1_000 }, noConnection)
  const [first, second, third] = [1, 2, 3].map(() => gate.enter(undefined, http, undefined))
  expect(await first).toMatchObject({ refusal: undefined })
  const { refusal } = (await third) as Entry
  expect(refusal?.headers.slice(4, 6)).toEqual(['retry-after', '1'])
  clock.advanceMs(1_000)
  expect(await second).toMatchObject({ refusal: undefined })
})

test('the policies follow the numbers of the limiter', () => {
  const limiter = createLimiter(limit, { clock: fakeClock() })
  const gate = new Gate({ limiter }, noConnection)
  const policy = () => (gate.enter(undefined, http, undefined) as Entry).headers[1]
  expect(policy()).toBe('"default";q=3;w=3')
  limiter.update(gcra({ rate: '2/s', burst: 20 }))
  expect(policy()).toBe('"default";q=20;w=10')
})

describe('errors of what the user gave', () => {
  const limiterOf = () => createLimiter(limit, { clock: fakeClock() })
  const throwing = () => {
    throw new Error('no cost')
  }
  const rejecting = () => Promise.reject(new Error('no key'))

  /** Rejections that nobody handles end the process: the tests fail of them by themselves, once they have had the time. */
  const settled = () => new Promise((resolve) => setTimeout(resolve, 5))

  test.each<[string, object]>([
    ['a key and a cost', { key: rejecting, cost: throwing }],
    ['a key and a plan', { key: rejecting, plan: throwing }],
    ['a cost and a plan', { cost: rejecting, plan: throwing }],
    ['one key of several', { key: { a: rejecting, b: rejecting, c: throwing } }],
  ])('one is told where several fail: %s', async (_name, options) => {
    const gate = new Gate({ limiter: limiterOf(), ...options }, noConnection)
    expect(() => gate.enter(undefined, http, undefined)).toThrow('no cost')
    await settled()
  })

  test.each([undefined, null, false, 'route'])('whatever is thrown, it is an error: %s', async (thrown) => {
    const told = expect.objectContaining({ code: 'CONFIG', cause: thrown })
    const throws = () => {
      throw thrown
    }
    expect(() => new Gate({ limiter: limiterOf(), key: throws }, noConnection).enter(undefined, http, undefined)).toThrow(told)
    const rejected = new Gate({ limiter: limiterOf(), key: () => Promise.reject(thrown) }, noConnection).enter(undefined, http, undefined)
    await expect(rejected).rejects.toEqual(told)
  })

  test('a body must be known at once', async () => {
    const gate = new Gate({ limiter: limiterOf(), cost: 4, body: rejecting }, noConnection)
    expect(() => gate.enter(undefined, http, undefined)).toThrow('body returned a promise')
    await settled()
  })

  test('refundWhen may take its time', async () => {
    const limiter = limiterOf()
    for (const [refundWhen, remaining] of [
      [async () => false, 2],
      [() => Promise.reject(new Error('no answer')), 1],
      [async () => true, 1],
    ] as const) {
      const gate = new Gate({ limiter, key: 'k', refundWhen }, noConnection)
      const { leave } = gate.enter(undefined, http, undefined) as Entry
      leave?.({ status: 200, aborted: false })
      await settled()
      expect(limiter.peek('k').remaining).toBe(remaining)
    }
  })
})

describe('a client that left', () => {
  const gone = AbortSignal.abort()

  test('while its turn came gives back what it was given', async () => {
    const clock = fakeClock()
    const limiter = createLimiter(limit, { clock })
    const controller = new AbortController()
    const gate = new Gate({ limiter, key: 'k', maxWaitMs: 1_000 }, () => controller.signal)
    const entered = gate.enter(undefined, http, undefined)
    controller.abort()
    expect(await entered).toMatchObject({ gone: true })
    await Promise.resolve()
    expect(limiter.peek('k').remaining).toBe(3)
  })

  test('while its key was looked for is not let in', async () => {
    const outcomes: object[] = []
    const refundWhen = (outcome: object) => outcomes.push(outcome) < 0
    const gate = new Gate({ limiter: createLimiter(limit), key: async () => 'k', refundWhen }, () => gone)
    expect(await gate.enter(undefined, http, undefined)).toMatchObject({ gone: true, refusal: undefined })
    expect(outcomes).toEqual([{ status: 499, aborted: true }])
  })
})

test('limits of their own know nothing of the plans and names of others', () => {
  const limiter = createLimiter({ user: limit, all: limit }, { clock: fakeClock(), plans: { pro: { user: limit, all: limit } } })
  const named = { key: { user: 'ann', all: 'all' }, cost: { user: 1, all: 2 }, plan: () => 'pro' }
  const gate = new Gate({ limiter, ...named, headers: 'draft-6' }, noConnection)
  const own = createLimiter(limit, { clock: fakeClock() })
  expect(gate.with({ limiter: own }).enter(undefined, http, undefined)).toMatchObject({
    decision: { allowed: true, remaining: 2 },
    headers: ['ratelimit-limit', '3', 'ratelimit-remaining', '2', 'ratelimit-reset', '1'],
  })
  expect(gate.with({ limiter: own, key: 'k', cost: 2 }).enter(undefined, http, undefined)).toMatchObject({ decision: { remaining: 1 } })
  expect(gate.with({ cost: { user: 2, all: 0 } }).enter(undefined, http, undefined)).toMatchObject({ decision: { remaining: 1 } })
})
