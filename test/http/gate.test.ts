/** The gate without a framework: bad options, failing stores, full queues. */
import { createHash } from 'node:crypto'
import { describe, expect, test, vi } from 'vitest'
import type { Entry } from '../../src/http/entry.ts'
import { Gate } from '../../src/http/gate.ts'
import { Hold } from '../../src/http/hold.ts'
import { byHeader, byUser, everyone } from '../../src/http/keys.ts'
import { waitInWords } from '../../src/http/wait-text.ts'
import { concurrency, createLimiter, fixedWindow, gcra, type Limiter, type Limits, leakyBucket } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { sha256 } from '../../src/stores/sha256.ts'
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
    [{ limit, maxQueue: 1.5 }, 'maxQueue 1.5 must be a whole number, 0 or more, or Infinity'],
    [{ limit, key: 7 }, 'key 7 must be a function such as byIp()'],
    [{ limit, key: { default: 7 } }, 'must be a function such as byIp()'],
    [{ limit, key: {} }, 'key {} must be a function such as byIp(), or one for each limit by name'],
    // A text would be one limit for all.
    [
      { limit, key: 'x-api-key' },
      'key "x-api-key" is a text, one limit over all requests: did you mean byHeader(\'x-api-key\'), or everyone?',
    ],
    [{ limit, key: 'ip' }, 'did you mean byIp(), or everyone?'],
    [{ limit, key: 'X-Forwarded-For' }, 'did you mean byIp({ trustProxy: 1 }), or everyone?'],
    [
      { limit, key: 'cf-connecting-ip' },
      "did you mean byIp({ header: 'cf-connecting-ip', from: [/* networks of the proxies that set it */] }), or everyone?",
    ],
    [{ limit, key: everyone() }, 'did you mean everyone?'],
    [{ limit, key: 'all of them' }, 'did you mean everyone?'],
    [{ limit, key: { daily: 'x' } }, 'key "x" is a text, one limit over all requests: did you mean byHeader(\'x\'), or everyone?'],
    [{ limit, skip: true }, 'skip true must be a function'],
    [{ limit, refundWhen: 'failed' }, 'refundWhen "failed" must be a function'],
    [{ limit, settle: 5 }, 'settle 5 must be a function'],
    [{ limit, onLimited: {} }, 'onLimited {} must be a function'],
    [{ limit, limits: 100 }, 'rateLimit "limits" is not an option: it has limit, limiter, '],
    [{ limit, nearLimit: 80 }, 'nearLimit 80 must be above 0 and at most 1'],
    [{ limit, answer: { status: 420 } }, 'answer {"status":420} must be a function'],
    [{ limiter: createLimiter(limit), limiterOptions: { name: 'api' } }, 'limiterOptions {"name":"api"} belong to `limit`'],
    // What people write who come from other libraries.
    [{ windowMs: 60_000, max: 100 }, '"windowMs" is not an option: did you mean limit: fixedWindow({ limit: 100, window: \'60000ms\' })?'],
    [{ windowMs: 900_000, limit: 5 }, '"windowMs" is not an option: did you mean limit: fixedWindow({ limit: 5, window: \'900000ms\' })?'],
    [{ windowMs: 900_000, limit: () => 5 }, "fixedWindow({ limit: 100, window: '900000ms' })?"],
    [{ max: 7, timeWindow: '1 minute' }, '"timeWindow" is not an option: did you mean limit: fixedWindow({ limit: 7, window: \'1min\' })?'],
    [{ ttl: 60_000, limit: 10 }, '"ttl" is not an option: did you mean limit: fixedWindow({ limit: 10, window: \'60000ms\' })?'],
    [{ points: 6, duration: 1 }, '"duration" is not an option: did you mean limit: fixedWindow({ limit: 6, window: \'1s\' })?'],
    [{ max: 7, timeWindow: '15 minutes' }, "fixedWindow({ limit: 7, window: '15min' })?"],
    [{ points: 5, duration: 3600 }, "fixedWindow({ limit: 5, window: '3600s' })?"],
    [{ max: 7, timeWindow: 'soon' }, "fixedWindow({ limit: 7, window: '1min' })?"],
    [{ max: 9 }, '"max" is not an option: did you mean limit: fixedWindow({ limit: 9, window: \'1min\' })?'],
    [{ limit, keyGenerator: () => 'k' }, '"keyGenerator" is not an option: did you mean key?'],
    [{ limit, skipSuccessfulRequests: true }, 'did you mean refundWhen: ({ status }) => status < 400?'],
    [{ limit, store: {} }, 'did you mean limiterOptions: { store }?'],
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
    expect(entry).toMatchObject({
      refusal: { status: 503, headers: ['retry-after', '2', 'cache-control', 'no-store', 'content-type', 'application/problem+json'] },
    })
    const { refusal } = entry as { refusal: { body: string } }
    expect(JSON.parse(refusal.body)).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      title: 'Request cannot be satisfied due to temporary server capacity constraints',
      status: 503,
      detail: 'Service unavailable. Please try again in 2 seconds.',
      'violated-policies': ['default'],
      retryAfterMs: 1_500,
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
    expect(entry).toMatchObject({
      refusal: { status: 420, headers: ['retry-after', '2', 'cache-control', 'no-store', 'content-type', 'application/problem+json'] },
    })
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

