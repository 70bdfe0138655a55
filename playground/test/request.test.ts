import { describe, expect, test } from 'vitest'
import { type Asked, CostError, codeOf, curlOf, literal, shownRequest, wireRequest } from '../src/try/request.ts'

const asked = (part: Partial<Asked> = {}): Asked => ({
  verb: 'consume',
  limiter: 'api',
  key: 'user:42',
  cost: '1',
  plan: '',
  maxWaitMs: '1000',
  timeoutMs: '2000',
  atMs: '',
  token: '',
  ...part,
})
const bodyOf = (part: Partial<Asked>) => JSON.parse(wireRequest(asked(part)).body ?? 'null')

describe('a question on the wire', () => {
  test('says no more than it must', () => {
    expect(bodyOf({})).toEqual({ limiter: 'api', key: 'user:42' })
    expect(bodyOf({ cost: '3', plan: 'pro' })).toEqual({ limiter: 'api', key: 'user:42', cost: 3, plan: 'pro' })
  })

  test('has what its verb takes, and nothing of the others', () => {
    expect(bodyOf({ verb: 'reserve' })).toEqual({ limiter: 'api', key: 'user:42', verb: 'reserve', maxWaitMs: 1000 })
    expect(bodyOf({ verb: 'acquire' })).toEqual({ limiter: 'api', key: 'user:42', timeoutMs: 2000 })
    expect(bodyOf({ verb: 'refund', atMs: '5.5', plan: 'pro' })).toEqual({ limiter: 'api', key: 'user:42', verb: 'refund', atMs: 5.5 })
    expect(wireRequest(asked({ verb: 'acquire' })).path).toBe('/v1/acquire')
  })

  test('takes a cost for each limit, and refuses what is neither', () => {
    expect(bodyOf({ cost: '{ "requests": 1, "tokens": 5 }' }).cost).toEqual({ requests: 1, tokens: 5 })
    expect(() => wireRequest(asked({ cost: 'much' }))).toThrow(CostError)
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

  test('carries a token only where one is wanted: looking is free', () => {
    expect(wireRequest(asked({ token: 'secret' })).headers).toEqual({ 'content-type': 'application/json', authorization: 'Bearer secret' })
    expect(wireRequest(asked({ token: 'secret', verb: 'reset' })).headers).toEqual({ authorization: 'Bearer secret' })
    expect(wireRequest(asked({ token: 'secret', verb: 'look' })).headers).toEqual({})
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
