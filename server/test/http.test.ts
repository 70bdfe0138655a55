/** The HTTP side over real sockets. Time is the test's. */
import { once } from 'node:events'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../src/config/read.ts'
import { MAX_BODY_BYTES } from '../src/http/body.ts'
import { ROUTES } from '../src/http/routes.ts'
import { permitText } from '../src/running/permit-text.ts'
import { redisStore } from '../src/sluice.ts'
import { Tokens, tokensFrom } from '../src/tokens.ts'
import { call, checked, expectAllSeen, expectHostGuarded, OTHER_PATHS, type Reply } from './support/client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

let service: TestService

beforeEach(async () => {
  service = await serviceOn()
})

afterEach(async () => {
  await service.stop(0)
  expectNoFailure(service)
})

const decide = (body: unknown): Promise<Reply> => call(service.url, 'POST', '/v1/decide', body)
const acquire = (body: unknown, options?: RequestInit): Promise<Reply> => call(service.url, 'POST', '/v1/acquire', body, options)
const get = (path: string): Promise<Reply> => call(service.url, 'GET', path)
const ask = { limiter: 'api', key: 'u1' }
/** Of a decision that took one, 3 were used. */
const settlement = { ...ask, actual: 3, of: { atMs: 1_000_000, parts: { default: { resetAfterMs: 1000 } } } }

/** Of a place that nobody holds. */
const permit = permitText({
  limiter: 'held',
  lent: { plan: undefined, loans: [{ limit: 'default', key: 'u1', cost: 1, token: 5, degraded: false }] },
})

/** Everything that a caller could have changed. */
async function remaining(): Promise<number[]> {
  const keys = ['api/keys/u1', 'two/keys/u1', 'shaped/keys/u1', 'quiet/keys/u1']
  return Promise.all(keys.map(async (key) => (await get(`/v1/limiters/${key}?cost=0`)).body.remaining))
}

describe('decide', () => {
  test('takes until the limit is reached, and says when there will be more', async () => {
    for (const left of [2, 1, 0]) expect((await decide(ask)).body).toMatchObject({ allowed: true, outcome: 'allowed', remaining: left })
    expect(await decide(ask)).toMatchObject({
      status: 200,
      body: { allowed: false, outcome: 'limited', retryAfterMs: 1000, policy: 'default' },
    })
    service.clock.advanceMs(1000)
    expect((await decide(ask)).body.allowed).toBe(true)
  })

  test('a cost that can never fit is impossible, and never is null', async () => {
    expect((await decide({ ...ask, cost: 4 })).body).toMatchObject({ outcome: 'impossible', retryAfterMs: null })
  })

  test('goes by a plan', async () => {
    expect((await decide({ ...ask, cost: 20, plan: 'pro' })).body).toMatchObject({ allowed: true, limit: 30, remaining: 10 })
  })

  test('several limits are one decision, with a key and a cost for each', async () => {
    const body = { limiter: 'two', key: { requests: 'u1', tokens: 't1' }, cost: { requests: 1, tokens: 80 } }
    expect((await decide(body)).body).toMatchObject({ allowed: true, parts: { requests: { remaining: 4 }, tokens: { remaining: 20 } } })
    expect((await decide(body)).body).toMatchObject({ allowed: false, policy: 'tokens', parts: { requests: { remaining: 4 } } })
  })

  test('peek takes nothing, reserve takes ahead, refund gives back', async () => {
    await decide({ ...ask, cost: 3 })
    expect((await decide({ ...ask, verb: 'peek' })).body).toMatchObject({ allowed: false, remaining: 0 })
    expect((await decide({ ...ask, verb: 'reserve', maxWaitMs: 999 })).body.allowed).toBe(false)
    expect((await decide({ ...ask, verb: 'reserve', maxWaitMs: 1000 })).body).toMatchObject({ allowed: true, delayMs: 1000 })
    expect((await decide({ ...ask, verb: 'refund', cost: 2 })).body).toEqual({ limiter: 'api', refunded: true })
    expect((await decide(ask)).body.allowed).toBe(true)
  })

  test('many in one call are answered in their order', async () => {
    const { body } = await decide({ decisions: [...Array(4).fill(ask), { limiter: 'two', key: 'u1' }, { ...ask, verb: 'refund' }] })
    expect(body.decisions.map(({ allowed }: { allowed?: boolean }) => allowed)).toEqual([true, true, true, false, true, undefined])
  })

  test('in shadow all are let through, and what the limits said is told', async () => {
    const quiet = { limiter: 'quiet', key: 'u1' }
    expect((await decide(quiet)).body).toMatchObject({ allowed: true, outcome: 'allowed', shadow: true })
    expect((await decide(quiet)).body).toMatchObject({ allowed: true, outcome: 'limited', shadow: true })
    expect((await acquire(quiet)).body).toMatchObject({ allowed: true, outcome: 'limited', waitedMs: 0 })
  })
})