describe('a limit that admits nothing', () => {
  const none = { paused: gcra({ rate: '1/s', burst: 0 }), pace: fixedWindow({ limit: 2, window: '20s' }) }

  test.each([undefined, 10_000])('refuses without a time, with maxWaitMs %s too', async (maxWaitMs) => {
    const limiter = createLimiter(none, { clock: fakeClock() })
    const { refusal } = await new Gate({ limiter, ...(maxWaitMs === undefined ? {} : { maxWaitMs }) }, noConnection).enter(
      undefined,
      http,
      undefined,
    )
    const { status, headers = [], body } = refusal ?? {}
    expect(status).toBe(429)
    expect(headers).toEqual([
      'ratelimit-policy',
      '"paused";q=0;w=1,"pace";q=2;w=20',
      'ratelimit',
      '"paused";r=0;t=0,"pace";r=2;t=0',
      ...['cache-control', 'no-store', 'content-type', 'application/problem+json'],
    ])
    expect(body).not.toMatch(/retryAfterMs|Infinity|NaN/)
    expect(limiter.waiting()).toBe(0)
  })

  test('is nothing to a request that costs none of it, and not near its end', async () => {
    const near: string[] = []
    const limiter = createLimiter(none, { clock: fakeClock() })
    const cost = () => ({ paused: 0, pace: 1 })
    const gate = new Gate({ limiter, cost, maxWaitMs: 60_000, onNearLimit: () => near.push('near') }, noConnection)
    expect(await gate.enter(undefined, http, undefined)).toMatchObject({ refusal: undefined })
    expect(near).toEqual([])
    expect(await gate.enter(undefined, http, undefined)).toMatchObject({ refusal: undefined })
    expect(near).toEqual(['near'])
  })
})

