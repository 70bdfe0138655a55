/** Envoy's rate limit service through a real grpc-js client. Time is the test's. */
import { type Client, Metadata, status } from '@grpc/grpc-js'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../src/config/read.ts'
import { keyOf } from '../src/grpc/find-rule.ts'
import { perUnit } from '../src/grpc/units.ts'
import { limitFrom, redisStore } from '../src/sluice.ts'
import { Tokens } from '../src/tokens.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { expectNoFailure, SILENT, serviceOn, type TestService } from './support/service.ts'

const CONFIG = `
domains:
  edge:
    descriptors:
      - { key: ip, limit: { type: gcra, rate: 10/s, burst: 2 } }
      - { key: path, value: /exact, limit: { type: fixedWindow, limit: 1, window: 1min } }
      - { key: path, value: /exact*, limit: { type: fixedWindow, limit: 2, window: 1h } }
      - { key: path, value: /e*, limit: { type: fixedWindow, limit: 3, window: 1d } }
      - { key: path, limit: { type: fixedWindow, limit: 4, window: 7d } }
      - { key: free, unlimited: true }
      - { key: ai, charge: true, limit: { type: fixedWindow, limit: 1000, window: 1h } }
      - { key: spent, charge: true, limit: { type: gcra, rate: 1000/h, burst: 1000 } }
      - { key: plain, limit: { type: fixedWindow, limit: 1000, window: 1h } }
      - { key: ip, value: 6.6.6.6, denied: true }
      - { key: quiet, shadow: true, limit: { type: slidingLog, limit: 1, window: 1s } }
      - { key: agent, value: bad*, denied: true, shadow: true }
      - key: tenant
        descriptors:
          - { key: verb, value: write, limit: { type: tokenBucket, capacity: 5, refill: 1/s } }
`

type Entries = readonly (readonly [key: string, value?: string])[]

let service: TestService
let client: Client

beforeEach(async () => {
  service = await serviceOn(CONFIG)
  client = connected(service)
})

afterEach(async () => {
  client.close()
  await service.stop(0)
  expectNoFailure(service)
})

const ask = (request: object, by: Client = client, metadata?: Metadata) => shouldRateLimit(by, request, metadata)
const described = (...entries: Entries) => ({ entries: entries.map(([key, value = '']) => ({ key, value })) })
const askOf = (...entries: Entries) => ask({ domain: 'edge', descriptors: [described(...entries)] })
const statusOf = async (...entries: Entries) => (await askOf(...entries)).statuses[0]