describe('charge', () => {
  const charge = (body: unknown) => call(service.url, 'POST', '/v1/charge', body)

  test('is written down whether it fits or not, and the key is limited until the debt has drained', async () => {
    expect((await charge({ ...ask, cost: 2 })).body).toMatchObject({ allowed: true, outcome: 'allowed', remaining: 1, retryAfterMs: 0 })
    expect(await charge({ ...ask, cost: 11 })).toMatchObject({
      status: 200,
      body: { allowed: false, outcome: 'limited', remaining: 0, retryAfterMs: 11_000, resetAfterMs: 13_000 },
    })
    service.clock.advanceMs(10_999)
    expect((await decide(ask)).body).toMatchObject({ allowed: false, retryAfterMs: 1 })
    service.clock.advanceMs(1)
    expect((await decide(ask)).body.allowed).toBe(true)
  })

  test('takes a cost for each limit, and a plan', async () => {
    const cost = { requests: 1, tokens: 250 }
    expect((await charge({ limiter: 'two', key: 'u1', cost })).body).toMatchObject({
      policy: 'tokens',
      parts: { requests: { remaining: 4 }, tokens: { outcome: 'limited' } },
    })
    expect((await charge({ ...ask, cost: 10, plan: 'pro' })).body).toMatchObject({ limit: 30, remaining: 20 })
  })

  test('is no refusal: it is counted apart', async () => {
    await charge({ ...ask, cost: 3 })
    await charge({ ...ask, cost: 1_000_000_000_000 })
    const { body } = await get('/metrics')
    expect(body).toContain('sluice_charges_total{limiter="api",result="allowed"} 1')
    expect(body).toContain('sluice_charges_total{limiter="api",result="limited"} 1')
    expect(body).toContain('sluice_decisions_total{limiter="api",result="limited"} 0')
  })

  test.each([
    [{ ...ask, cost: 1.5 }, 400, 'cost 1.5 must be a whole number from 0 to 1,000,000,000,000'],
    [{ ...ask, cost: 1_000_000_000_001 }, 400, 'must be a whole number from 0 to 1,000,000,000,000'],
    [{ ...ask, key: '' }, 400, 'key "" must be a string of 1 to 1024 characters'],
    [{ ...ask, plan: 'gold' }, 400, 'gold'],
    [{ ...ask, plan: 5 }, 400, 'plan 5 must be the name of a plan'],
    [{ ...ask, verb: 'charge' }, 400, '"verb" is not an option of charge: there is limiter, key, cost, plan'],
    [{ limiter: 'two', key: 'u1', cost: { tokens: 5 } }, 400, "cost undefined of limit 'requests'"],
    [{ limiter: 'none', key: 'u1' }, 404, 'there is no limiter "none"'],
    [[ask], 400, 'must be an object of limiter, key, cost, plan'],
  ])('refuses %j', async (body, status, detail) => {
    expect(await charge(body)).toMatchObject({ status, body: { detail: expect.stringContaining(detail) } })
    expect(await remaining()).toEqual([3, 5, 4, 1])
  })
})

describe('settle', () => {
  const settle = (body: unknown) => call(service.url, 'POST', '/v1/settle', body)
  const tokens = { limiter: 'two', key: 'u1', cost: { requests: 1, tokens: 40 } }
  const left = async () => (await get('/v1/limiters/two/keys/u1?cost=0')).body.parts.tokens.remaining

  test('gives back what a decision charged too much, and charges what was too little, beyond the limit too', async () => {
    const { body: first } = await decide(tokens)
    expect(await settle({ ...tokens, actual: { requests: 1, tokens: 10 }, of: first })).toMatchObject({
      status: 200,
      body: { limiter: 'two', settled: true },
    })
    expect(await left()).toBe(90)
    const { body: second } = await decide(tokens)
    await settle({ ...tokens, actual: { requests: 1, tokens: 150 }, of: second })
    expect((await decide({ limiter: 'two', key: 'u1' })).body).toMatchObject({ allowed: false, policy: 'tokens', retryAfterMs: 36_600 })
  })

  test('gives a reservation back before its time, less what was reserved after it', async () => {
    await decide({ ...ask, cost: 3 })
    const { body: first } = await decide({ ...ask, verb: 'reserve', cost: 2 })
    const { body: second } = await decide({ ...ask, verb: 'reserve' })
    expect([first.delayMs, second.delayMs]).toEqual([2_000, 3_000])
    await settle({ ...ask, cost: 2, actual: 0, of: first })
    expect((await decide({ ...ask, verb: 'peek' })).body.retryAfterMs).toBe(3_000)
    await settle({ ...ask, actual: 0, of: second })
    expect((await decide({ ...ask, verb: 'peek' })).body.retryAfterMs).toBe(2_000)
  })

  test('needs no more of a decision than when, and until when', async () => {
    await decide({ ...ask, cost: 1 })
    await settle(settlement)
    expect((await decide(ask)).body.allowed).toBe(false)
  })

  test('changes nothing for a decision that charged nothing, in shadow too', async () => {
    await decide({ ...ask, cost: 3 })
    const { body: refused } = await decide(ask)
    expect((await settle({ ...ask, actual: 0, of: refused })).status).toBe(200)
    expect(await remaining()).toEqual([0, 5, 4, 1])
    const quiet = { limiter: 'quiet', key: 'u1' }
    await decide(quiet)
    const { body: shadowed } = await decide(quiet)
    expect(shadowed).toMatchObject({ allowed: true, outcome: 'limited' })
    await settle({ ...quiet, actual: 0, of: shadowed })
    expect(await remaining()).toEqual([0, 5, 4, 0])
  })

  test.each([
    [{ ...settlement, actual: undefined }, 400, 'actual undefined must be a whole number from 0 to 1,000,000,000,000'],
    [{ ...settlement, actual: -1 }, 400, 'actual -1 must be a whole number'],
    [{ ...settlement, cost: 'x' }, 400, 'cost "x" must be a whole number'],
    [{ ...settlement, key: 5 }, 400, 'key 5 must be a string'],
    [{ ...settlement, plan: 'gold' }, 400, 'plan "gold" is not one of the plans'],
    [{ ...settlement, of: undefined }, 400, 'settle needs the decision that it settles'],
    [{ ...settlement, of: { parts: settlement.of.parts } }, 400, 'atMs undefined must be'],
    [{ ...settlement, of: { atMs: 5, parts: {} } }, 400, "resetAfterMs of limit 'default' undefined must be"],
    [{ ...settlement, of: { atMs: 5 } }, 400, "resetAfterMs of limit 'default' undefined must be"],
    [
      { ...settlement, of: { atMs: 5, parts: { default: { resetAfterMs: 1, delayMs: -1 } } } },
      400,
      "delayMs of limit 'default' -1 must be",
    ],
    [{ ...settlement, of: { ...settlement.of, limiter: 'two' } }, 400, 'of.limiter "two" must be "api"'],
    [{ ...settlement, atMs: 5 }, 400, '"atMs" is not an option of settle: there is limiter, key, cost, plan, actual, of'],
    [{ ...settlement, limiter: 'none' }, 404, 'there is no limiter "none"'],
  ])('refuses %j', async (body, status, detail) => {
    expect(await settle(body)).toMatchObject({ status, body: { detail: expect.stringContaining(detail) } })
    expect(await remaining()).toEqual([3, 5, 4, 1])
  })
})

