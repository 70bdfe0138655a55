/**
 * The keys that the guide shows, attacked by what a client may choose: the case of letters,
 * slashes, queries, lengths, methods, and when it leaves. Over real sockets, because servers and
 * frameworks rewrite paths.
 */
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { createRequire } from 'node:module'
import { type AddressInfo, connect } from 'node:net'
import { serve as serveHono } from '@hono/node-server'
import Router from '@koa/router'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterEach, describe, expect, test, vi } from 'vitest'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import * as forHono from '../../src/adapters/hono.ts'
import * as forKoa from '../../src/adapters/koa.ts'
import * as forNode from '../../src/adapters/node.ts'
import { createLimiter, gcra } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** Longer than a busy machine needs. */
const WAIT = { timeout: 30_000 }

const express4 = createRequire(import.meta.url)('express4') as typeof express

const burst = (permits: number) => createLimiter(gcra({ rate: '1/h', burst: permits }), { clock: fakeClock() })

let close: (() => void) | undefined

afterEach(() => {
  close?.()
  close = undefined
})

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  close = () => {
    server.closeAllConnections?.()
    server.close()
  }
  return (server.address() as AddressInfo).port
}

/** As it is written, with nothing put right by a client. */
function raw(port: number, method: string, path: string, headers = ''): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1').on('error', reject)
    socket.on('data', (data) => {
      answer += data
    })
    socket.on('close', () => resolve(answer))
    socket.end(`${method} ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`)
  })
}

/** Ways to write the path of a login. Not every framework takes all of them for it. */
const SPELLINGS = [
  '/login',
  '/LOGIN',
  '/Login',
  '/login/',
  '/LOGIN/',
  '//login',
  '/login//',
  '/login?',
  '/login?1',
  '/login?2',
  '/login#x',
  '/%6cogin',
  '/%6Cogin',
  '/./login',
  '/x/../login',
  '/login;a=1',
  'http://other.example/login',
  `/login?${'q'.repeat(5_000)}`,
]
const METHODS = ['POST', 'GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']

interface Routed {
  readonly name: string
  /** Serves a login for every method. `reached` is called by its handler. */
  serve(limiter: ReturnType<typeof burst>, reached: () => void): Promise<number>
}

const ROUTED: readonly Routed[] = [
  ...[
    { name: 'Express 5', make: express },
    { name: 'Express 4', make: express4 },
  ].map(({ name, make }) => ({
    name,
    serve: (limiter: ReturnType<typeof burst>, reached: () => void) => {
      const app = make()
      app.all('/login', forExpress.rateLimit({ limiter, key: forExpress.byRoute() }), (_request, response) => {
        reached()
        response.end('in')
      })
      return listening(createServer(app as RequestListener))
    },
  })),
  {
    name: 'Fastify 5',
    serve: async (limiter, reached) => {
      const app = fastify({ routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true } })
      await app.register(forFastify.rateLimit({ limiter, key: forFastify.byRoute(), skip: ({ is404 }) => is404 }))
      app.all('/login', () => {
        reached()
        return 'in'
      })
      await app.listen({ port: 0, host: '127.0.0.1' })
      close = () => void app.close()
      return (app.server.address() as AddressInfo).port
    },
  },
  {
    name: 'Koa',
    serve: async (limiter, reached) => {
      const router = new Router()
      router.all('/login', forKoa.rateLimit({ limiter, key: forKoa.byRoute() }), (ctx) => {
        reached()
        ctx.body = 'in'
      })
      return listening(createServer(new Koa().use(router.routes()).callback()))
    },
  },
  {
    name: 'Hono',
    serve: async (limiter, reached) => {
      const app = new Hono({ strict: false })
      app.use(forHono.rateLimit({ limiter, key: forHono.byRoute() }))
      app.all('/login', (c) => {
        reached()
        return c.text('in')
      })
      return new Promise((resolve) => {
        const server = serveHono({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => resolve(port))
        close = () => void server.close()
      })
    },
  },
]

describe.each(ROUTED)('byRoute() on $name', ({ serve }) => {
  test('is one key for a route, however a client writes it', async () => {
    let reached = 0
    const limiter = burst(5)
    const port = await serve(limiter, () => {
      reached += 1
    })
    for (const method of METHODS) for (const path of SPELLINGS) await raw(port, method, path)
    expect(reached).toBe(5)
  })
})

