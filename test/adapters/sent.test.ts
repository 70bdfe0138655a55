/**
 * When a `Response` has been sent, by the adapters that are given one: whole, cut off, left, and
 * without a body.
 */
import { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import * as forFetch from '../../src/adapters/fetch.ts'
import * as forHono from '../../src/adapters/hono.ts'
import { createLimiter, fixedWindow } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

type Handler = (request: Request) => Response | Promise<Response>

/** What puts limits before a handler, with the outcomes that `settle` was asked about. */
type Limited = (handler: Handler, options: object) => (request: Request) => Promise<Response>

const ADAPTERS: readonly (readonly [string, Limited])[] = [
  ['fetch', (handler, options) => forFetch.rateLimit(options as never)(handler)],
  [
    'Hono',
    (handler, options) => {
      const app = new Hono()
      app.use(forHono.rateLimit(options as never))
      app.all('/', (c) => handler(c.req.raw))
      return async (request) => app.fetch(request)
    },
  ],
]

const bytes = (text: string) => new TextEncoder().encode(text)

describe.each(ADAPTERS)('%s', (_name, limited) => {
  function serve(handler: Handler) {
    const outcomes: object[] = []
    const limiter = createLimiter(fixedWindow({ limit: 100, window: '1min' }), { clock: fakeClock() })
    const settle = (outcome: object) => {
      outcomes.push(outcome)
      return 7
    }
    const options = { limiter, key: () => 'k', cost: 50, settle }
    const used = () => 100 - limiter.peek('k').remaining
    return { ask: limited(handler, options), outcomes, used }
  }

  const url = 'http://127.0.0.1/'

  test('a body that is read to its end', async () => {
    const pieces = ['one ', 'two ', 'three']
    const body = () => ReadableStream.from(pieces.map(bytes))
    const { ask, outcomes, used } = serve(() => new Response(body(), { status: 201, headers: { 'x-own': 'yes' } }))
    const response = await ask(new Request(url))
    expect([response.status, response.headers.get('x-own'), response.headers.get('ratelimit')]).toEqual([201, 'yes', '"default";r=50;t=60'])
    expect([outcomes, used()]).toEqual([[], 50])
    expect(await response.text()).toBe('one two three')
    expect([outcomes, used()]).toEqual([[{ status: 201, aborted: false }], 7])
  })

  test('a body that its reader leaves, once, and its source is told', async () => {
    let reason: unknown
    const body = new ReadableStream({
      pull: (controller) => controller.enqueue(bytes('more')),
      cancel: (given) => {
        reason = given
      },
    })
    const { ask, outcomes, used } = serve(() => new Response(body))
    const reader = (await ask(new Request(url))).body?.getReader()
    await reader?.read()
    expect(outcomes).toEqual([])
    await reader?.cancel('gone')
    expect([outcomes, used(), reason]).toEqual([[{ status: 200, aborted: true }], 7, 'gone'])
  })

  test('a body that is left while its next piece is awaited', async () => {
    const { ask, outcomes } = serve(() => new Response(new ReadableStream({ start: (controller) => controller.enqueue(bytes('one')) })))
    const reader = (await ask(new Request(url))).body?.getReader()
    await reader?.read()
    const next = reader?.read()
    await reader?.cancel()
    expect(await next).toEqual({ done: true, value: undefined })
    expect(outcomes).toEqual([{ status: 200, aborted: true }])
  })

  test('a body whose source fails', async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error('the model is gone')) })
    const { ask, outcomes } = serve(() => new Response(body))
    await expect((await ask(new Request(url))).text()).rejects.toThrow('the model is gone')
    expect(outcomes).toEqual([{ status: 200, aborted: true }])
  })

  test.each([
    ['no body', new Request(url), 204, () => new Response(null, { status: 204 })],
    ['HEAD', new Request(url, { method: 'HEAD' }), 200, () => new Response('nobody reads it')],
  ])('%s is sent at once', async (_what, request, status, handler) => {
    const { ask, outcomes } = serve(handler)
    await ask(request)
    expect(outcomes).toEqual([{ status, aborted: false }])
  })

  test('a client that left before there was an answer', async () => {
    const client = new AbortController()
    const { ask, outcomes } = serve(() => {
      client.abort()
      return new Response('nobody reads it')
    })
    await ask(new Request(url, { signal: client.signal }))
    expect(outcomes).toEqual([{ status: 499, aborted: true }])
  })
})