describe('a descriptor', () => {
  test('is counted for each value until it is over its limit', async () => {
    expect(await askOf(['ip', '1.1.1.1'])).toEqual({
      overall_code: 'OK',
      statuses: [
        {
          code: 'OK',
          current_limit: { requests_per_unit: 10, unit: 'SECOND', name: 'edge: ip' },
          limit_remaining: 1,
          duration_until_reset: { seconds: '0', nanos: 100_000_000 },
        },
      ],
      response_headers_to_add: [],
    })
    expect((await askOf(['ip', '1.1.1.1'])).overall_code).toBe('OK')
    expect(await askOf(['ip', '1.1.1.1'])).toMatchObject({
      overall_code: 'OVER_LIMIT',
      statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0 }],
    })
    expect((await askOf(['ip', '2.2.2.2'])).overall_code).toBe('OK')
    service.clock.advanceMs(100)
    expect((await askOf(['ip', '1.1.1.1'])).overall_code).toBe('OK')
  })

  test('goes by the exact value, then by wildcards in their order, then by the key alone', async () => {
    expect(await statusOf(['path', '/exact'])).toMatchObject({ current_limit: { requests_per_unit: 1, unit: 'MINUTE' } })
    expect(await statusOf(['path', '/exactly'])).toMatchObject({ current_limit: { requests_per_unit: 2, unit: 'HOUR' } })
    expect(await statusOf(['path', '/else'])).toMatchObject({ current_limit: { requests_per_unit: 3, unit: 'DAY' } })
    expect(await statusOf(['path', '/other'])).toMatchObject({ current_limit: { requests_per_unit: 4, unit: 'WEEK' } })
  })

  test('is limited only by a rule of its own depth', async () => {
    expect(await statusOf(['tenant', 't1'], ['verb', 'write'])).toMatchObject({ limit_remaining: 4 })
    const without = { code: 'OK', current_limit: null, limit_remaining: 0 }
    expect(await statusOf(['tenant', 't1'])).toMatchObject(without)
    expect(await statusOf(['tenant', 't1'], ['verb', 'read'])).toMatchObject(without)
    expect(await statusOf(['tenant', 't1'], ['verb', 'write'], ['more', 'x'])).toMatchObject(without)
    expect(await statusOf(['verb', 'write'])).toMatchObject(without)
    expect(await statusOf(['ip', '1.1.1.1'], ['verb', 'write'])).toMatchObject(without)
  })

  test('may be unlimited, or in shadow', async () => {
    expect(await statusOf(['free', 'x'])).toMatchObject({ code: 'OK', limit_remaining: 4_294_967_295 })
    for (const left of [0, 0]) expect(await statusOf(['quiet', 'x'])).toMatchObject({ code: 'OK', limit_remaining: left })
    const metrics = await service.metrics.registry.metrics()
    expect(metrics).toContain('sluice_decisions_total{limiter="edge: quiet",result="limited"} 1')
    expect(metrics).toContain('sluice_shadowed_decisions_total{limiter="edge: quiet"} 1')
  })

  test('may be denied: nothing passes, which is counted under the rule', async () => {
    for (let k = 0; k < 2; k++)
      expect(await askOf(['ip', '6.6.6.6'])).toMatchObject({
        overall_code: 'OVER_LIMIT',
        statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0 }],
      })
    expect((await askOf(['agent', 'bad/1.0'])).overall_code).toBe('OK')
    // A question and a return take nothing.
    const denied = described(['ip', '6.6.6.6'])
    expect((await ask({ domain: 'edge', descriptors: [{ ...denied, hits_addend: { value: 0 } }] })).overall_code).toBe('OVER_LIMIT')
    expect((await ask({ domain: 'edge', descriptors: [{ ...denied, is_negative_hits: true }] })).overall_code).toBe('OK')
    const metrics = await service.metrics.registry.metrics()
    expect(metrics).toContain('sluice_decisions_total{limiter="edge: ip = 6.6.6.6",result="limited"} 2')
    expect(metrics).toContain('sluice_shadowed_decisions_total{limiter="edge: agent = bad*"} 1')
  })

  test('is named by its rule alone: what a client sent does not come back to it in a header of Envoy', async () => {
    for (const value of ['/exactly"\r\nx-evil: 1', 'Bearer secret']) {
      const { current_limit } = (await statusOf(['path', value])) as { current_limit: { name: string } }
      expect(current_limit.name).toMatch(/^edge: path( = \/exact\*)?$/)
    }
    service.limiters.use(
      readConfig('domains: { "a\\"b\\n": { descriptors: [{ key: "ü", limit: { type: gcra, rate: 1/s, burst: 1 } }] } }', 'x.yaml'),
    )
    const { statuses } = await ask({ domain: 'a"b\n', descriptors: [described(['ü', 'x'])] })
    expect(statuses[0]).toMatchObject({ current_limit: { name: 'a_b_: _' } })
  })

  test('one of several that is over refuses all, and each has a status', async () => {
    const descriptors = [described(['path', '/exact']), described(['ip', '1.1.1.1']), described(['free', 'x'])]
    expect((await ask({ domain: 'edge', descriptors })).overall_code).toBe('OK')
    const { overall_code, statuses } = await ask({ domain: 'edge', descriptors })
    expect(overall_code).toBe('OVER_LIMIT')
    expect(statuses.map(({ code }) => code)).toEqual(['OVER_LIMIT', 'OK', 'OK'])
  })

  test('of a domain that nobody knows is let through', async () => {
    const request = { domain: 'nowhere', descriptors: [described(['ip', '1.1.1.1'])] }
    expect(await ask(request)).toMatchObject({ overall_code: 'OK', statuses: [{ code: 'OK', current_limit: null }] })
  })

  test('is counted however long it is', async () => {
    const long = 'x'.repeat(5_000)
    await askOf(['ip', long])
    await askOf(['ip', long])
    expect((await askOf(['ip', long])).overall_code).toBe('OVER_LIMIT')
    expect((await askOf(['ip', `${long}x`])).overall_code).toBe('OK')
  })
})

