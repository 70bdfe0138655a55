/**
 * Features of single frameworks: scopes and routes of Fastify, decorators of Nest, Hono where there
 * is no Node, responses that may not be changed.
 */
import 'reflect-metadata'
import { createServer, type Server, type ServerResponse } from 'node:http'
import {
  connect as connectHttp2,
  createServer as createHttp2Server,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2'
import { type AddressInfo, connect as connectTcp } from 'node:net'
import { type ArgumentsHost, Catch, Controller, Get, HttpException, type INestApplication, Module } from '@nestjs/common'
import { APP_FILTER, NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import { Hono } from 'hono'
import { describe, expect, test, vi } from 'vitest'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import * as forFetch from '../../src/adapters/fetch.ts'
import * as forHono from '../../src/adapters/hono.ts'
import * as forNest from '../../src/adapters/nest.ts'
import * as forNode from '../../src/adapters/node.ts'
import { concurrency, createLimiter, gcra } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** Longer than a busy machine needs. */
const WAIT = { timeout: 30_000 }

const burst = (permits: number) => createLimiter(gcra({ rate: '1/s', burst: permits }), { clock: fakeClock() })

describe('Fastify', () => {
  async function statuses(app: FastifyInstance, ...urls: string[]): Promise<number[]> {
    const found: number[] = []
    for (const url of urls) found.push((await app.inject(url)).statusCode)
    return found
  }

  test('says how it is registered to who registers it as other plugins are', () => {
    const register = () => forFastify.rateLimit(fastify() as never)
    expect(register).toThrow('write app.register(rateLimit({ limit })) instead of app.register(rateLimit, { limit })')
  })

  test.each([undefined, null, 5])('%s is no set of options', (options) => {
    expect(() => forFastify.rateLimit(options as never)).toThrow('one of the two must be given')
  })

  test('limits the scope it is registered in, and the scopes within it', async () => {
    const app = fastify()
    app.get('/open', () => 'open')
    await app.register(async (scope) => {
      await scope.register(forFastify.rateLimit({ limiter: burst(1) }))
      scope.get('/limited', () => 'limited')
      await scope.register(async (inner) => {
        inner.get('/inner', () => 'inner')
      })
    })
    expect(await statuses(app, '/limited', '/inner', '/open', '/open')).toEqual([200, 429, 200, 200])
  })

  test('limits what is not found, so that looking for it is not free', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(1) }))
    expect(await statuses(app, '/nothing', '/nothing')).toEqual([404, 429])
  })

  test.each([undefined, false] as const)('a request without a route is limited as its scope is, where a route says %s', async (said) => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(1) }))
    app.get('/', { config: said === undefined ? {} : { rateLimit: said } }, () => 'found')
    // Plain JavaScript may give its handler a config, but Fastify knows of none, and it is no
    // route.
    const options: object = { config: { rateLimit: false } }
    app.setNotFoundHandler(options, (_request, reply) => reply.code(404).send())
    expect(await statuses(app, '/nothing', '/nothing')).toEqual([404, 429])
  })

  test('requests without a route may be skipped', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(1), skip: (request: FastifyRequest) => request.is404 }))
    app.get('/', () => 'limited')
    expect(await statuses(app, '/nothing', '/nothing', '/', '/')).toEqual([404, 404, 200, 429])
  })

  test('a route may go without, cost more, or have a limit of its own', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(3) }))
    app.get('/usual', () => 'usual')
    app.get('/free', { config: { rateLimit: false } }, () => 'free')
    app.get('/dear', { config: { rateLimit: { cost: 2 } } }, () => 'dear')
    app.get('/own', { config: { rateLimit: { limiter: burst(1) } } }, () => 'own')
    expect(await statuses(app, '/dear', '/usual', '/dear', '/usual', '/free')).toEqual([200, 200, 429, 429, 200])
    expect(await statuses(app, '/own', '/own')).toEqual([200, 429])
  })

  test('the route for HEAD that Fastify adds shares the limit of its route', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(9) }))
    app.get('/own', { config: { rateLimit: { limit: gcra({ rate: '1/h', burst: 1 }) } } }, () => 'own')
    const codes = [await app.inject('/own'), await app.inject({ method: 'HEAD', url: '/own' })].map(({ statusCode }) => statusCode)
    expect(codes).toEqual([200, 429])
  })

  test('a scope within a limited scope may be limited further', async () => {
    const [outer, inner] = [burst(3), burst(1)]
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: outer }))
    app.get('/outer', () => 'outer')
    await app.register(async (scope) => {
      await scope.register(forFastify.rateLimit({ limiter: inner }))
      scope.get('/inner', () => 'inner')
    })
    expect(await statuses(app, '/inner', '/inner', '/outer', '/outer')).toEqual([200, 429, 200, 429])
  })

  test('a limit of a route’s own counts once, by the innermost plugin', async () => {
    const own = burst(3)
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(9), key: () => 'outer' }))
    await app.register(async (scope) => {
      await scope.register(forFastify.rateLimit({ limiter: burst(9), key: () => 'inner' }))
      scope.get('/own', { config: { rateLimit: { limiter: own } } }, () => 'own')
    })
    expect(await statuses(app, '/own', '/own', '/own', '/own')).toEqual([200, 200, 200, 429])
    expect([own.peek('inner').remaining, own.peek('outer').remaining]).toEqual([0, 3])
  })

  test('options of a route count also if it was made before the plugin was loaded', async () => {
    const app = fastify()
    app.register(forFastify.rateLimit({ limiter: burst(3) }))
    const rateLimit = { limit: gcra({ rate: '1/h', burst: 1 }) }
    app.get('/own', { config: { rateLimit } }, () => 'own')
    app.get('/other', { config: { rateLimit } }, () => 'other')
    app.get('/free', { config: { rateLimit: false } }, () => 'free')
    app.get('/dear', { config: { rateLimit: { cost: 3 } } }, () => 'dear')
    app.get('/wrong', { config: { rateLimit: { max: 3 } } }, () => 'wrong')
    expect(await statuses(app, '/own', '/own', '/other', '/dear', '/free', '/wrong')).toEqual([200, 429, 200, 200, 200, 500])
    expect((await app.inject({ method: 'HEAD', url: '/own' })).statusCode).toBe(429)
  })

  test('options that another plugin gives a route later count', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(1) }))
    app.addHook('onRoute', (route) => {
      if (route.url === '/health') route.config = { ...route.config, ...{ rateLimit: false } }
    })
    app.get('/', () => 'limited')
    app.get('/health', () => 'fine')
    expect(await statuses(app, '/', '/', '/health')).toEqual([200, 429, 200])
  })

  test('a route that was made before the plugins were loaded counts once, too', async () => {
    const own = burst(2)
    const app = fastify()
    app.register(forFastify.rateLimit({ limiter: burst(9) }))
    app.register(forFastify.rateLimit({ limiter: burst(9) }))
    app.get('/own', { config: { rateLimit: { limiter: own } } }, () => 'own')
    expect(await statuses(app, '/own', '/own', '/own')).toEqual([200, 200, 429])
  })

  test('a wrong option of a route is refused when the route is made', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(3) }))
    expect(() => app.get('/', { config: { rateLimit: { max: 5 } } }, () => '')).toThrow('rateLimit "max" is not an option')
  })

  test.each(['preValidation', 'preHandler'] as const)('limits by the user that an earlier hook found, by hook: %s', async (hook) => {
    const app = fastify()
    app.decorateRequest('user', null)
    app.addHook('preParsing', async (request) => Object.assign(request, { user: request.headers['x-user'] }))
    const key = forFastify.byUser((request: FastifyRequest & { user?: string }) => request.user)
    await app.register(forFastify.rateLimit({ limiter: burst(1), key, hook }))
    app.get('/', () => 'hello')
    const as = async (user: string) => (await app.inject({ url: '/', headers: { 'x-user': user } })).statusCode
    expect([await as('ann'), await as('bob'), await as('ann')]).toEqual([200, 200, 429])
  })

  test('limits before the body is read, by hook: preParsing', async () => {
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter: burst(1), hook: 'preParsing' }))
    app.post('/', () => 'hello')
    const post = async (payload: string) =>
      (await app.inject({ method: 'POST', url: '/', payload, headers: { 'content-type': 'application/json' } })).statusCode
    expect([await post('{}'), await post('{ no JSON')]).toEqual([200, 429])
  })

  test('refuses a hook that comes too late', () => {
    expect(() => forFastify.rateLimit({ limiter: burst(1), hook: 'onSend' as never })).toThrow(
      'hook "onSend" must be one of onRequest, preParsing, preValidation, preHandler',
    )
  })

  test('the decision is on the request, and an error of the key goes to the error handler', async () => {
    const app = fastify()
    const key = (request: FastifyRequest) => String(request.headers['x-user'])
    await app.register(forFastify.rateLimit({ limiter: burst(3), key, skip: ({ url }) => url === '/skip' }))
    app.get('/', (request) => ({ remaining: (request as forFastify.RateLimited).rateLimit?.remaining ?? null }))
    app.get('/skip', (request) => ({ decision: (request as forFastify.RateLimited).rateLimit ?? null }))
    expect((await app.inject({ url: '/', headers: { 'x-user': 'ann' } })).json()).toEqual({ remaining: 2 })
    expect((await app.inject('/skip')).json()).toEqual({ decision: null })
  })
})