describe('acquire', () => {
  test('waits its turn', async () => {
    await decide({ ...ask, cost: 3 })
    const waiting = acquire({ ...ask, timeoutMs: 5000 })
    await until(() => service.limiters.get('api')?.waiting === 1)
    service.clock.advanceMs(1000)
    expect(await waiting).toMatchObject({ status: 200, body: { allowed: true, waitedMs: 1000 } })
  })

  test('is told at once if its turn cannot come in time', async () => {
    await decide({ ...ask, cost: 3 })
    // A millisecond later the same call would be in time.
    const { status, body, headers } = await acquire({ ...ask, timeoutMs: 999 })
    expect({ status, body }).toMatchObject({ status: 429, body: { code: 'TIMEOUT', 'violated-policies': ['default'], retryAfterMs: 1 } })
    expect(headers.get('retry-after')).toBe('1')
  })

  test('is told at once if its turn can never come, or the queue is full', async () => {
    expect((await acquire({ ...ask, cost: 4 })).body).toMatchObject({ status: 429, code: 'IMPOSSIBLE', retryAfterMs: null })
    const shaped = { limiter: 'shaped', key: 'u1', cost: 4 }
    await decide(shaped)
    const first = acquire(shaped)
    await until(() => service.limiters.get('shaped')?.waiting === 1)
    expect((await acquire(shaped)).body).toMatchObject({ status: 429, code: 'QUEUE_FULL' })
    service.clock.advanceMs(60_000)
    expect((await first).status).toBe(200)
  })

  test('a client that hangs up leaves the queue and takes nothing', async () => {
    await decide({ ...ask, cost: 3 })
    const controller = new AbortController()
    const waiting = acquire({ ...ask, cost: 3 }, { signal: controller.signal })
    await until(() => service.limiters.get('api')?.waiting === 1)
    controller.abort()
    await expect(waiting).rejects.toThrow()
    await until(() => service.limiters.get('api')?.waiting === 0)
    service.clock.advanceMs(3000)
    expect((await decide({ ...ask, cost: 3 })).body.allowed).toBe(true)
  })
})

describe('a key', () => {
  test('can be looked at and forgotten, whatever is in its name', async () => {
    const key = 'a/b c%{ü}'
    await decide({ limiter: 'api', key, cost: 2 })
    const path = `/v1/limiters/api/keys/${encodeURIComponent(key)}`
    expect((await get(`${path}?cost=2`)).body).toMatchObject({ allowed: false, remaining: 1 })
    expect((await get(`${path}?plan=pro`)).body).toMatchObject({ limit: 30 })
    expect((await call(service.url, 'DELETE', path)).status).toBe(204)
    expect((await get(path)).body).toMatchObject({ remaining: 3 })
  })
})

test('the limiters are listed', async () => {
  const { body } = await get('/v1/limiters')
  expect(body.limiters.map(({ name }: { name: string }) => name)).toEqual(['api', 'two', 'shaped', 'quiet', 'held'])
  expect(body.limiters[0]).toMatchObject({ limits: { default: { type: 'gcra', rate: '1/s', burst: 3 } }, plans: { pro: {} }, store: 'up' })
})