/**
 * As Envoy does for a stream with `apply_on_stream_done`: it asks with 0 hits, and at the end tells
 * what was used and ignores the answer.
 */
describe('a stream that is charged at its end', () => {
  const descriptor = (key: string, value: number) => ({ ...described([key, 'u1']), hits_addend: { value } })
  const hits = async (key: string, value: number) =>
    (await ask({ domain: 'edge', descriptors: [descriptor(key, value)] })).statuses[0] as Record<string, unknown>

  test.each(['ai', 'spent'])('is charged beyond the limit, and the next one is refused: %s', async (key) => {
    const admitted: unknown[] = []
    for (let stream = 0; stream < 5; stream++) {
      const { code } = await hits(key, 0)
      admitted.push(code)
      if (code === 'OK') expect(await hits(key, 1200)).toMatchObject({ code: 'OVER_LIMIT', limit_remaining: 0 })
    }
    expect(admitted).toEqual(['OK', 'OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT', 'OVER_LIMIT'])
    expect(await service.metrics.registry.metrics()).toContain(`sluice_charges_total{limiter="edge: ${key}",result="limited"} 1`)
  })

  test('is charged in full where a part would have fitted', async () => {
    expect(await hits('ai', 600)).toMatchObject({ code: 'OK', limit_remaining: 400 })
    expect(await hits('ai', 0)).toMatchObject({ code: 'OK', limit_remaining: 400 })
    expect(await hits('ai', 600)).toMatchObject({ code: 'OVER_LIMIT', limit_remaining: 0 })
    expect((await hits('ai', 0)).code).toBe('OVER_LIMIT')
  })

  test('its debt drains: after 1,200 of 1,000 an hour there is one more when 201 have drained', async () => {
    await hits('spent', 1200)
    service.clock.advanceMs(201 * 3_600 - 1)
    expect((await hits('spent', 0)).code).toBe('OVER_LIMIT')
    service.clock.advanceMs(1)
    expect((await hits('spent', 0)).code).toBe('OK')
  })

  test('hits that nobody counted are taken as ever: one that is refused costs nothing', async () => {
    await hits('ai', 1000)
    for (let k = 0; k < 3; k++) expect((await askOf(['ai', 'u1'])).overall_code).toBe('OVER_LIMIT')
    await ask({ domain: 'edge', descriptors: [{ ...descriptor('ai', 1), is_negative_hits: true }] })
    expect((await askOf(['ai', 'u1'])).overall_code).toBe('OK')
  })

  test('a rule that does not say so refuses what does not fit, and the log tells once', async () => {
    const told: unknown[] = []
    const journal = { ...SILENT, notCharged: (...what: unknown[]) => told.push(what) }
    const other = await serviceOn(CONFIG, undefined, undefined, { journal })
    const by = connected(other)
    const send = (value: number) => ask({ domain: 'edge', descriptors: [descriptor('plain', value)] }, by)
    try {
      // A cost that is asked for beforehand may be refused as often as it likes.
      expect((await send(1200)).overall_code).toBe('OVER_LIMIT')
      expect(told).toEqual([])
      for (let stream = 0; stream < 3; stream++) {
        expect((await send(0)).overall_code).toBe('OK')
        expect((await send(1200)).overall_code).toBe('OVER_LIMIT')
      }
      expect(told).toEqual([['edge: plain', 1200]])
    } finally {
      by.close()
      await other.stop(0)
    }
  })
})