describe('a refusal is not to be cached, whatever was said before', () => {
  const CACHED = 'public, max-age=30'
  const told = async (app: { request(path: string): Response | Promise<Response> }) => {
    await app.request('/')
    const { status, headers } = await app.request('/')
    return [status, headers.get('cache-control')]
  }

  test.each<[string, (c: { header(name: string, value: string): void; res: Response }) => void]>([
    ['by the context', (c) => c.header('cache-control', CACHED)],
    ['on the response', (c) => c.res.headers.set('cache-control', CACHED)],
  ])('Hono, %s', async (_name, say) => {
    const app = new Hono()
    app.use(async (c, next) => {
      say(c)
      await next()
    })
    app.use(forHono.rateLimit({ limiter: burst(1), key: () => 'all' }))
    app.get('/', (c) => c.text('hello'))
    expect(await told(app)).toEqual([429, 'no-store'])
  })

  test('Fastify', async () => {
    const app = fastify()
    app.addHook('onRequest', async (_request, reply) => void reply.header('cache-control', CACHED))
    await app.register(forFastify.rateLimit({ limiter: burst(1) }))
    app.get('/', () => 'hello')
    const codes = [await app.inject('/'), await app.inject('/')].map(({ statusCode, headers }) => [statusCode, headers['cache-control']])
    expect(codes).toEqual([
      [200, CACHED],
      [429, 'no-store'],
    ])
  })

  test('node:http, and what is built on it', async () => {
    const limited = forNode.rateLimit({ limiter: burst(1), key: () => 'all' })((_request, response) => response.end('hello'))
    const server = createServer((request, response) => {
      response.setHeader('cache-control', CACHED)
      limited(request, response)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    expect(await told({ request: () => fetch(`http://127.0.0.1:${port}/`) })).toEqual([429, 'no-store'])
    server.closeAllConnections()
    server.close()
  })
})

/** Decorators as plain calls: the tests are compiled without them. */
function decorated(make: () => { new (): object }, routes: Record<string, readonly unknown[]>, ...ofClass: unknown[]): { new (): object } {
  const target = make()
  for (const [name, decorators] of Object.entries(routes)) {
    const descriptor = Object.getOwnPropertyDescriptor(target.prototype, name) as PropertyDescriptor
    for (const decorate of [...decorators, Get(name)] as MethodDecorator[]) decorate(target.prototype, name, descriptor)
  }
  for (const decorate of [...ofClass, Controller()] as ClassDecorator[]) decorate(target)
  return target
}

describe.each(['express', 'fastify'] as const)('Nest on %s', (platform) => {
  async function application(imports: object[], controller: { new (): object }): Promise<INestApplication> {
    class Root {}
    Module({ imports: imports as never[], controllers: [controller] })(Root)
    const app =
      platform === 'express'
        ? await NestFactory.create(Root, { logger: false })
        : await NestFactory.create(Root, new FastifyAdapter(), { logger: false })
    await app.listen(0, '127.0.0.1')
    return app
  }

  async function statuses(app: INestApplication, ...paths: string[]): Promise<number[]> {
    const { port } = app.getHttpServer().address() as AddressInfo
    const found: number[] = []
    for (const path of paths) {
      const response = await fetch(`http://127.0.0.1:${port}/${path}`)
      await response.text()
      found.push(response.status)
    }
    return found
  }

  const Routes = () =>
    class {
      usual() {
        return 'usual'
      }
      free() {
        return 'free'
      }
      login() {
        return 'login'
      }
      both() {
        return 'both'
      }
    }

  const ROUTES = { usual: [], free: [forNest.SkipLimit()], login: [forNest.Limit('login')], both: [forNest.Limit('default', 'login')] }

  test('@Limit names the limits of a route, @SkipLimit lets it go without', async () => {
    const options = { limiter: burst(2), named: { login: { limiter: burst(1) } } }
    const app = await application([forNest.RateLimitModule.forRoot(options)], decorated(Routes, ROUTES))
    try {
      expect(await statuses(app, 'usual', 'free', 'free', 'login', 'login')).toEqual([200, 200, 200, 200, 429])
      expect(await statuses(app, 'both', 'usual', 'free')).toEqual([429, 429, 200])
    } finally {
      await app.close()
    }
  })

  test('a decorator on the class is for all its handlers, unless they say otherwise', async () => {
    const module = forNest.RateLimitModule.forRootAsync({
      useFactory: async () => ({ limiter: burst(1), named: { login: { limiter: burst(1) } } }),
    })
    const app = await application([module], decorated(Routes, { ...ROUTES, login: [forNest.Limit('login')] }, forNest.SkipLimit()))
    try {
      expect(await statuses(app, 'usual', 'usual', 'usual', 'login', 'login')).toEqual([200, 200, 200, 200, 429])
    } finally {
      await app.close()
    }
  })

  test('a filter that catches everything finds status, body and headers of a refusal', async () => {
    let caught = 0
    class CatchAll {
      catch(exception: unknown, host: ArgumentsHost): void {
        caught += 1
        const isKnown = exception instanceof HttpException
        const [status, body] = isKnown ? [exception.getStatus(), exception.getResponse()] : [500, {}]
        host.switchToHttp().getResponse().status(status).send(body)
      }
    }
    Catch()(CatchAll)
    const filters = { provide: APP_FILTER, useClass: CatchAll }
    class Filters {}
    Module({ providers: [filters] })(Filters)
    const options = { limiter: burst(1), named: { login: { limiter: burst(1) } } }
    const app = await application([forNest.RateLimitModule.forRoot(options), Filters], decorated(Routes, ROUTES))
    try {
      expect(await statuses(app, 'usual')).toEqual([200])
      const { port } = app.getHttpServer().address() as AddressInfo
      const refused = await fetch(`http://127.0.0.1:${port}/usual`)
      expect([refused.status, refused.headers.get('retry-after'), refused.headers.get('ratelimit')]).toEqual([
        429,
        '1',
        '"default";r=0;t=1',
      ])
      expect(await refused.json()).toMatchObject({ status: 429, 'violated-policies': ['default'] })
      const text = await fetch(`http://127.0.0.1:${port}/usual`, { headers: { accept: 'text/plain' } })
      expect([text.status, await text.text()]).toEqual([429, 'Too many requests. Please try again in 1 second.\n'])
      expect(caught).toBe(2)
    } finally {
      await app.close()
    }
  })
})

test('a place is given back where another has answered before the limits had', async () => {
  const limiter = createLimiter(concurrency({ max: 1 }))
  const limit = forExpress.rateLimit({ limiter, key: async () => 'k' })
  const passed: unknown[] = []
  const server = createServer((request, response) => {
    limit(request, response, (error) => {
      passed.push((error as { code?: string } | undefined)?.code)
      response.end()
    })
    response.write('too late')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text()
  expect(passed).toEqual(['ERR_HTTP_HEADERS_SENT'])
  await vi.waitFor(() => expect(limiter.inflight()).toBe(0), WAIT)
  server.close()
})

test('many limiters that want to know how a request ends listen as one', async () => {
  const limiters = Array.from({ length: 12 }, () => createLimiter(concurrency({ max: 1 })))
  const outcomes: object[] = []
  const settle = (outcome: object) => {
    outcomes.push(outcome)
    return undefined
  }
  const listening: number[] = []
  const inner = (_request: unknown, response: ServerResponse) => {
    listening.push(response.listenerCount('finish'), response.listenerCount('close'))
    expect(limiters.map((limiter) => limiter.inflight())).toEqual(new Array(12).fill(1))
    response.end('hello')
  }
  const handler = limiters.reduce<typeof inner>(
    (next, limiter) => forNode.rateLimit({ limiter, key: () => 'k', settle })(next as never) as never,
    inner,
  )
  const bare: number[] = []
  const server = createServer((request, response) => {
    bare.push(response.listenerCount('finish'), response.listenerCount('close'))
    handler(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  expect(await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text()).toBe('hello')
  await vi.waitFor(() => expect(limiters.every((limiter) => limiter.inflight() === 0)).toBe(true), WAIT)
  expect(listening).toEqual(bare.map((count) => count + 1))
  expect(outcomes).toEqual(new Array(12).fill({ status: 200, aborted: false }))
  server.closeAllConnections()
  server.close()
})

describe('Hono without Node', () => {
  test('gives a place back when the answer of the handler cannot be sent', async () => {
    const limiter = createLimiter(concurrency({ max: 1 }))
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter, key: () => 'all' }))
    app.get('/', () => {
      const read = new Response('read by somebody else')
      read.body?.getReader()
      return read
    })
    const { status } = await app.request('/')
    expect([status, limiter.inflight()]).toEqual([500, 0])
  })

  test('sets the headers on the response', async () => {
    const app = new Hono<{ Variables: forHono.RateLimitVariables }>()
    app.use(forHono.rateLimit({ limiter: burst(1), address: (c) => c.req.header('cf-connecting-ip') }))
    app.get('/', (c) => c.text(String(c.get('rateLimit')?.remaining)))
    const from = (address: string) => app.request('/', { headers: { 'cf-connecting-ip': address } })
    const first = await from('203.0.113.9')
    expect([first.status, first.headers.get('ratelimit'), await first.text()]).toEqual([200, '"default";r=0;t=1', '0'])
    const second = await from('203.0.113.9')
    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '1'])
    expect((await from('203.0.113.10')).status).toBe(200)
  })

  test('tells of both limiters, where one stands behind another', async () => {
    const named = (name: string, permits: number) =>
      createLimiter({ [name]: gcra({ rate: '1/s', burst: permits }) }, { clock: fakeClock() })
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter: named('outer', 3), key: () => 'all' }))
    app.use(forHono.rateLimit({ limiter: named('inner', 1), key: () => 'all' }))
    app.get('/', (c) => c.text('hello'))
    app.get('/own', () => new Response('own'))
    const fields = async (path: string) => {
      const { status, headers } = await app.request(path)
      return [status, headers.get('ratelimit'), headers.get('retry-after')]
    }
    expect(await fields('/own')).toEqual([200, '"outer";r=2;t=1,"inner";r=0;t=1', null])
    expect(await fields('/')).toEqual([429, '"outer";r=1;t=2,"inner";r=0;t=1', '1'])
  })

  test('gives back what the status says', async () => {
    const limiter = burst(1)
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter, key: () => 'all', refundWhen: ({ status }) => status === 404 }))
    const response = await app.request('/')
    expect(response.status).toBe(404)
    // A response has ended when its body was read.
    await response.text()
    expect(limiter.peek('all').remaining).toBe(1)
  })

  test('asks the runtime to wait until the request is settled and its place given back', async () => {
    const limiter = createLimiter({ tokens: gcra({ rate: '1/s', burst: 9 }), places: concurrency({ max: 1 }) }, { clock: fakeClock() })
    let tellUsage = (_usage: number) => {}
    const settle = () => new Promise<number>((resolve) => (tellUsage = resolve)).then((tokens) => ({ tokens, places: 1 }))
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter, key: () => 'all', cost: { tokens: 5, places: 1 }, settle }))
    app.get('/', (c) => c.text('hello'))
    const waitedFor: Promise<unknown>[] = []
    const lifetime = { waitUntil: (promise: Promise<unknown>) => void waitedFor.push(promise), passThroughOnException: () => {}, props: {} }
    const response = await app.request('/', {}, {}, lifetime)
    expect([await response.text(), limiter.inflight()]).toEqual(['hello', 0])
    let isOver = false
    expect(waitedFor.map((promise) => promise.then(() => (isOver = true)))).toHaveLength(1)
    await new Promise((resolve) => setImmediate(resolve))
    expect([isOver, limiter.peek('all').parts.tokens.remaining]).toEqual([false, 4])
    tellUsage(2)
    await Promise.all(waitedFor)
    expect(limiter.peek('all').parts.tokens.remaining).toBe(7)
    // A refusal has nothing to wait for.
    limiter.charge('all', { tokens: 9, places: 0 })
    expect([(await app.request('/', {}, {}, lifetime)).status, waitedFor.length]).toEqual([429, 1])
  })

  test('knows the client by what Deno and Bun tell', async () => {
    const limiter = burst(1)
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter }))
    app.get('/', (c) => c.text('ok'))
    const deno = { remoteAddr: { hostname: '203.0.113.1' } }
    const bun = { server: { requestIP: () => ({ address: '203.0.113.2' }) } }
    expect((await app.request('/', {}, deno)).status).toBe(200)
    expect((await app.request('/', {}, bun)).status).toBe(200)
    expect(limiter.peek('ip:203.0.113.1').remaining + limiter.peek('ip:203.0.113.2').remaining).toBe(0)
  })
})