describe('byRoute()', () => {
  test('names routes by their patterns, and one for HEAD like that for GET', async () => {
    const limiter = burst(9)
    const app = fastify()
    await app.register(forFastify.rateLimit({ limiter, key: forFastify.byRoute() }))
    app.get('/users/:id', () => 'user')
    app.route({ method: ['POST', 'GET'], url: '/orders', handler: () => 'order' })
    for (const id of ['1', '2']) await app.inject(`/users/${id}`)
    await app.inject({ method: 'HEAD', url: '/users/3' })
    await app.inject({ method: 'POST', url: '/orders' })
    expect(limiter.peek('route:GET /users/:id').remaining).toBe(6)
    expect(limiter.peek('route:GET,POST /orders').remaining).toBe(8)
    await app.inject('/nothing')
    expect(limiter.peek('route:unknown').remaining).toBe(8)
  })

  test('of Koa names routes with the prefixes of their routers, and knows them only on the route', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const limiter = burst(9)
    const limited = forKoa.rateLimit({ limiter, key: forKoa.byRoute() })
    const users = new Router({ prefix: '/users' })
    users.get('/:id', limited, (ctx) => {
      ctx.body = 'user'
    })
    users.put('/:id', limited, (ctx) => {
      ctx.body = 'user'
    })
    const outer = new Router({ prefix: '/v1' })
    outer.use(users.routes())
    const others = new Router()
    others.use(limited)
    others.get('/other', (ctx) => {
      ctx.body = 'other'
    })
    const port = await listening(createServer(new Koa().use(outer.routes()).use(others.routes()).callback()))
    for (const [method, path] of [
      ['GET', '/v1/users/1'],
      ['HEAD', '/v1/users/2'],
      ['PUT', '/v1/users/1'],
      ['GET', '/other'],
    ] as const) {
      await raw(port, method, path)
    }
    const left = ['GET /v1/users/:id', 'PUT /v1/users/:id', 'unknown'].map((route) => limiter.peek(`route:${route}`).remaining)
    expect(left).toEqual([7, 8, 8])
    warned.mockRestore()
  })

  test('of Express knows routes only on the route, and counts all others as one', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const limiter = burst(9)
    const app = express()
    app.use(forExpress.rateLimit({ limiter, key: forExpress.byRoute() }))
    app.get('/users/:id', (_request, response) => void response.end('user'))
    const port = await listening(createServer(app))
    for (const path of ['/users/1', '/users/2', '/nothing']) await raw(port, 'GET', path)
    expect(limiter.peek('route:unknown').remaining).toBe(6)
    // Told once in a process: here, or in the test before.
    for (const [, options] of warned.mock.calls) expect(options).toMatchObject({ code: 'SLUICE_NO_ROUTE' })
    warned.mockRestore()
  })
})

test('a client that hangs up before it is counted is counted by its own address all the same', async () => {
  const limiter = burst(3)
  const counts = { reached: 0, refused: 0 }
  const held: (() => void)[] = []
  const app = express()
  // A middleware in front that takes its time.
  app.use((_request, _response, next) => void held.push(next))
  app.use(forExpress.rateLimit({ limiter, onLimited: () => void counts.refused++ }))
  app.use((_request, response) => {
    counts.reached += 1
    response.end('in')
  })
  const server = createServer(app)
  let closed = 0
  server.on('connection', (socket) => socket.on('close', () => closed++))
  const port = await listening(server)
  const sockets = Array.from({ length: 10 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  for (const socket of sockets) socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await vi.waitFor(() => expect(held).toHaveLength(10), WAIT)
  for (const socket of sockets) socket.destroy()
  await vi.waitFor(() => expect(closed).toBe(10), WAIT)
  for (const next of held) next()
  expect(counts).toEqual({ reached: 3, refused: 7 })
  expect([limiter.peek('ip:127.0.0.1').remaining, limiter.peek('ip:unknown').remaining]).toEqual([0, 3])
})

test('a client that leaves over HTTP/2 before it is counted by its address is not let in, and shares no limit with others', async () => {
  const limiter = burst(3)
  const reached: string[] = []
  const held: (() => void)[] = []
  const keyed = { address: forKoa.rateLimit({ limiter }), all: forKoa.rateLimit({ limiter, key: () => 'all' }) }
  const app = new Koa()
  app.use((_ctx, next) => new Promise<void>((resolve) => void held.push(resolve)).then(next))
  app.use((ctx, next) => (ctx.path === '/all' ? keyed.all(ctx, next) : keyed.address(ctx, next)))
  app.use((ctx) => void reached.push(ctx.path))
  const server = createHttp2Server(app.callback())
  let closed = 0
  server.on('stream', (stream) => stream.on('close', () => closed++))
  const session = connectHttp2(`http://127.0.0.1:${await listening(server as never)}`)
  const streams = ['/', '/', '/', '/', '/all'].map((path) => session.request({ ':path': path }).on('error', () => undefined))
  await vi.waitFor(() => expect(held).toHaveLength(5), WAIT)
  for (const stream of streams) stream.close(8)
  await vi.waitFor(() => expect(closed).toBe(5), WAIT)
  for (const next of held) next()
  // A key that does not need the address counts as ever.
  await vi.waitFor(() => expect(reached).toEqual(['/all']), WAIT)
  expect([limiter.peek('ip:unknown').remaining, limiter.peek('all').remaining]).toEqual([3, 2])
  session.destroy()
})

test('any function may be a key: a long one is counted, and is no error', async () => {
  const limiter = burst(5)
  const listener = forNode.rateLimit({ limiter, key: (request) => `${request.method} ${request.url}` })((_request, response) =>
    response.end('in'),
  )
  const port = await listening(createServer(listener))
  const long = `/${'x'.repeat(5_000)}`
  const answers = await Promise.all(Array.from({ length: 6 }, () => raw(port, 'GET', long)))
  expect(answers.map((answer) => answer.slice(9, 12)).sort()).toEqual(['200', '200', '200', '200', '200', '429'])
})