describe('hits', () => {
  const write = described(['tenant', 't1'], ['verb', 'write'])
  const hit = async (descriptor: object, hits_addend = 0) =>
    (await ask({ domain: 'edge', descriptors: [{ ...write, ...descriptor }], hits_addend })).statuses[0]

  test('are one unless the request says more', async () => {
    expect(await hit({})).toMatchObject({ limit_remaining: 4 })
    expect(await hit({}, 3)).toMatchObject({ limit_remaining: 1 })
  })

  test("are the descriptor's own where it has some; none only asks", async () => {
    expect(await hit({ hits_addend: { value: 2 } }, 4)).toMatchObject({ limit_remaining: 3 })
    expect(await hit({ hits_addend: { value: 0 } }, 4)).toMatchObject({ code: 'OK', limit_remaining: 3 })
    await hit({}, 3)
    expect(await hit({ hits_addend: { value: 0 } })).toMatchObject({ code: 'OVER_LIMIT', limit_remaining: 0 })
  })

  test('that are negative are given back, and refuse no call', async () => {
    await hit({}, 5)
    expect(await hit({ hits_addend: { value: 2 }, is_negative_hits: true })).toMatchObject({ code: 'OK', limit_remaining: 2 })
    expect(await hit({ is_negative_hits: true }, 1)).toMatchObject({ code: 'OK', limit_remaining: 3 })
    expect(await hit({}, 4)).toMatchObject({ code: 'OVER_LIMIT' })
  })

  test('more than there ever are, are over the limit and take nothing', async () => {
    expect(await hit({}, 6)).toMatchObject({ code: 'OVER_LIMIT', limit_remaining: 5 })
  })
})

describe('a limit in the request', () => {
  const limited = (requests_per_unit: number, unit: string | number) => ({
    domain: 'edge',
    descriptors: [{ ...described(['ip', '1.1.1.1']), limit: { requests_per_unit, unit } }],
  })

  test('goes before the rule, and other numbers keep what was used', async () => {
    expect((await ask(limited(3, 'MINUTE'))).statuses[0]).toMatchObject({
      current_limit: { requests_per_unit: 3, unit: 'MINUTE' },
      limit_remaining: 2,
    })
    expect((await ask(limited(5, 'MINUTE'))).statuses[0]).toMatchObject({ limit_remaining: 3 })
    expect(await statusOf(['ip', '1.1.1.1'])).toMatchObject({ limit_remaining: 1 })
  })

  test('of zero lets nothing pass', async () => {
    expect((await ask(limited(0, 'SECOND'))).overall_code).toBe('OVER_LIMIT')
  })

  test.each(['SECOND', 'MINUTE', 'HOUR', 'DAY', 'MONTH', 'YEAR', 'WEEK'])('may be per %s', async (unit) => {
    expect((await ask(limited(7, unit))).statuses[0]).toMatchObject({ current_limit: { requests_per_unit: 7, unit } })
  })
})