describe('Hono', () => {
  test('sets the headers on a response that the handler made itself, also on one that may not be changed', async () => {
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter: burst(3), key: () => 'all' }))
    app.get('/made', () => new Response('made'))
    app.get('/fixed', () => Response.redirect('https://example.com/', 302))
    app.get('/own', () => new Response('own', { headers: { ratelimit: 'of another' } }))
    const told = async (path: string) => (await app.request(path)).headers.get('ratelimit')
    expect([await told('/made'), await told('/fixed'), await told('/own')]).toEqual([
      '"default";r=2;t=1',
      '"default";r=1;t=2',
      'of another',
    ])
  })

  test('leaves a connection that becomes a WebSocket as it is', async () => {
    const upgrade = Object.freeze({ status: 101, headers: Object.freeze({ has: () => false }) })
    const c = { env: {}, req: { header: () => undefined, raw: {} }, res: upgrade, set: () => {}, get: () => undefined, header: vi.fn() }
    await forHono.rateLimit({ limiter: burst(1), key: () => 'all', headers: 'draft-6' })(c, async () => {
      c.header.mockClear()
    })
    expect(c.header).not.toHaveBeenCalled()
  })

  test('knows the client of a WebSocket, whose first request comes without a response', async () => {
    const limiter = burst(1)
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter }))
    await app.request('/', {}, { incoming: { socket: { remoteAddress: '203.0.113.3' } }, outgoing: undefined })
    await app.request('/', {}, { server: { incoming: { socket: { remoteAddress: '203.0.113.4' } } } })
    expect(limiter.peek('ip:203.0.113.3').remaining + limiter.peek('ip:203.0.113.4').remaining).toBe(0)
  })

  test('an address that is null is none', async () => {
    const limiter = burst(1)
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter, address: () => null }))
    await app.request('/')
    expect(limiter.peek('ip:unknown').remaining).toBe(0)
  })
})