describe('how many may wait', () => {
  const held = async (limiter: Limiter<Limits>, options: object, requests: number, keyOf: (k: number) => string = () => 'k') => {
    let k = 0
    const gate = new Gate({ limiter, key: () => keyOf(k++), ...options }, noConnection)
    const entries = Array.from({ length: requests }, () => gate.enter(undefined, http, undefined) as Promise<Entry>)
    for (const entry of entries) entry.catch(() => undefined)
    // A refused request is told at once, or by a timer that is due at once.
    clock.advanceMs(0)
    await new Promise((resolve) => setImmediate(resolve))
    const waiting = limiter.waiting()
    limiter.close()
    return waiting
  }
  const clock = fakeClock()
  const window = (limit: number) => createLimiter(fixedWindow({ limit, window: '20s' }), { clock }) as Limiter<Limits>

  test('is what the gate was told', async () => {
    expect(await held(window(1), { maxWaitMs: 30_000, maxQueue: 3 }, 100)).toBe(3)
    expect(await held(window(1), { maxWaitMs: 30_000, maxQueue: 0 }, 100)).toBe(0)
  })

  test('else as many as the limits let in within the time, ten at least and 10,000 at most', async () => {
    expect(await held(window(1), { maxWaitMs: 30_000 }, 100)).toBeLessThanOrEqual(10)
    expect(await held(window(50), { maxWaitMs: 30_000 }, 1_000)).toBeLessThanOrEqual(100)
    expect(await held(window(6_000), { maxWaitMs: 60_000 }, 17_000)).toBeLessThanOrEqual(10_000)
  })

  test('of a limiter with a bound of its own, is the smaller of the two', async () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '20s' }), { clock, maxQueue: 2 }) as Limiter<Limits>
    expect(await held(limiter, { maxWaitMs: 30_000 }, 100)).toBe(2)
  })

  test('is bounded for all keys together', async () => {
    // Of each key the first is let in, but only after all have come: until then it has a place too.
    expect(await held(window(1), { maxWaitMs: 300_000, maxQueue: 10 }, 12_500, (k) => `key-${k % 1_250}`)).toBe(10_000 - 1_250)
  })
})

describe('keys', () => {
  const keysOf = (key: unknown) => {
    const keys: unknown[] = []
    const limiter = createLimiter(limit, { onDecision: (event) => keys.push(event.key), clock: fakeClock() })
    const gate = new Gate({ limiter, key }, noConnection)
    return { keys, enter: (request: unknown = undefined) => gate.enter(request, http, undefined) }
  }

  test('of up to 128 characters are kept as they are, longer ones as digests', () => {
    const { keys, enter } = keysOf((request: string) => request)
    const long = 'x'.repeat(129)
    for (const request of ['a', 'x'.repeat(128), long, `${long}y`, 'x'.repeat(100_000)]) enter(request)
    expect(keys.slice(0, 2)).toEqual(['a', 'x'.repeat(128)])
    expect(keys[2]).toBe(`sha256:${createHash('sha256').update(long, 'utf16le').digest('hex')}`)
    expect(new Set(keys).size).toBe(5)
  })

  test('that look like the digest of another are not that other', () => {
    const { keys, enter } = keysOf((request: string) => request)
    enter('x'.repeat(129))
    enter(keys[0])
    expect(keys[1]).not.toBe(keys[0])
    expect(keys[1]).toMatch(/^sha256:[0-9a-f]{64}$/)
  })

  test('of headers, of users, of several limits and promised ones are bounded too', async () => {
    const long = 'k'.repeat(2_000)
    const headers = { ...http, header: () => long }
    const keys: unknown[] = []
    const onDecision = (event: { key: unknown }) => keys.push(event.key)
    const entered = (key: unknown, limits: Limits = limit) =>
      new Gate({ limiter: createLimiter(limits, { onDecision }), key }, noConnection).enter(undefined, headers, undefined)
    entered(byHeader('x-api-key'))
    entered(byUser(() => long))
    await entered(async () => long)
    entered({ a: () => long, b: () => 'all' }, { a: limit, b: limit })
    entered(() => ({ a: long, b: 'all' }), { a: limit, b: limit })
    const digest = expect.stringMatching(/^sha256:[0-9a-f]{64}$/)
    expect(keys).toEqual([digest, digest, digest, { a: digest, b: 'all' }, { a: digest, b: 'all' }])
    expect(new Set(keys.slice(0, 3)).size).toBe(3)
  })

  test('that are none are errors as before', () => {
    for (const none of ['', 7, null, undefined]) expect(keysOf(() => none).enter).toThrow(expect.objectContaining({ code: 'KEY' }))
  })
})

test('the digest is SHA-256, at every length around its blocks', () => {
  for (let length = 0; length < 200; length++) {
    const text = Array.from({ length }, (_, k) => String.fromCharCode((k * 7_919 + length * 31) % 65_536)).join('')
    expect(sha256(text)).toBe(createHash('sha256').update(text, 'utf16le').digest('hex'))
  }
})