describe('bad input is INVALID_ARGUMENT, says why and touches nothing:', () => {
  const ip = described(['ip', '1.1.1.1'])

  test.each([
    ['no domain', { domain: '', descriptors: [ip] }, 'domain "" must not be empty'],
    ['no descriptors', { domain: 'edge', descriptors: [] }, 'descriptors: 0 must be from 1 to 1000'],
    ['too many descriptors', { domain: 'edge', descriptors: Array(1001).fill(ip) }, 'descriptors: 1001 must be'],
    ['no entries', { domain: 'edge', descriptors: [ip, { entries: [] }] }, 'descriptors[1] must have entries'],
    [
      'a key that is empty',
      { domain: 'edge', descriptors: [ip, described(['', 'x'])] },
      'descriptors[1].entries[0]: key "" must not be empty',
    ],
    ['too many hits', { domain: 'edge', descriptors: [ip], hits_addend: 4e9 }, 'hits_addend 4000000000 must be at most 1000000000'],
    [
      'too many hits of a descriptor',
      { domain: 'edge', descriptors: [ip, { ...ip, hits_addend: { value: '18446744073709551615' } }] },
      'descriptors[1]: hits_addend',
    ],
    [
      'a unit that there is not',
      { domain: 'edge', descriptors: [ip, { ...ip, limit: { requests_per_unit: 1, unit: 99 } }] },
      'limit.unit 99 must be one of',
    ],
    [
      'a limit without a unit',
      { domain: 'edge', descriptors: [ip, { ...ip, limit: { requests_per_unit: 1 } }] },
      'limit.unit "UNKNOWN_UNIT" must be one of',
    ],
    [
      'a limit that is too high',
      { domain: 'edge', descriptors: [ip, { ...ip, limit: { requests_per_unit: 4e9, unit: 'SECOND' } }] },
      'limit.requests_per_unit 4000000000 must be at most',
    ],
  ])('%s', async (_, request, details) => {
    await expect(ask(request)).rejects.toMatchObject({ code: status.INVALID_ARGUMENT, details: expect.stringContaining(details) })
    expect(await statusOf(['ip', '1.1.1.1'])).toMatchObject({ limit_remaining: 1 })
  })

  test('bytes that are no message are refused, and the next caller is served', async () => {
    const path = '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit'
    const same = (bytes: Buffer) => bytes
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 60 }), async (bytes) => {
        const code = await new Promise<number>((resolve) => {
          const deadline = Date.now() + 60_000
          client.makeUnaryRequest(path, same, same, Buffer.from(bytes), new Metadata(), { deadline }, (error) =>
            resolve(error?.code ?? status.OK),
          )
        })
        // grpc-js says INTERNAL of what it cannot read.
        expect([status.OK, status.INVALID_ARGUMENT, status.INTERNAL]).toContain(code)
      }),
      { numRuns: 200, seed: 9 },
    )
    expect((await askOf(['ip', '3.3.3.3'])).overall_code).toBe('OK')
  })
})

test('a new configuration keeps what was used under a rule', async () => {
  await askOf(['path', '/other'])
  service.limiters.use(readConfig(CONFIG.replace('limit: 4, window: 7d', 'limit: 10, window: 7d'), 'test.yaml'))
  expect(await statusOf(['path', '/other'])).toMatchObject({ current_limit: { requests_per_unit: 10 }, limit_remaining: 8 })
})

describe('headers', () => {
  const IP = 'domains:\n  edge:\n    headers: STYLE\n    descriptors:\n      - { key: ip, limit: { type: gcra, rate: 1/s, burst: 2 } }\n'
  const MORE = `      - { key: path, limit: { type: fixedWindow, limit: 1, window: 1min } }
      - { key: quiet, shadow: true, limit: { type: slidingLog, limit: 1, window: 1h } }
      - { key: free, unlimited: true }
`
  const use = (style: string) => service.limiters.use(readConfig(IP.replace('STYLE', style) + MORE, 'test.yaml'))
  const headersOf = async (...descriptors: object[]) =>
    Object.fromEntries((await ask({ domain: 'edge', descriptors })).response_headers_to_add.map(({ key, value }) => [key, value]))
  const ip = described(['ip', '1.1.1.1'])

  test.each([
    ['draft-11', { 'ratelimit-policy': '"default";q=2;w=2', ratelimit: '"default";r=1;t=1' }],
    ['draft-7', { 'ratelimit-policy': '2;w=2', ratelimit: 'limit=2, remaining=1, reset=1' }],
    ['draft-6', { 'ratelimit-limit': '2', 'ratelimit-remaining': '1', 'ratelimit-reset': '1' }],
    ['legacy', { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '1001' }],
    ['none', {}],
  ])('%s', async (style, expected) => {
    use(style)
    expect(await headersOf(ip)).toEqual(expected)
  })

  test('tell who is refused when to come back', async () => {
    use('draft-6')
    await headersOf(ip)
    expect(await headersOf(ip)).toEqual({ 'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': '2' })
    expect(await headersOf(ip)).toMatchObject({ 'ratelimit-remaining': '0', 'ratelimit-reset': '1', 'retry-after': '1' })
    // No wait helps.
    expect(await headersOf({ ...ip, hits_addend: { value: 3 } })).not.toHaveProperty('retry-after')
    // Who gives something back passes, though nothing is left.
    expect(await headersOf({ ...ip, hits_addend: { value: 0 }, is_negative_hits: true })).not.toHaveProperty('retry-after')
  })

  test('are of the descriptor that binds: the longest wait, or else the fewest left', async () => {
    use('draft-6')
    const path = described(['path', '/'])
    expect(await headersOf(ip, path)).toMatchObject({ 'ratelimit-limit': '1', 'ratelimit-remaining': '0' })
    expect(await headersOf(ip, path)).toMatchObject({ 'ratelimit-limit': '1', 'retry-after': '20' })
  })

  test('are not of what counts nothing or is in shadow', async () => {
    use('draft-6')
    const unseen = [described(['free', 'x']), described(['quiet', 'x']), described(['other', 'x'])]
    expect(await headersOf(...unseen)).toEqual({})
    expect(await headersOf(...unseen, ip)).toMatchObject({ 'ratelimit-limit': '2' })
  })
})

