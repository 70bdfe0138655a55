/** Requests of the tab Try: on the wire, as curl and as TypeScript. */
import { describe, expect, test } from 'vitest'
import { codeOf, curlOf, decisionIn, entriesOf, FieldError, literal, shownRequest, type TryInput, wireRequest } from '../src/try/request.ts'

const asked = (part: Partial<TryInput> = {}): TryInput => ({
  verb: 'consume',
  limiter: 'api',
  key: 'user:42',
  cost: '1',
  plan: '',
  maxWaitMs: '1000',
  timeoutMs: '2000',
  actual: '1',
  of: '',
  domain: '',
  entries: '',
  token: '',
  ...part,
})
const bodyOf = (part: Partial<TryInput>) => JSON.parse(wireRequest(asked(part)).body ?? 'null')

describe('a question on the wire', () => {
  test('says no more than it must', () => {
    expect(bodyOf({})).toEqual({ limiter: 'api', key: 'user:42' })
    expect(bodyOf({ cost: '3', plan: 'pro' })).toEqual({ limiter: 'api', key: 'user:42', cost: 3, plan: 'pro' })
  })

  test('has what its verb takes, and nothing of the others', () => {
    expect(bodyOf({ verb: 'reserve' })).toEqual({ limiter: 'api', key: 'user:42', verb: 'reserve', maxWaitMs: 1000 })
    expect(bodyOf({ verb: 'acquire' })).toEqual({ limiter: 'api', key: 'user:42', timeoutMs: 2000 })
    expect(bodyOf({ verb: 'refund', plan: 'pro' })).toEqual({ limiter: 'api', key: 'user:42', verb: 'refund' })
    expect(wireRequest(asked({ verb: 'acquire' })).path).toBe('/v1/acquire')
  })

  test('charges and settles at paths of their own', () => {
    const charge = wireRequest(asked({ verb: 'charge', cost: '1200', plan: 'pro' }))
    expect([charge.path, JSON.parse(charge.body ?? '')]).toEqual([
      '/v1/charge',
      { limiter: 'api', key: 'user:42', cost: 1200, plan: 'pro' },
    ])
    const of = '{"atMs":5,"parts":{"default":{"resetAfterMs":1}}}'
    const settle = wireRequest(asked({ verb: 'settle', cost: '3', actual: '{ "default": 7 }', of }))
    expect([settle.path, JSON.parse(settle.body ?? '')]).toEqual([
      '/v1/settle',
      { limiter: 'api', key: 'user:42', cost: 3, actual: { default: 7 }, of: JSON.parse(of) },
    ])
    for (const [part, field] of [
      [{ actual: 'much' }, 'actual'],
      [{ of: '' }, 'of'],
    ] as const) {
      expect(() => wireRequest(asked({ verb: 'settle', of, ...part }))).toThrow(expect.objectContaining({ field }))
    }
  })

  test('settles the last decision that charged something', () => {
    const answer = JSON.stringify({
      atMs: 5,
      outcome: 'allowed',
      remaining: 1,
      parts: { a: { resetAfterMs: 7, delayMs: 2, remaining: 1 } },
    })
    const needed = '{"atMs":5,"outcome":"allowed","parts":{"a":{"resetAfterMs":7,"delayMs":2}}}'
    for (const verb of ['consume', 'reserve', 'acquire'] as const) expect(decisionIn(wireRequest(asked({ verb })), answer)).toBe(needed)
    for (const verb of ['peek', 'refund', 'charge', 'look', 'reset'] as const) {
      expect(decisionIn(wireRequest(asked({ verb })), answer)).toBeUndefined()
    }
    expect(decisionIn(wireRequest(asked()), '{"code":"COST"}')).toBeUndefined()
  })

  test('takes a cost for each limit, and refuses what is neither', () => {
    expect(bodyOf({ cost: '{ "requests": 1, "tokens": 5 }' }).cost).toEqual({ requests: 1, tokens: 5 })
    expect(() => wireRequest(asked({ cost: 'much' }))).toThrow(FieldError)
  })

  test('about one key names it in the path, whatever is in it', () => {
    const key = 'a/b?c=%20 ✓'
    expect(wireRequest(asked({ verb: 'look', key, cost: '2', plan: 'pro' }))).toEqual({
      method: 'GET',
      path: `/v1/limiters/api/keys/${encodeURIComponent(key)}?cost=2&plan=pro`,
      headers: {},
      body: undefined,
    })
    expect(wireRequest(asked({ verb: 'reset' }))).toMatchObject({
      method: 'DELETE',
      path: '/v1/limiters/api/keys/user%3A42',
      body: undefined,
    })
  })

  test('asks a rule of a domain as Envoy would', () => {
    const rule = { verb: 'rule', domain: 'edge', entries: ' tenant = a=b ,verb=write' } as const
    const entries = [
      { key: 'tenant', value: 'a=b' },
      { key: 'verb', value: 'write' },
    ]
    expect(wireRequest(asked(rule)).path).toBe('/json')
    expect(bodyOf(rule)).toEqual({ domain: 'edge', descriptors: [{ entries }] })
    expect(bodyOf({ ...rule, cost: '3' })).toEqual({ domain: 'edge', descriptors: [{ entries }], hitsAddend: 3 })
    for (const wrong of ['', 'tenant', '=a', 'a=1,,']) expect(() => wireRequest(asked({ ...rule, entries: wrong }))).toThrow(FieldError)
    expect(entriesOf('edge', 'edge: tenant, verb = write')).toBe('tenant=example, verb=write')
    expect(entriesOf('a: b', 'a: b: path = /static/*')).toBe('path=/static/example')
  })

  test('carries a token for everything: reading may need one', () => {
    expect(wireRequest(asked({ token: 'secret' })).headers).toEqual({ 'content-type': 'application/json', authorization: 'Bearer secret' })
    expect(wireRequest(asked({ token: 'secret', verb: 'reset' })).headers).toEqual({ authorization: 'Bearer secret' })
    expect(wireRequest(asked({ token: 'secret', verb: 'look' })).headers).toEqual({ authorization: 'Bearer secret' })
  })
})

test('as curl, as TypeScript, and as it is sent', () => {
  const reset = wireRequest(asked({ verb: 'reset', token: "it's" }))
  expect(curlOf(reset, 'http://x')).toBe(`curl -i -X DELETE -H 'authorization: Bearer it'\\''s' 'http://x/v1/limiters/api/keys/user%3A42'`)
  expect(codeOf(wireRequest(asked({ verb: 'look' })), 'http://x')).toContain("await fetch('http://x/v1/limiters/api/keys/user%3A42')\n")
  expect(shownRequest(wireRequest(asked()))).toBe(
    'POST /v1/decide HTTP/1.1\ncontent-type: application/json\n\n{\n  "limiter": "api",\n  "key": "user:42"\n}',
  )
})

test('a literal means what it was made of', () => {
  const value = { a: `'"\\\n`, 'b-c': [1, null, true], d: { e: 1.5 } }
  expect(new Function(`return ${literal(value)}`)()).toEqual(value)
})