test('the rules of domains are listed, by the names that metrics, log and page have for them', async () => {
  const edge = `domains:
  edge:
    headers: draft-7
    descriptors:
      - { key: ip, limit: { type: gcra, rate: 1/s, burst: 3 }, onStoreError: allow }
      - { key: path, value: /static/*, unlimited: true }
      - { key: ip, value: 6.6.6.6, denied: true }
      - { key: tenant, descriptors: [{ key: verb, value: write, shadow: true, limit: { type: fixedWindow, limit: 1, window: 1h } }] }
`
  service.limiters.use(readConfig(CONFIG + edge, 'test.yaml'))
  const { body } = await get('/v1/limiters')
  const flags = { unlimited: false, denied: false, shadow: false, limit: null, options: {}, store: null }
  expect(body.domains).toMatchObject([
    {
      name: 'edge',
      headers: 'draft-7',
      rules: [
        { ...flags, rule: 'edge: ip', limit: { type: 'gcra', burst: 3 }, options: { onStoreError: 'allow' }, store: 'up' },
        { ...flags, rule: 'edge: path = /static/*', unlimited: true },
        { ...flags, rule: 'edge: ip = 6.6.6.6', denied: true },
        { ...flags, rule: 'edge: tenant, verb = write', shadow: true, limit: { type: 'fixedWindow' }, store: 'up' },
      ],
    },
  ])
  const named = [...(await get('/metrics')).body.matchAll(/^sluice_queue_size\{limiter="(edge.*?)"\}/gm)].map(([, name]) => name)
  expect(named).toEqual(['edge: ip', 'edge: tenant, verb = write'])
})

describe('the rules of domains by JSON', () => {
  const EDGE = `domains:
  edge:
    headers: draft-6
    descriptors:
      - { key: ip, limit: { type: fixedWindow, limit: 2, window: 1h } }
      - { key: ip, value: 6.6.6.6, denied: true }
`
  const ip = { entries: [{ key: 'ip', value: '1.1.1.1' }] }
  const post = (body: unknown) => call(service.url, 'POST', '/json', body)

  beforeEach(() => {
    service.limiters.use(readConfig(CONFIG + EDGE, 'test.yaml'))
  })

  test('are asked as Envoy asks, and a refusal is a 429', async () => {
    const reset = expect.stringMatching(/^\d+$/)
    expect(await post({ domain: 'edge', descriptors: [ip] })).toMatchObject({
      status: 200,
      body: {
        overallCode: 'OK',
        statuses: [{ code: 'OK', currentLimit: { name: 'edge: ip', requestsPerUnit: 2, unit: 'HOUR' }, limitRemaining: 1 }],
        responseHeadersToAdd: [
          { key: 'ratelimit-limit', value: '2' },
          { key: 'ratelimit-remaining', value: '1' },
          { key: 'ratelimit-reset', value: reset },
        ],
      },
    })
    const two = await post({ domain: 'edge', descriptors: [ip], hits_addend: 2 })
    expect(two).toMatchObject({ status: 429, body: { overallCode: 'OVER_LIMIT', statuses: [{ limitRemaining: 1 }] } })
    const own = { ...ip, limit: { requestsPerUnit: 9, unit: 'MINUTE' }, hitsAddend: 4 }
    expect(await post({ domain: 'edge', descriptors: [own] })).toMatchObject({ status: 200, body: { statuses: [{ limitRemaining: 5 }] } })
    expect((await post({ domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '6.6.6.6' }] }] })).status).toBe(429)
    expect((await post({ domain: 'nowhere', descriptors: [ip] })).status).toBe(200)
  })

  test.each([
    [{}, 'domain undefined must be a text'],
    [[], 'the body [] must be an object of domain, descriptors, hitsAddend'],
    [{ domain: '', descriptors: [ip] }, 'domain "" must not be empty'],
    [{ domain: 'edge' }, 'descriptors undefined must be a list'],
    [{ domain: 'edge', descriptors: [] }, 'descriptors: 0 must be from 1 to 1000'],
    [{ domain: 'edge', descriptors: [ip, { entries: [{ key: 5 }] }] }, 'descriptors[1].entries[0].key 5 must be a text'],
    [{ domain: 'edge', descriptors: [ip, { entries: [] }] }, 'descriptors[1] must have entries'],
    [{ domain: 'edge', descriptors: [ip], hits: 1 }, 'the body has no "hits"'],
    [{ domain: 'edge', descriptors: [{ ...ip, hitsAddend: -1 }] }, 'descriptors[0].hitsAddend -1 must be a whole number'],
    [{ domain: 'edge', descriptors: [{ ...ip, limit: { requestsPerUnit: 1, unit: 'DECADE' } }] }, 'limit.unit "DECADE" must be one of'],
    [{ domain: 'edge', descriptors: [{ ...ip, isNegativeHits: 1 }] }, 'descriptors[0].isNegativeHits 1 must be true or false'],
  ])('%j is refused with the reason and touches nothing', async (body, detail) => {
    expect(await post(body)).toMatchObject({ status: 400, body: { code: 'DESCRIPTORS', detail: expect.stringContaining(detail) } })
    expect((await post({ domain: 'edge', descriptors: [ip] })).body).toMatchObject({ statuses: [{ limitRemaining: 1 }] })
  })
})

test('it is alive and ready, and says what it can do', async () => {
  expect((await get('/healthz')).body).toEqual({ status: 'ok' })
  expect((await get('/readyz')).body).toEqual({ status: 'ready' })
  const documented = Object.keys((await get('/openapi.json')).body.paths)
  expect(documented.map((path) => path.replaceAll(/\{\w+\}/g, ':')).sort()).toEqual(Object.keys(ROUTES).sort())
})

