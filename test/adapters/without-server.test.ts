/**
 * Requests that no server of Node made: those of AWS Lambda, and those that tests inject. Their
 * responses tell when they are sent, and not always when they are closed.
 */
import { configure } from '@codegenie/serverless-express'
import express from 'express'
import Fastify from 'fastify'
import { describe, expect, test, vi } from 'vitest'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import type { HttpOutcome } from '../../src/http/index.ts'
import { concurrency, createLimiter, fixedWindow } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** As the gateway of AWS sends it. */
const EVENT = {
  httpMethod: 'GET',
  path: '/',
  multiValueHeaders: { host: ['example.org'] },
  multiValueQueryStringParameters: {},
  requestContext: { identity: { sourceIp: '203.0.113.7' } },
  body: null,
  isBase64Encoded: false,
}

/** Serves one request, and answers with its status. */
const KINDS: readonly (readonly [string, (options: object) => Promise<number>])[] = [
  [
    'Express on AWS Lambda',
    async (options) => {
      const app = express()
      app.use(forExpress.rateLimit(options as never))
      app.get('/', (_request, response) => {
        response.send('hello')
      })
      const handler = configure({ app }) as unknown as (event: object, context: object) => Promise<{ statusCode: number }>
      return (await handler(EVENT, {})).statusCode
    },
  ],
  [
    'Fastify, injected',
    async (options) => {
      const app = Fastify()
      await app.register(forFastify.rateLimit(options as never))
      app.get('/', async () => 'hello')
      return (await app.inject('/')).statusCode
    },
  ],
]

test('what was answered on AWS Lambda before it was decided on holds nothing', async () => {
  const limiter = createLimiter(concurrency({ max: 1 }))
  const app = express()
  app.use((_request, response, next) => {
    next()
    response.status(503).send('too slow')
  })
  let decide = (_key: string) => {}
  const key = () => new Promise<string>((resolve) => (decide = resolve))
  app.use(forExpress.rateLimit({ limiter, key }))
  const handler = configure({ app }) as unknown as (event: object, context: object) => Promise<{ statusCode: number }>
  expect((await handler(EVENT, {})).statusCode).toBe(503)
  decide('all')
  // By then it is decided on.
  await new Promise((resolve) => setImmediate(resolve))
  expect(limiter.inflight()).toBe(0)
})

describe.each(KINDS)('%s', (_name, serve) => {
  test('is settled once, by a response that was sent', async () => {
    const outcomes: HttpOutcome[] = []
    const limiter = createLimiter(
      { bytes: fixedWindow({ limit: 100, window: '1min' }), inflight: concurrency({ max: 1 }) },
      { clock: fakeClock() },
    )
    const settle = (outcome: HttpOutcome) => {
      outcomes.push(outcome)
      return { bytes: 7, inflight: 1 }
    }
    const options = { limiter, key: () => 'all', cost: { bytes: 50, inflight: 1 }, settle }
    expect(await serve(options)).toBe(200)
    await vi.waitFor(() => expect(limiter.inflight()).toBe(0), { timeout: 10_000 })
    expect(outcomes).toEqual([{ status: 200, aborted: false }])
    expect(limiter.peek('all').parts.bytes.remaining).toBe(93)
    // The place is free again.
    expect(await serve(options)).toBe(200)
  })

  test('is limited by its address', async () => {
    const limiter = createLimiter(fixedWindow({ limit: 1, window: '1min' }), { clock: fakeClock() })
    expect([await serve({ limiter }), await serve({ limiter })]).toEqual([200, 429])
  })
})
