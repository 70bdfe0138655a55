/** The types of the adapters. Compiled, not run. */
import type { Request, RequestHandler } from 'express'
import type { FastifyRequest } from 'fastify'
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import Koa from 'koa'
import { byIp, byUser, everyone, rateLimit as forExpress } from '../../src/adapters/express.ts'
import { rateLimit as forFastify } from '../../src/adapters/fastify.ts'
import { rateLimit as forFetch } from '../../src/adapters/fetch.ts'
import { rateLimit as forHono, type RateLimitVariables } from '../../src/adapters/hono.ts'
import { rateLimit as forKoa, type RateLimitState } from '../../src/adapters/koa.ts'
import { RateLimitModule } from '../../src/adapters/nest.ts'
import { limitedFetch } from '../../src/client/index.ts'
import { type AsyncStore, createLimiter, type Decision, fixedWindow, gcra } from '../../src/index.ts'

const limit = gcra({ rate: '10/s', burst: 20 })
const limiter = createLimiter(
  { user: limit, all: fixedWindow({ limit: 5, window: '1d' }) },
  { plans: { pro: { user: limit, all: fixedWindow({ limit: 9, window: '1d' }) } } },
)

// Each fits where its framework wants it.
export const ofExpress: RequestHandler = forExpress({ limit })
export const ofHono: MiddlewareHandler = forHono({ limit })
new Hono<{ Variables: RateLimitVariables }>().use(forHono({ limit })).get('/', (c) => {
  const decision: Decision | undefined = c.get('rateLimit')
  return c.text(String(decision?.remaining))
})
new Koa<RateLimitState>().use(forKoa({ limit })).use((ctx) => {
  const decision: Decision | undefined = ctx.state.rateLimit
  ctx.body = decision?.remaining
})
export const ofFetch: (request: globalThis.Request, context: { id: number }) => Promise<Response> = forFetch({ limit })(
  (_request: globalThis.Request, context: { id: number }) => new Response(`${context.id}`),
)

// The decision is on Express's own request.
export const onRequest = (request: Request): Decision | undefined => request.rateLimit

// Functions get what their parameters are annotated with.
forExpress({ limit, key: byUser((request: Request) => request.get('x-user')), skip: (request: Request) => request.path === '/' })
forFastify({ limit, key: (request: FastifyRequest) => request.ip })
forHono({ limit, key: (c: Context) => c.req.path })

// Names of limits and of plans are known.
forExpress({ limiter, key: { user: byUser(() => 'u'), all: everyone }, cost: { user: 1, all: 2 }, plan: () => 'pro' })
// @ts-expect-error: a key is missing
forExpress({ limiter, key: { user: byUser(() => 'u') } })
// @ts-expect-error: there is no such limit
forExpress({ limiter, cost: { user: 1, all: 2, tenant: 3 } })
// @ts-expect-error: there is no such plan
forExpress({ limiter, plan: () => 'gold' })
// @ts-expect-error: there is no such form of headers
forExpress({ limit, headers: 'draft-12' })
// @ts-expect-error: limits or a limiter, not both
forExpress({ limit, limiter })
// @ts-expect-error: one of the two
forExpress({})

// A text is no key: it would be one limit for all.
// @ts-expect-error
forExpress({ limit, key: 'ip' })
// @ts-expect-error
forFastify({ limit, key: 'x-api-key' })
// @ts-expect-error
forHono({ limiter, key: { user: byUser(() => 'u'), all: 'all' } })
// @ts-expect-error: one for another limit is none for this
forKoa({ limit, key: { daily: 'x' } })
// @ts-expect-error: neither is what `everyone` answers
forFetch({ limit, key: everyone() })
// @ts-expect-error
RateLimitModule.forRoot({ limit, key: 'ip' })
forFetch({ limit, key: everyone })

// A header that carries an address is believed from named networks.
byIp({ header: 'cf-connecting-ip', from: ['10.0.0.0/8'], ipv6Subnet: 64 })
// @ts-expect-error: from whom?
byIp({ header: 'cf-connecting-ip' })
// @ts-expect-error: what do they say?
byIp({ from: ['10.0.0.0/8'] })
// @ts-expect-error: one of the two
byIp({ trustProxy: 1, header: 'cf-connecting-ip', from: ['10.0.0.0/8'] })
// @ts-expect-error: everyone?
byIp({ trustProxy: true })

// A fetch stays the fetch that it was, whatever limiter paces it.
declare const remote: AsyncStore
export const polite: typeof fetch = limitedFetch(fetch, { limiter: createLimiter(limit) })
export const shared: typeof fetch = limitedFetch(fetch, { limiter: createLimiter(limit, { name: 'partner', store: remote }) })