describe('bad input is refused with the reason and touches nothing:', () => {
  test.each([
    [{}, 400, 'limiter undefined must be the name of a limiter'],
    [[], 400, 'a decision [] must be an object of limiter, key'],
    ['x', 400, 'a decision "x" must be an object'],
    [null, 400, 'a decision null must be'],
    [{ ...ask, limiter: 'nobody' }, 404, 'there is no limiter "nobody"'],
    [{ ...ask, limiter: '__proto__' }, 404, 'there is no limiter "__proto__"'],
    [{ limiter: 'api' }, 400, 'key undefined must be a string of 1 to 1024 characters'],
    [{ ...ask, key: '' }, 400, 'key "" must be a string'],
    [{ ...ask, key: 'x'.repeat(1025) }, 400, 'must be a string of 1 to 1024 characters'],
    [{ ...ask, key: 7 }, 400, 'key 7 must be'],
    [{ ...ask, key: { other: 'x' } }, 400, 'there is no such limit'],
    [{ limiter: 'two', key: { requests: 'u1' } }, 400, "key undefined of limit 'tokens' must be"],
    [{ ...ask, cost: -1 }, 400, 'cost -1 must be a whole number from 0 to 1,000,000,000'],
    [{ ...ask, cost: 1.5 }, 400, 'cost 1.5 must be'],
    [{ ...ask, cost: '1' }, 400, 'cost "1" must be'],
    [{ ...ask, cost: null }, 400, 'cost null must be'],
    [{ ...ask, cost: 1e300 }, 400, 'must be a whole number'],
    [{ ...ask, plan: 'gold' }, 400, 'plan "gold" is not one of the plans of limiter'],
    [{ ...ask, plan: 'toString' }, 400, 'plan "toString" is not one of'],
    [{ ...ask, plan: 5 }, 400, 'plan 5 must be the name of a plan'],
    [{ ...ask, verb: 'steal' }, 400, 'verb "steal" must be one of consume, peek, reserve, refund'],
    [{ ...ask, csot: 1 }, 400, '"csot" is not an option of a decision'],
    [{ ...ask, verb: 'refund', atMs: 1 }, 400, '"atMs" is not an option of a decision: there is limiter, key, cost, plan, verb, maxWaitMs'],
    [{ ...ask, maxWaitMs: 1 }, 400, 'maxWaitMs 1 goes with verb reserve, not with consume'],
    [{ ...ask, verb: 'reserve', maxWaitMs: -1 }, 400, 'maxWaitMs -1 must be milliseconds'],
    [{ decisions: [] }, 400, 'decisions [] must be a list of 1 to 1000'],
    [{ decisions: {} }, 400, 'decisions {} must be a list'],
    [{ decisions: Array(1001).fill(ask) }, 400, 'must be a list of 1 to 1000'],
    [{ decisions: [ask], extra: 1 }, 400, '"extra" is not an option of the body'],
    [{ decisions: [ask, ask, { ...ask, cost: -1 }] }, 400, 'decisions[2]: cost -1 must be'],
    [{ decisions: [ask, { ...ask, limiter: 'nobody' }] }, 404, 'decisions[1]: there is no limiter "nobody"'],
  ])('decide %j', async (body, status, detail) => {
    const reply = await decide(body)
    expect(reply).toMatchObject({ status, body: { status, detail: expect.stringContaining(detail) } })
    expect(await remaining()).toEqual([3, 5, 4, 1])
  })

  test.each([
    [{ ...ask, timeoutMs: -1 }, 400, 'timeoutMs -1 must be milliseconds from 0 to 600000'],
    [{ ...ask, timeoutMs: null }, 400, 'timeoutMs null must be'],
    [{ ...ask, verb: 'peek' }, 400, '"verb" is not an option of acquire'],
    [{ ...ask, limiter: 'nobody' }, 404, 'there is no limiter "nobody"'],
  ])('acquire %j', async (body, status, detail) => {
    expect(await acquire(body)).toMatchObject({ status, body: { detail: expect.stringContaining(detail) } })
    expect(await remaining()).toEqual([3, 5, 4, 1])
  })

  test.each([
    ['GET', '/v1/limiters/nobody/keys/u1', 404, 'there is no limiter'],
    ['DELETE', '/v1/limiters/nobody/keys/u1', 404, 'there is no limiter'],
    ['GET', '/v1/limiters/api/keys/', 400, 'key "" must be'],
    ['DELETE', '/v1/limiters/api/keys/', 400, 'key "" must be'],
    ['GET', '/v1/limiters/api/keys/%ff', 400, 'must be percent-encoded UTF-8'],
    ['GET', '/v1/limiters/api/keys/u1?cost=x', 400, 'cost "x" must be a whole number'],
    ['GET', '/v1/limiters/api/keys/u1?cots=1', 400, '"cots" is not an option here'],
    ['GET', '/v1/limiters/api/keys/u1?plan=gold', 400, 'plan "gold" is not one of'],
    ['GET', '/', 404, 'there is nothing at /'],
    ['GET', '/v1/limiters/:/keys/:', 404, 'there is no limiter ":"'],
    ['GET', '/v1/decide', 405, 'GET /v1/decide is not possible: there is POST'],
    ['PUT', '/v1/limiters/api/keys/u1', 405, 'there is GET, DELETE'],
  ])('%s %s', async (method, path, status, detail) => {
    expect(await call(service.url, method, path)).toMatchObject({ status, body: { detail: expect.stringContaining(detail) } })
  })

  test.each(['/v1/decide', '/v1/acquire', '/v1/charge', '/v1/settle', '/v1/release', '/v1/renew', '/json'])(
    '%s with a body that is no JSON, not sent as JSON, or too large',
    async (path) => {
      const headers = { 'content-type': 'application/json' }
      expect(await call(service.url, 'POST', path, undefined, { body: '{', headers })).toMatchObject({
        status: 400,
        body: { code: 'JSON' },
      })
      expect((await call(service.url, 'POST', path, undefined, { body: '{}' })).status).toBe(415)
      expect((await sentWithLength(path, MAX_BODY_BYTES + 1)).status).toBe(413)
      expect((await sentInPieces(path)).status).toBe(413)
    },
  )
})