describe('fetch', () => {
  test('leaves a connection that becomes a WebSocket as it is', async () => {
    const upgrade = { status: 101, headers: Object.freeze({ get: () => null, set: () => expect.unreachable() }) }
    const outcomes: object[] = []
    const refundWhen = (outcome: object) => outcomes.push(outcome) < 0
    const limited = forFetch.rateLimit({ limiter: burst(2), key: () => 'all', refundWhen })
    expect(await limited(() => upgrade)(new Request('https://example.org/'))).toBe(upgrade)
    expect(await limited(() => undefined)(new Request('https://example.org/'))).toBe(undefined)
    expect(outcomes).toEqual([
      { status: 101, aborted: false },
      { status: 101, aborted: false },
    ])
  })

  test('copies a response that may not be changed', async () => {
    const handler = forFetch.rateLimit({ limiter: burst(1), key: () => 'all' })((_request: Request) =>
      Response.redirect('https://example.com/', 302),
    )
    const response = await handler(new Request('https://example.org/'))
    expect([response.status, response.headers.get('location'), response.headers.get('ratelimit')]).toEqual([
      302,
      'https://example.com/',
      '"default";r=0;t=1',
    ])
  })

  test('hands on whatever the runtime hands over, and asks it for the address', async () => {
    const limiter = burst(1)
    const address = (_request: Request, context: { ip: string }) => context.ip
    const handler = forFetch.rateLimit({ limiter, address })((_request: Request, context: { ip: string }) => new Response(context.ip))
    const response = await handler(new Request('https://example.org/'), { ip: '203.0.113.9' })
    expect(await response.text()).toBe('203.0.113.9')
    expect(limiter.peek('ip:203.0.113.9').remaining).toBe(0)
  })

  test('takes an error of the handler for a status of 500', async () => {
    const limiter = burst(1)
    const options = { limiter, key: () => 'all', refundWhen: ({ status }: { status: number }) => status >= 500 }
    const handler = forFetch.rateLimit(options)(() => Promise.reject(new Error('broken')))
    await expect(handler(new Request('https://example.org/'))).rejects.toThrow('broken')
    expect(limiter.peek('all').remaining).toBe(1)
  })

  test('lets an error of the handler through', async () => {
    const handler = forFetch.rateLimit({ limiter: burst(1), key: () => 'all' })(() => Promise.reject(new Error('broken')))
    await expect(handler(new Request('https://example.org/'))).rejects.toThrow('broken')
  })
})