describe('numbers that are found from the request', () => {
  const clock = fakeClock()
  const gateOf = (options: object = {}) =>
    new Gate<number>(
      { limit: (burst: number) => gcra({ rate: '1/h', burst }), limiterOptions: { clock }, key: () => 'k', ...options },
      noConnection,
    )
  const remaining = (gate: Gate<number>, burst: number) => (gate.enter(burst, http, undefined) as Entry).decision?.remaining

  test('take from one state, however many there are', () => {
    const gate = gateOf()
    for (let burst = 3_000; burst < 5_500; burst++) expect(remaining(gate, burst)).toBe(2_999)
    expect(remaining(gate, 3_000)).toBe(499)
  })

  test('are shared by a gate with other choices', () => {
    const gate = gateOf()
    expect(remaining(gate, 9)).toBe(8)
    expect(remaining(gate.with({ cost: 3 }), 9)).toBe(5)
    expect(remaining(gate.with({ limit: gcra({ rate: '1/h', burst: 9 }) }), 9)).toBe(8)
  })

  test('are not forgotten while requests wait by them', async () => {
    const gate = gateOf({ maxWaitMs: 3_600_000, key: (burst: number) => `k${burst}` })
    await gate.enter(1, http, undefined)
    const held = gate.enter(1, http, undefined) as Promise<Entry>
    for (let burst = 2; burst < 1_500; burst++) await gate.enter(burst, http, undefined)
    clock.advanceMs(3_600_000)
    expect(await held).toMatchObject({ refusal: undefined, decision: { allowed: true } })
  })

  test.each([undefined, null, 5])('must be a limit, not %s', async (none) => {
    const told = expect.objectContaining({
      code: 'CONFIG',
      message: expect.stringContaining(`limit returned ${none}: it must return a limit`),
    })
    expect(() => new Gate({ limit: () => none }, noConnection).enter(undefined, http, undefined)).toThrow(told)
    await expect(new Gate({ limit: async () => none }, noConnection).enter(undefined, http, undefined)).rejects.toEqual(told)
  })

  test('that are none of ours are refused as createLimiter refuses them', () => {
    const gate = new Gate({ limit: () => ({ points: 5, duration: 1 }) }, noConnection)
    expect(() => gate.enter(undefined, http, undefined)).toThrow("Did you mean fixedWindow({ limit: 100, window: '1min' })?")
  })
})

describe('an answer of the user’s own', () => {
  const refusalOf = async (answer: unknown) => {
    const gate = new Gate({ limiter: createLimiter(limit, { clock: fakeClock() }), cost: 4, answer }, noConnection)
    return ((await gate.enter(undefined, http, undefined)) as Entry).refusal
  }

  test('is told what would be answered', async () => {
    const answer = vi.fn()
    const usual = await refusalOf(answer)
    expect(answer).toHaveBeenCalledWith(undefined, expect.objectContaining({ outcome: 'impossible' }), usual)
    expect(JSON.parse(usual?.body as string)).toMatchObject({
      detail: 'Too many requests. This request asks for more than is ever allowed at once, so waiting does not help.',
    })
    expect(usual?.headers).not.toContain('retry-after')
  })

  test.each([
    [{ status: 99 }, 'status 99 must be a whole number from 200 to 599'],
    ['sorry', 'answer returned "sorry": it must return { status, headers, body }'],
    [null, 'answer returned null: it must return'],
  ])('is refused if it is none: %j', async (answer, message) => {
    await expect(refusalOf(async () => answer)).rejects.toThrow(message)
  })
})

test.each([
  [400, '1 second'],
  [1_000, '1 second'],
  [1_001, '2 seconds'],
  [120_000, '120 seconds'],
  [120_001, '3 minutes'],
  [7_200_000, '120 minutes'],
  [7_200_001, '3 hours'],
  [172_800_001, '3 days'],
])('a wait of %d ms is told as %s', (ms, words) => {
  expect(waitInWords(ms)).toBe(`Please try again in ${words}.`)
})

