/** What a middleware cannot guess has to be said: without it none is made. */
import Fastify from 'fastify'
import { describe, expect, test } from 'vitest'
import * as express from '../../src/adapters/express.ts'
import { rateLimit as fastifyRateLimit } from '../../src/adapters/fastify.ts'
import * as fetching from '../../src/adapters/fetch.ts'
import * as hono from '../../src/adapters/hono.ts'
import * as koa from '../../src/adapters/koa.ts'
import { RateLimitModule } from '../../src/adapters/nest.ts'
import * as node from '../../src/adapters/node.ts'
import { createLimiter, gcra, leakyBucket, tokenBucket } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'

const limit = gcra({ rate: '10/s', burst: 20 })
const store = redisStore({ send: () => Promise.reject(new Error('connection refused')) })
const name = 'api'

/** Makes a middleware with these options, in each way there is. */
const MAKERS: readonly (readonly [name: string, make: (options: object) => unknown])[] = [
  ['Express', (options) => express.rateLimit(options as never)],
  ['Koa', (options) => koa.rateLimit(options as never)],
  ['Hono', (options) => hono.rateLimit(options as never)],
  ['node:http', (options) => node.rateLimit(options as never)],
  ['fetch', (options) => fetching.rateLimit(options as never)],
  ['Nest', (options) => RateLimitModule.forRoot(options as never)],
  ['Fastify', (options) => Fastify().register(fastifyRateLimit(options as never))],
]

async function refusalOf(make: () => unknown): Promise<unknown> {
  try {
    await make()
  } catch (error) {
    return error
  }
  return undefined
}

const POLICIES = ['local', 'allow', 'deny', 'throw'] as const

describe.each(MAKERS)('%s: on a store that answers later, what happens when it is away', (_name, make) => {
  const choices = expect.stringMatching(
    /'local': this process decides .* 'allow': all pass. 'deny': all are refused with 503. 'throw': all fail/,
  )

  test.each([
    ['limit', () => ({ limit, limiterOptions: { name, store } }), /limiterOptions: \{ \.\.\. \}/],
    ['limit found from the request', () => ({ limit: () => limit, limiterOptions: { name, store } }), /limiterOptions: \{ \.\.\. \}/],
    ['limiter', () => ({ limiter: createLimiter(limit, { name, store }) }), /createLimiter\(limit, \{ \.\.\. \}\)/],
  ])('is not left to chance, of a %s', async (_of, options, where) => {
    const refusal = await refusalOf(() => make(options()))
    expect(refusal).toMatchObject({ code: 'CONFIG', message: choices })
    expect(refusal).toMatchObject({ message: expect.stringMatching(where) })
  })

  test('is what was said', async () => {
    for (const onStoreError of POLICIES) {
      expect(await refusalOf(() => make({ limit, limiterOptions: { name, store, onStoreError } }))).toBeUndefined()
      expect(await refusalOf(() => make({ limiter: createLimiter(limit, { name, store, onStoreError }) }))).toBeUndefined()
    }
  })

  test('a leaky bucket in which no request would wait is refused with what to write', async () => {
    const leaky = leakyBucket({ capacity: 10, leak: '1/s' })
    const refused = { code: 'CONFIG', message: expect.stringMatching(/limit 'mail' .* Say maxWaitMs: 5_000, or take tokenBucket/) }
    expect(await refusalOf(() => make({ limit: { mail: leaky } }))).toMatchObject(refused)
    expect(await refusalOf(() => make({ limiter: createLimiter({ all: limit, mail: leaky }), maxWaitMs: 0 }))).toMatchObject(refused)
    expect(await refusalOf(() => make({ limit: leaky, maxWaitMs: 5_000 }))).toBeUndefined()
    expect(await refusalOf(() => make({ limit: tokenBucket({ capacity: 10, refill: '1/s' }) }))).toBeUndefined()
  })
})

test('a leaky bucket found from a request goes to the error handler', async () => {
  const limited = fetching.rateLimit({ limit: () => leakyBucket({ capacity: 10, leak: '1/s' }), key: () => 'ann' })(() => new Response())
  await expect(async () => limited(new Request('http://api.test'))).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining('maxWaitMs'),
  })
})

test('the verbs of a limiter go on to throw where nothing was said', async () => {
  const limiter = createLimiter(limit, { name, store })
  expect(limiter.onStoreError).toBeUndefined()
  await expect(limiter.consume('ann')).rejects.toMatchObject({ code: 'STORE' })
})