/** Declares a length, and waits for the answer without sending anything. */
async function sentWithLength(path: string, length: number): Promise<Reply> {
  return answered(path, { 'content-length': length }, () => undefined)
}

/** Does not say how much is coming. */
async function sentInPieces(path: string): Promise<Reply> {
  const piece = Buffer.alloc(65_536, ' ')
  return answered(path, { 'transfer-encoding': 'chunked' }, (request) => {
    for (let sent = 0; sent <= MAX_BODY_BYTES; sent += piece.length) request.write(piece)
  })
}

async function answered(path: string, headers: object, send: (request: ReturnType<typeof httpRequest>) => void): Promise<Reply> {
  const request = httpRequest(service.url + path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers } })
  // The service hangs up on what it does not read.
  request.on('error', () => undefined)
  request.flushHeaders()
  send(request)
  const [response] = (await once(request, 'response')) as [import('node:http').IncomingMessage]
  const pieces = await response.toArray()
  request.destroy()
  return checked(
    'POST',
    path,
    response.statusCode as number,
    new Headers(response.headers as Record<string, string>),
    Buffer.concat(pieces).toString(),
  )
}

test('a client that sends no HTTP is answered and cut off, and others are served', async () => {
  const socket = connect(service.httpPort, '127.0.0.1')
  socket.write('nonsense\r\n\r\n')
  const [piece] = await once(socket, 'data')
  expect(String(piece)).toMatch(/^HTTP\/1.1 400 /)
  socket.destroy()
  expect((await decide(ask)).status).toBe(200)
})

describe('keys of more than 128 characters', () => {
  const long = 'k'.repeat(1_000)

  test('are kept as digests, and told apart at their last character', async () => {
    await decide({ limiter: 'api', key: `${long}a`, cost: 2 })
    await decide({ limiter: 'two', key: { requests: `${long}a`, tokens: 'team' }, cost: 2 })
    expect((await get(`/v1/limiters/api/keys/${long}a`)).body).toMatchObject({ remaining: 1 })
    expect((await get(`/v1/limiters/api/keys/${long}b`)).body).toMatchObject({ remaining: 3 })
    expect((await decide({ limiter: 'two', key: { requests: `${long}a`, tokens: 'x' }, verb: 'peek' })).body).toMatchObject({
      remaining: 3,
    })
    expect((await call(service.url, 'DELETE', `/v1/limiters/api/keys/${long}a`)).status).toBe(204)
    expect((await get(`/v1/limiters/api/keys/${long}a`)).body).toMatchObject({ remaining: 3 })
  })
})