test('a shadow holds nobody up', () => {
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock: fakeClock() })
  const gate = new Gate({ limiter, maxWaitMs: 10_000, shadow: true }, noConnection)
  const entries = [1, 2, 3].map(() => gate.enter(undefined, http, undefined))
  expect(entries).toMatchObject([{ refusal: undefined }, { refusal: undefined }, { refusal: undefined, decision: { allowed: false } }])
})

test('a request that cannot wait long enough is told when it could pass', async () => {
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

  /**
   * Rejections that nobody handles end the process: the tests fail of them by themselves, once they
   * have had the time.
   */
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

  test.each([undefined, null, false, 'route'])('any thrown value becomes an error: %s', async (thrown) => {
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
      const gate = new Gate({ limiter, key: () => 'k', refundWhen }, noConnection)
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
    const gate = new Gate({ limiter, key: () => 'k', maxWaitMs: 1_000 }, () => controller.signal)
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

describe('a place among those that run at once', () => {
  test('is given back when the request does not come to its handler because a function fails', () => {
    const limiter = createLimiter(concurrency({ max: 1 }))
    const partitionKey = () => {
      throw new Error('no partition')
    }
    const gate = new Gate({ limiter, key: () => 'k', partitionKey }, noConnection)
    expect(() => gate.enter(undefined, http, undefined)).toThrow('no partition')
    expect(limiter.inflight()).toBe(0)
  })

  test('is given back when the client left while its turn came, also if the store had no part in it', async () => {
    const store = asyncStore({ shared: true, apply: () => Promise.reject(new Error('down')) })
    const limiter = createLimiter(concurrency({ max: 1, lease: '30s' }), { name: 'held', store, onStoreError: 'allow' })
    const controller = new AbortController()
    // The client leaves in the turn in which its request got a place.
    const acquire = async (...asked: Parameters<typeof limiter.acquire>) => {
      const permit = await limiter.acquire(...asked)
      controller.abort()
      return permit
    }
    const leaving = {
      name: 'held',
      store,
      onStoreError: 'allow',
      scope: () => limiter.scope(),
      waiting: () => 0,
      consume: acquire,
      acquire,
    }
    const gate = new Gate({ limiter: leaving, key: () => 'k', maxWaitMs: 1_000 }, () => controller.signal)
    expect(await gate.enter(undefined, http, undefined)).toMatchObject({ gone: true })
    expect(limiter.inflight()).toBe(0)
    limiter.close()
  })

  test('is kept for longer than a timer can be set for', () => {
    vi.useFakeTimers()
    try {
      const limiter = createLimiter(concurrency({ max: 1 }), { clock: fakeClock() })
      const hold = new Hold(limiter.consume('k'), 30 * 86_400_000)
      hold.handledBy(new Promise(() => {}))
      hold.answered({ status: 200, aborted: false })
      vi.advanceTimersByTime(86_400_000)
      expect(limiter.inflight()).toBe(1)
    } finally {
      vi.useRealTimers()
    }
  })
})

test('limits of their own know nothing of the plans and names of others', () => {
  const limiter = createLimiter({ user: limit, all: limit }, { clock: fakeClock(), plans: { pro: { user: limit, all: limit } } })
  const named = { key: { user: () => 'ann', all: () => 'all' }, cost: { user: 1, all: 2 }, plan: () => 'pro' }
  const gate = new Gate({ limiter, ...named, headers: 'draft-6' }, noConnection)
  const own = createLimiter(limit, { clock: fakeClock() })
  expect(gate.with({ limiter: own }).enter(undefined, http, undefined)).toMatchObject({
    decision: { allowed: true, remaining: 2 },
    headers: ['ratelimit-limit', '3', 'ratelimit-remaining', '2', 'ratelimit-reset', '1'],
  })
  expect(gate.with({ limiter: own, key: () => 'k', cost: 2 }).enter(undefined, http, undefined)).toMatchObject({
    decision: { remaining: 1 },
  })
  expect(gate.with({ cost: { user: 2, all: 0 } }).enter(undefined, http, undefined)).toMatchObject({ decision: { remaining: 1 } })
})
