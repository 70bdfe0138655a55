/**
 * Random requests: each gets an answer that the OpenAPI document knows, never a 500, never a hang,
 * and a refused request touches nothing.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerJson } from '../src/http/answer-json.ts'
import { PageFile } from '../src/page/page.ts'
import { call, sent } from './support/client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const RUNS = { numRuns: 300, seed: 9 }

let service: TestService

beforeAll(async () => {
  service = await serviceOn()
})

afterAll(async () => {
  await service.stop(0)
  expectNoFailure(service)
})

/** Nearly right: what a caller sends who has misread the guide. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -0, 1, 1.5, -1, 1e9, 1e9 + 1, 1e308, '', 'api', 'two', 'pro', 'u1', [], {}, ['u1'], {
    requests: 'u1',
  }),
  fc.constantFrom<unknown>(
    { requests: 1, tokens: 1 },
    { __proto__: 'x' },
    JSON.parse('{"__proto__":"x"}'),
    'constructor',
    '\u0000',
    '\ud800',
  ),
  fc.string(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.jsonValue({ maxDepth: 2 }),
)
const name = fc.constantFrom('limiter', 'key', 'cost', 'plan', 'verb', 'maxWaitMs', 'atMs', 'timeoutMs', 'decisions', '__proto__', 'x')
const limiter = fc.constantFrom('api', 'two', 'shaped', 'quiet', 'nobody')
const verb = fc.constantFrom('consume', 'peek', 'reserve', 'refund', 'acquire')
const right = fc.record({ limiter, key: fc.constantFrom('u1', 'u2'), verb }, { requiredKeys: ['limiter', 'key'] })
const nearly = fc
  .tuple(right, fc.array(fc.tuple(name, odd), { maxLength: 2 }))
  .map(([body, changes]) => ({ ...body, ...Object.fromEntries(changes) }))
const bodies = fc.oneof(nearly, fc.record({ decisions: fc.array(nearly, { maxLength: 5 }) }), odd)

/** Everything that is held. A clock that stands still makes it comparable. */
async function held(): Promise<string> {
  const keys = ['api', 'two', 'shaped', 'quiet'].flatMap((each) => ['u1', 'u2'].map((key) => `/v1/limiters/${each}/keys/${key}?cost=0`))
  const bodies = await Promise.all(keys.map(async (path) => (await call(service.url, 'GET', path)).body.parts))
  return JSON.stringify(bodies)
}

test('an answer is written as JSON.stringify would', () => {
  const label = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
  const outcome = fc.constantFrom<'allowed' | 'limited' | 'impossible'>('allowed', 'limited', 'impossible')
  const us = fc.oneof(fc.nat(), fc.integer({ min: 0, max: 5e15 })).map((each) => each / 1000)
  const figures = {
    outcome,
    limit: fc.nat(1e9),
    remaining: fc.nat(1e9),
    retryAfterMs: fc.oneof(us, fc.constant(Number.POSITIVE_INFINITY)),
    resetAfterMs: us,
    delayMs: us,
  }
  const parts = fc.dictionary(label, fc.record(figures, { noNullPrototype: true }), { minKeys: 1, maxKeys: 3, noNullPrototype: true })
  const flags = { allowed: fc.boolean(), degraded: fc.boolean(), shadow: fc.boolean() }
  const answers = fc.record({ limiter: label, ...figures, ...flags, atMs: us, policy: label, parts })
  fc.assert(
    fc.property(answers, (answer) => {
      expect(JSON.parse(answerJson(answer))).toEqual(JSON.parse(JSON.stringify(answer)))
    }),
    { numRuns: 1_000, seed: 9 },
  )
  const refunded = { limiter: 'api', refunded: true } as const
  expect(answerJson(refunded)).toBe(JSON.stringify(refunded))
})

describe('fuzzed', () => {
  test('decisions', async () => {
    const seen = new Set<number>()
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const before = await held()
        const { status } = await call(service.url, 'POST', '/v1/decide', body)
        seen.add(status)
        expect([200, 400, 404]).toContain(status)
        if (status !== 200) expect(await held()).toBe(before)
      }),
      RUNS,
    )
    expect([...seen].sort(), 'each kind of answer was seen').toEqual([200, 400, 404])
  })

  test('waits, which here may not wait', async () => {
    await fc.assert(
      fc.asyncProperty(bodies, async (body) => {
        const atOnce = typeof body === 'object' && body !== null && !Array.isArray(body) ? { ...body, timeoutMs: 0 } : body
        const { status } = await call(service.url, 'POST', '/v1/acquire', atOnce)
        expect([200, 400, 404, 429]).toContain(status)
      }),
      RUNS,
    )
  })

  test('texts that are no JSON', async () => {
    const pieces = fc.array(
      fc.oneof(fc.constantFrom('{', '}', '"', ':', ',', '[', ']', 'limiter', '\\u', '1e', '\u0000'), fc.string({ maxLength: 3 })),
    )
    await fc.assert(
      fc.asyncProperty(pieces, async (parts) => {
        const options = { body: parts.join(''), headers: { 'content-type': 'application/json' } }
        const { status } = await call(service.url, 'POST', '/v1/decide', undefined, options)
        expect([400, 404]).toContain(status)
      }),
      RUNS,
    )
  })

  test('paths', async () => {
    const part = fc.oneof(
      fc.constantFrom('v1', 'limiters', 'api', 'keys', 'u1', '..', '%', '%2f', '%ff', ':', '', '?cost=1', '?cost=%'),
      fc.string({ unit: 'grapheme', maxLength: 6 }).map(encodeURIComponent),
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'PATCH'),
        fc.array(part, { maxLength: 6 }),
        async (method, parts) => {
          const { status } = await call(service.url, method, `/${parts.join('/')}`)
          expect([200, 204, 400, 404, 405, 415]).toContain(status)
        },
      ),
      RUNS,
    )
  })

  test('headers', async () => {
    const page = new Map([['/', new PageFile(Buffer.from('<title>Sluice</title>'), 'index.html', false)]])
    const paged = await serviceOn(CONFIG, undefined, undefined, { page })
    const names = ['host', 'origin', 'sec-fetch-site', 'sec-fetch-mode', 'if-none-match', 'accept-encoding', 'authorization']
    const piece = fc.constantFrom(
      'localhost',
      ':',
      '[',
      ']',
      '::1',
      '127.0.0.1',
      'http://',
      'null',
      '*',
      ',',
      ';q=0',
      'gzip',
      'W/"',
      '"',
      'cross-site',
      '.',
      ' ',
    )
    const value = fc.array(fc.oneof(piece, fc.stringMatching(/^[!-~]{0,5}$/)), { maxLength: 5 }).map((pieces) => pieces.join(''))
    const headers = fc.dictionary(fc.constantFrom(...names), value, { noNullPrototype: true })
    await fc.assert(
      fc.asyncProperty(fc.constantFrom('/', '/healthz', '/v1/limiters'), headers, async (path, given) => {
        const { status } = await sent(paged.url, 'GET', path, given)
        expect([200, 304, 403]).toContain(status)
      }),
      RUNS,
    )
    await paged.stop(0)
    expectNoFailure(paged)
  })
})