test('requests that are pipelined are answered in their order', async () => {
  const socket = connect(service.httpPort, '127.0.0.1')
  const paths = Array.from({ length: 90 }, (_, k) => `/v1/limiters/api/keys/u1?cost=${k % 5}`)
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`).join(''))
  let text = ''
  socket.on('data', (piece) => {
    text += piece
  })
  await until(() => text.split('HTTP/1.1 200').length === 91)
  const outcomes = [...text.matchAll(/"outcome":"(\w+)","limit":3,"remaining":3,"retryAfterMs":[^,]*,"resetAfterMs":0,"delayMs":0,"atMs"/g)]
  expect(outcomes.map(([, outcome]) => outcome)).toEqual(paths.map((_, k) => (k % 5 === 4 ? 'impossible' : 'allowed')))
  socket.destroy()
})

describe('a new configuration', () => {
  test('keeps what keys have used, and changes the numbers at once', async () => {
    await decide({ ...ask, cost: 2 })
    service.limiters.use(readConfig(CONFIG.replace('burst: 3 }', 'burst: 10 }'), 'test.yaml'))
    expect((await get('/v1/limiters/api/keys/u1')).body).toMatchObject({ limit: 10, remaining: 8 })
  })

  test('keeps what keys have used where the limiter has to be made anew, and serves who waits at the old one', async () => {
    await decide({ ...ask, cost: 3 })
    const waiting = acquire(ask)
    await until(() => service.limiters.get('api')?.waiting === 1)
    service.limiters.use(readConfig(CONFIG.replace('    plans:\n', '    maxQueue: 5\n    plans:\n'), 'test.yaml'))
    expect((await decide(ask)).body).toMatchObject({ allowed: false, retryAfterMs: 2000 })
    service.clock.advanceMs(1000)
    expect((await waiting).status).toBe(200)
  })

  test('takes limiters away and brings others', async () => {
    service.limiters.use(readConfig('limiters: { new: { limits: { type: slidingLog, limit: 1, window: 1s } } }', 'test.yaml'))
    expect((await decide(ask)).status).toBe(404)
    expect((await decide({ limiter: 'new', key: 'u1' })).body.allowed).toBe(true)
  })
})

test('a stop lets who is being served finish, and ends those that would wait longer', async () => {
  await decide({ ...ask, cost: 3 })
  const waiting = acquire(ask)
  await until(() => service.limiters.get('api')?.waiting === 1)
  await service.stop(0)
  expect(await waiting).toMatchObject({ status: 503, body: { code: 'CLOSED' } })
  await expect(fetch(`${service.url}/healthz`)).rejects.toThrow()
})

test('while it stops it is not ready, and says so on connections that are still there', async () => {
  await decide({ ...ask, cost: 3 })
  const waiting = acquire(ask)
  await until(() => service.limiters.get('api')?.waiting === 1)
  const stopped = service.stop(0, 1_000)
  const { status, body, headers } = await get('/readyz')
  expect({ status, code: body.code, connection: headers.get('connection') }).toEqual({ status: 503, code: 'STOPPING', connection: 'close' })
  await stopped
  expect((await waiting).status).toBe(503)
})

test('no browser takes an answer for something else than it says', async () => {
  for (const path of ['/healthz', '/v1/limiters', '/metrics', '/<script>']) {
    expect((await fetch(service.url + path)).headers.get('x-content-type-options'), path).toBe('nosniff')
  }
})

test('HEAD is GET without the body', async () => {
  const { status, headers } = await fetch(`${service.url}/healthz`, { method: 'HEAD' })
  expect({ status, length: headers.get('content-length') }).toEqual({ status: 200, length: '15' })
})

describe('metrics', () => {
  test('count decisions by limiter and result, and never name a key', async () => {
    await decide({ decisions: [...Array(5).fill({ ...ask, key: 'secret-key' }), { ...ask, key: 'secret-key', cost: 4 }] })
    await decide({ ...ask, verb: 'peek' })
    const { body } = await get('/metrics')
    expect(body).toContain('sluice_decisions_total{limiter="api",result="allowed"} 3')
    expect(body).toContain('sluice_decisions_total{limiter="api",result="limited"} 2')
    expect(body).toContain('sluice_decisions_total{limiter="api",result="impossible"} 1')
    expect(body).toContain('sluice_decision_duration_seconds_count{limiter="api"} 6')
    expect(body).toContain('sluice_live_keys 1')
    expect(body).toContain('sluice_breaker_open{limiter="api"} 0')
    expect(body).not.toContain('secret-key')
  })

  test('count those that were near their limit, and refusals in shadow apart', async () => {
    // Of 30: less than 6 are left after the 25th.
    await decide({ decisions: Array(30).fill({ ...ask, plan: 'pro' }) })
    await decide({ decisions: Array(3).fill({ limiter: 'quiet', key: 'u1' }) })
    const { body } = await get('/metrics')
    expect(body).toContain('sluice_near_limit_decisions_total{limiter="api"} 6')
    expect(body).toContain('sluice_shadowed_decisions_total{limiter="api"} 0')
    expect(body).toContain('sluice_shadowed_decisions_total{limiter="quiet"} 2')
    expect(body).toContain('sluice_decisions_total{limiter="quiet",result="limited"} 2')
  })

  test('show who waits, and how long', async () => {
    await decide({ ...ask, cost: 3 })
    const waiting = acquire(ask)
    await until(() => service.limiters.get('api')?.waiting === 1)
    expect((await get('/metrics')).body).toContain('sluice_queue_size{limiter="api"} 1')
    service.clock.advanceMs(1000)
    await waiting
    const { body } = await get('/metrics')
    expect(body).toContain('sluice_queue_size{limiter="api"} 0')
    expect(body).toContain('sluice_wait_seconds_sum{limiter="api"} 1')
  })
})

describe('when Redis is not there', () => {
  let outage: TestService
  let client: Redis

  beforeEach(async () => {
    // A port of our own that nobody listens on.
    client = new Redis({ host: '127.0.0.1', port: 1, maxRetriesPerRequest: 0, retryStrategy: () => 1000 })
    client.on('error', () => undefined)
    const edge = 'domains: { edge: { descriptors: [{ key: ip, limit: { type: gcra, rate: 1/s, burst: 1 } }] } }\n'
    const text = CONFIG.replaceAll('shadow: true', 'onStoreError: local') + edge
    outage = await serviceOn(text, redisStore(client))
  })

  afterEach(async () => {
    await outage.stop(0)
    client.disconnect()
    expectNoFailure(outage)
  })

  test('the policy throw is a 503, and it is not ready', async () => {
    const calls = [
      ['POST', '/v1/decide', ask],
      ['POST', '/v1/acquire', ask],
      ['POST', '/json', { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: 'x' }] }] }],
      ['POST', '/v1/charge', ask],
      ['POST', '/v1/settle', settlement],
      ['POST', '/v1/release', { permit }],
      ['POST', '/v1/renew', { permit }],
      ['GET', '/v1/limiters/api/keys/u1', undefined],
      ['DELETE', '/v1/limiters/api/keys/u1', undefined],
      ['GET', '/readyz', undefined],
    ] as const
    for (const [method, path, body] of calls) {
      const reply = await call(outage.url, method, path, body)
      expect(reply).toMatchObject({ status: 503, body: { code: 'STORE' } })
      // What Redis and its client say is for the log.
      expect(reply.body.detail).toBe('the store failed, and no policy decides in its place: the log of the service says why')
      expect(reply.headers.get('retry-after')).toBe('1')
    }
    const { body } = await call(outage.url, 'GET', '/metrics')
    expect(body).toContain('sluice_breaker_open{limiter="api"} 1')
    expect(body).toContain('sluice_store_outages_total{limiter="api"} 1')
    expect(body).toContain('sluice_store_errors_total{limiter="api"} 6')
  })

  test('of many decisions only those fail whose policy it is', async () => {
    const { body } = await call(outage.url, 'POST', '/v1/decide', { decisions: [ask, { limiter: 'quiet', key: 'u1' }] })
    expect(body.decisions).toMatchObject([{ error: { status: 503, code: 'STORE' } }, { allowed: true, degraded: true }])
  })
})

describe('with tokens', () => {
  const TOKEN = 'a-token-that-is-long-enough'
  let guarded: TestService

  beforeEach(async () => {
    guarded = await serviceOn(CONFIG, undefined, new Tokens(['another-token-that-is-long', TOKEN]))
  })

  afterEach(async () => {
    await guarded.stop(0)
    expectNoFailure(guarded)
  })

  const key = '/v1/limiters/api/keys/u1'
  const sent = (authorization: string) => ({ headers: { authorization, 'content-type': 'application/json' } })

  test.each([
    ['POST', '/v1/decide', ask],
    ['POST', '/v1/acquire', ask],
    ['POST', '/json', { domain: 'nowhere', descriptors: [{ entries: [{ key: 'ip' }] }] }],
    ['POST', '/v1/charge', ask],
    ['POST', '/v1/settle', settlement],
    ['POST', '/v1/release', { permit }],
    ['POST', '/v1/renew', { permit }],
    ['DELETE', key, undefined],
  ])('%s %s wants one', async (method, path, body) => {
    for (const wrong of ['', TOKEN, 'Bearer', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`]) {
      const { status, headers } = await call(guarded.url, method, path, body, sent(wrong))
      expect({ status, challenge: headers.get('www-authenticate') }).toEqual({ status: 401, challenge: 'Bearer' })
    }
    expect((await call(guarded.url, 'GET', key)).body.remaining).toBe(3)
    expect((await call(guarded.url, method, path, body, sent(`Bearer ${TOKEN}`))).status).toBeLessThan(300)
  })

  test('where there are tokens for reading, looking wants one of either kind, and such a token may only look', async () => {
    const READS = 'a-token-that-may-only-read'
    const watched = await serviceOn(CONFIG, undefined, new Tokens([TOKEN]), { readTokens: new Tokens([READS]), healthPort: 0 })
    const status = async (method: string, path: string, token = '', body?: unknown) =>
      (await call(watched.url, method, path, body, sent(`Bearer ${token}`))).status
    try {
      for (const path of ['/v1/limiters', key, '/metrics']) {
        const tokens = ['', 'x'.repeat(20), READS, TOKEN]
        expect(await Promise.all(tokens.map((token) => status('GET', path, token))), path).toEqual([401, 401, 200, 200])
      }
      for (const path of ['/healthz', '/readyz', '/openapi.json']) expect(await status('GET', path)).toBe(200)
      expect((await fetch(`http://127.0.0.1:${watched.healthPort}/metrics`)).status).toBe(200)
      expect(await status('POST', '/v1/decide', READS, ask)).toBe(403)
      expect(await status('DELETE', key, READS)).toBe(403)
      expect(await status('POST', '/v1/decide', TOKEN, ask)).toBe(200)
    } finally {
      await watched.stop(0)
    }
    expectNoFailure(watched)
  })

  test('they come from a file or a variable, and are not told when they are bad', () => {
    expect(tokensFrom(undefined, undefined)).toBeUndefined()
    expect(tokensFrom(undefined, `${TOKEN}, x${TOKEN}`)?.accept(`Bearer x${TOKEN}`)).toBe(true)
    expect(() => tokensFrom(undefined, '')).toThrow('SLUICE_TOKENS must have a token')
    expect(() => tokensFrom(undefined, `${TOKEN},secret`)).toThrow(
      /^token 2 of SLUICE_TOKENS must be 16 characters or more, without spaces$/,
    )
  })
})

test('a permit of a limiter that the configuration does not have is a 404', async () => {
  for (const path of ['/v1/release', '/v1/renew']) {
    const gone = permitText({
      limiter: 'gone',
      lent: { plan: undefined, loans: [{ limit: 'a', key: 'k', cost: 1, token: 5, degraded: false }] },
    })
    expect((await call(service.url, 'POST', path, { permit: gone })).status).toBe(404)
  }
})

// The last one: the others have to be run before.
test('every path and status in the document was seen', async () => {
  await expectHostGuarded(service.url, OTHER_PATHS)
  expectAllSeen(OTHER_PATHS)
})