test('a store that fails under throw is an error, never a code UNKNOWN', async () => {
  const redis = new Redis({ host: '127.0.0.1', port: 1, maxRetriesPerRequest: 0, retryStrategy: () => 1000 })
  redis.on('error', () => undefined)
  const outage = await serviceOn(CONFIG.replace('shadow: true', 'onStoreError: allow'), redisStore(redis))
  const caller = connected(outage)
  await expect(ask({ domain: 'edge', descriptors: [described(['ip', '1.1.1.1'])] }, caller)).rejects.toMatchObject({
    code: status.UNAVAILABLE,
  })
  expect(await ask({ domain: 'edge', descriptors: [described(['quiet', 'x'])] }, caller)).toMatchObject({ overall_code: 'OK' })
  caller.close()
  await outage.stop(0)
  redis.disconnect()
  expectNoFailure(outage)
})

test('where there are tokens, one must be sent', async () => {
  const guarded = await serviceOn(CONFIG, undefined, new Tokens(['a-token-that-is-long-enough']))
  const caller = connected(guarded)
  const request = { domain: 'edge', descriptors: [described(['ip', '1.1.1.1'])] }
  await expect(ask(request, caller)).rejects.toMatchObject({ code: status.UNAUTHENTICATED })
  const metadata = new Metadata()
  metadata.set('authorization', 'Bearer a-token-that-is-long-enough')
  expect(await ask(request, caller, metadata)).toMatchObject({ statuses: [{ limit_remaining: 1 }] })
  caller.close()
  await guarded.stop(0)
  expectNoFailure(guarded)
})

test('no two descriptors are counted under one key', () => {
  const entry = fc.record({ key: fc.string({ maxLength: 4 }), value: fc.string({ maxLength: 4 }) })
  const entries = fc.array(entry, { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(entries, entries, (a, b) => {
      expect(keyOf(a) === keyOf(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
    }),
    { numRuns: 2_000, seed: 9 },
  )
  expect(keyOf([{ key: 'a', value: '1:b' }])).not.toBe(keyOf([{ key: 'a1:', value: 'b' }]))
})

test.each([
  [{ type: 'gcra', rate: '10/s', burst: 20 }, 10, 'SECOND'],
  [{ type: 'tokenBucket', capacity: 5, refill: '90/min' }, 90, 'MINUTE'],
  [{ type: 'leakyBucket', capacity: 5, leak: { permits: 1, per: '1d' } }, 1, 'DAY'],
  [{ type: 'slidingWindow', limit: 60, window: '1min' }, 60, 'MINUTE'],
  [{ type: 'slidingLog', limit: 5, window: '10s' }, 30, 'MINUTE'],
  [{ type: 'fixedWindow', limit: 5, window: '11s' }, 5, 'UNKNOWN_UNIT'],
  [{ type: 'fixedWindow', limit: 1, window: '7d' }, 1, 'WEEK'],
  [{ type: 'gcra', rate: '10/min', burst: 0 }, 0, 'SECOND'],
  [{ type: 'fixedWindow', limit: 0, window: '1h' }, 0, 'SECOND'],
])('%j is %i per %s', (json, requests_per_unit, unit) => {
  expect(perUnit(limitFrom(json))).toEqual({ requests_per_unit, unit })
})