test('node:http tells the console of an error of ours, and answers 500', async () => {
  const error = vi.spyOn(console, 'error').mockImplementation(() => {})
  const key = () => {
    throw new Error('no key')
  }
  const server = createServer(forNode.rateLimit({ limiter: burst(1), key })((_request, response) => response.end('never')))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    expect([response.status, await response.text()]).toEqual([500, ''])
    expect(error).toHaveBeenCalledWith(expect.objectContaining({ message: 'no key' }))
  } finally {
    error.mockRestore()
    server.closeAllConnections()
    server.close()
  }
})

describe('node:http', () => {
  /** A server whose handler never answers, and what refundWhen was told. */
  async function holding(make: (listener: never) => Server | Http2Server, options: object = {}) {
    const outcomes: object[] = []
    let reached = 0
    const refundWhen = (outcome: object) => outcomes.push(outcome) < 0
    const hold = forNode.rateLimit({ limiter: burst(9), key: () => 'all', refundWhen, ...options })(() => {
      reached += 1
    })
    const server = make(hold as never)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return { outcomes, server, reached: () => reached, port: (server.address() as AddressInfo).port }
  }

  test('a client that leaves over HTTP/2 before the answer', async () => {
    const { outcomes, server, reached, port } = await holding(createHttp2Server)
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const stream = session.request({ ':path': '/' })
    await vi.waitFor(() => expect(reached()).toBe(1), WAIT)
    stream.close()
    await vi.waitFor(() => expect(outcomes).toEqual([{ status: 499, aborted: true }]), WAIT)
    session.destroy()
    server.close()
  })

  test('a client that leaves over HTTP/2 while its key is looked for', async () => {
    let found = (_key: string) => {}
    let closed = false
    const key = vi.fn(({ stream }: { stream: NodeJS.EventEmitter }) => {
      stream.once('close', () => {
        closed = true
      })
      return new Promise<string>((resolve) => {
        found = resolve
      })
    })
    const { outcomes, server, reached, port } = await holding(createHttp2Server, { key })
    const session = connectHttp2(`http://127.0.0.1:${port}`)
    const stream = session.request({ ':path': '/' })
    await vi.waitFor(() => expect(key).toHaveBeenCalled(), WAIT)
    stream.close()
    await vi.waitFor(() => expect(closed).toBe(true), WAIT)
    found('k')
    await vi.waitFor(() => expect(outcomes).toEqual([{ status: 499, aborted: true }]), WAIT)
    expect(reached()).toBe(0)
    session.destroy()
    server.close()
  })

  test('a client that leaves over HTTP/2 in the middle of the answer, and one that stays', async () => {
    const outcomes: object[] = []
    const refundWhen = (outcome: object) => outcomes.push(outcome) < 0
    const limited = forNode.rateLimit({ limiter: burst(9), key: () => 'all', refundWhen })
    const server = createHttp2Server(
      limited((request: Http2ServerRequest, response) => {
        ;(response as unknown as Http2ServerResponse).write('some')
        if (request.url === '/whole') response.end()
      }) as never,
    )
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    const stream = session.request({ ':path': '/' })
    await new Promise((resolve) => stream.once('data', resolve))
    stream.close(8)
    await vi.waitFor(() => expect(outcomes).toEqual([{ status: 200, aborted: true }]), WAIT)
    session.request({ ':path': '/whole' }).resume()
    await vi.waitFor(() => expect(outcomes[1]).toEqual({ status: 200, aborted: false }), WAIT)
    session.destroy()
    server.close()
  })

  test('requests that wait on one connection for those before them, when it closes', async () => {
    const { outcomes, server, reached, port } = await holding(createServer)
    const socket = connectTcp(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3))
    await vi.waitFor(() => expect(reached()).toBe(3), WAIT)
    socket.destroy()
    await vi.waitFor(() => expect(outcomes).toHaveLength(3), WAIT)
    expect(outcomes).toEqual(Array(3).fill({ status: 499, aborted: true }))
    server.close()
  })

  test('requests that wait on one connection give back their places when it closes', async () => {
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }))
    const { server, reached, port } = await holding(createServer, { limiter, maxWaitMs: 7_200_000 })
    const socket = connectTcp(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2))
    await vi.waitFor(() => expect([reached(), limiter.waiting()]).toEqual([1, 1]), WAIT)
    socket.destroy()
    await vi.waitFor(() => expect(limiter.waiting()).toBe(0), WAIT)
    server.close()
  })
})
