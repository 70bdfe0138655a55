/**
 * WebSockets and limits on what runs at once, over real sockets: a place is held from the handshake
 * until the socket closes, wherever an upgrade passes through the middleware of a framework.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http'
import { type AddressInfo, connect as dial } from 'node:net'
import fastifyWebSocket from '@fastify/websocket'
import { serve as serveHono, upgradeWebSocket } from '@hono/node-server'
import express from 'express'
import Fastify from 'fastify'
import { Hono } from 'hono'
import { Server as SocketIo } from 'socket.io'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import * as forHono from '../../src/adapters/hono.ts'
import * as forKoa from '../../src/adapters/koa.ts'
import type { HttpOutcome } from '../../src/http/index.ts'
import { concurrency, createLimiter, gcra, type Limiter } from '../../src/index.ts'

interface Setup {
  readonly limiter: Limiter
  readonly key: () => string
  readonly refundWhen: (outcome: HttpOutcome) => boolean
  readonly maxWaitMs?: number
}

interface Kind {
  readonly name: string
  /** What a client sees of a refused handshake. */
  readonly refusal: string
  readonly path: string
  serve(setup: Setup): Promise<Server>
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

const KINDS: readonly Kind[] = [
  {
    name: 'Hono on Node',
    refusal: '429',
    path: '/live',
    async serve(setup) {
      const app = new Hono()
      app.use(forHono.rateLimit(setup))
      app.get(
        '/live',
        upgradeWebSocket(() => ({})),
      )
      // Its types do not match those of ws where optional properties are exact.
      const websocket = { server: new WebSocketServer({ noServer: true }) as never }
      const server = serveHono({ fetch: app.fetch, hostname: '127.0.0.1', port: 0, websocket }) as Server
      await once(server, 'listening')
      return server
    },
  },
  {
    name: 'Fastify with @fastify/websocket',
    refusal: '429',
    path: '/live',
    async serve(setup) {
      const app = Fastify()
      await app.register(fastifyWebSocket)
      await app.register(forFastify.rateLimit(setup))
      app.register(async (routes) => {
        routes.get('/live', { websocket: true }, () => {})
      })
      await app.listen({ host: '127.0.0.1', port: 0 })
      return app.server
    },
  },
  {
    name: 'Socket.IO with the middleware of Express',
    refusal: 'socket hang up',
    path: '/socket.io/?EIO=4&transport=websocket',
    async serve(setup) {
      const server = createServer()
      new SocketIo(server).engine.use(forExpress.rateLimit(setup))
      return listening(server)
    },
  },
  {
    // As express-ws does it, which answers a handshake before it asks.
    name: 'Express with a response of its own for an upgrade',
    refusal: 'socket hang up',
    path: '/live',
    async serve(setup) {
      const app = express()
      app.use(forExpress.rateLimit(setup))
      const wss = new WebSocketServer({ noServer: true })
      app.get('/live', (request) => wss.handleUpgrade(request, request.socket, Buffer.alloc(0), () => {}))
      const server = createServer(app)
      server.on('upgrade', (request: IncomingMessage) => {
        const response = new ServerResponse(request)
        response.end = () => {
          request.socket.destroy()
          return response
        }
        app(request, response)
      })
      return listening(server)
    },
  },
]

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** A socket that is open, or why it is not. */
function connect(server: Server, path: string): Promise<WebSocket | string> {
  const { port } = server.address() as AddressInfo
  const socket = new WebSocket(`ws://127.0.0.1:${port}${path}`)
  open.push(() => socket.terminate())
  return new Promise((resolve) => {
    socket.once('open', () => resolve(socket))
    socket.once('unexpected-response', (_request, response) => resolve(`${response.statusCode}`))
    socket.once('error', (error) => resolve(error.message))
  })
}

async function started({ serve, path }: Kind, limit: Parameters<typeof createLimiter>[0], options: object = {}) {
  const limiter = createLimiter(limit) as unknown as Limiter & { inflight(): number }
  const outcomes: HttpOutcome[] = []
  const releases: unknown[] = []
  limiter.listen({ onRelease: ({ outcome }) => releases.push(outcome) })
  const refundWhen = (outcome: HttpOutcome) => outcomes.push(outcome) === 0
  const server = await serve({ limiter, key: () => 'all', refundWhen, ...options })
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { limiter, outcomes, releases, connected: () => connect(server, path) }
}

const whenInflight = (count: number, limiter: { inflight(): number }) =>
  vi.waitFor(() => expect(limiter.inflight()).toBe(count), { timeout: 10_000 })

describe.each(KINDS)('$name', (kind) => {
  test('a socket holds its place until it closes, which says nothing about the load', async () => {
    const { limiter, outcomes, releases, connected } = await started(kind, concurrency({ max: 1 }))
    const first = (await connected()) as WebSocket
    expect(first).toBeInstanceOf(WebSocket)
    expect([limiter.inflight(), outcomes]).toEqual([1, []])
    expect(await connected()).toContain(kind.refusal)
    first.close()
    await whenInflight(0, limiter)
    expect([outcomes, releases]).toEqual([[{ status: 101, aborted: false }], ['ignored']])
    expect(await connected()).toBeInstanceOf(WebSocket)
  })

  test('a socket that is cut off gives its place back', async () => {
    const { limiter, connected } = await started(kind, concurrency({ max: 1 }))
    ;((await connected()) as WebSocket).terminate()
    await whenInflight(0, limiter)
    expect(await connected()).toBeInstanceOf(WebSocket)
  })

  test('a handshake may wait until another socket has closed', async () => {
    const { limiter, connected } = await started(kind, concurrency({ max: 1 }), { maxWaitMs: 60_000 })
    const first = (await connected()) as WebSocket
    const second = connected()
    await vi.waitFor(() => expect(limiter.waiting()).toBe(1), { timeout: 10_000 })
    first.close()
    expect(await second).toBeInstanceOf(WebSocket)
    expect(limiter.inflight()).toBe(1)
  })

  test('handshakes are counted by a rate', async () => {
    const { limiter, connected } = await started(kind, gcra({ rate: '1/h', burst: 2 }), { maxWaitMs: 1 })
    expect(await connected()).toBeInstanceOf(WebSocket)
    expect(await connected()).toBeInstanceOf(WebSocket)
    expect(await connected()).toContain(kind.refusal)
    expect(limiter.peek('all').remaining).toBe(0)
  })
})

const UPGRADE = 'GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket'

describe('what is no WebSocket', () => {
  test('a handshake that Hono answers otherwise ends with that answer, whatever its client does then', async () => {
    const outcomes: HttpOutcome[] = []
    const limiter = createLimiter(concurrency({ max: 1 }))
    const app = new Hono()
    app.use(forHono.rateLimit({ limiter, key: () => 'all', refundWhen: (outcome) => outcomes.push(outcome) === 0 }))
    app.get('/plain', (c) => c.text('hello'))
    const websocket = { server: new WebSocketServer({ noServer: true }) as never }
    const server = serveHono({ fetch: app.fetch, hostname: '127.0.0.1', port: 0, websocket }) as Server
    await once(server, 'listening')
    open.push(() => server.close())
    expect([await connect(server, '/nowhere'), limiter.inflight()]).toEqual(['404', 0])
    expect([await connect(server, '/plain'), limiter.inflight()]).toEqual(['200', 0])
    expect(outcomes.map(({ status }) => status)).toEqual([404, 200])
  })

  test.each([
    ['at once', () => 'all'],
    ['later', async () => 'all'],
  ])('a response that tells of nothing is let in, decided on %s, and holds no place', async (_, key) => {
    const limiter = createLimiter(concurrency({ max: 1 }))
    const response = { setHeader: () => {}, getHeader: () => undefined } as never
    const next = vi.fn()
    forExpress.rateLimit({ limiter, key })({ headers: {}, socket: {} }, response, next)
    await vi.waitFor(() => expect(next.mock.calls).toEqual([[]]), { timeout: 10_000 })
    expect(limiter.inflight()).toBe(0)
  })

  test.each(['GET / HTTP/1.1\r\nhost: a', 'GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket', UPGRADE])(
    'a client that leaves before it is answered has left, whatever it says: %j',
    async (head) => {
      const outcomes: HttpOutcome[] = []
      const app = express()
      app.use(forExpress.rateLimit({ limiter: createLimiter(gcra({ rate: '1/h', burst: 9 })), refundWhen: (o) => outcomes.push(o) === 0 }))
      const reached = vi.fn()
      app.get('/', reached)
      const server = await listening(createServer(app))
      open.push(() => server.close())
      const client = dial((server.address() as AddressInfo).port, '127.0.0.1')
      client.write(`${head}\r\n\r\n`)
      await vi.waitFor(() => expect(reached).toHaveBeenCalled(), { timeout: 10_000 })
      client.destroy()
      await vi.waitFor(() => expect(outcomes).toEqual([{ status: 499, aborted: true }]), { timeout: 10_000 })
    },
  )

  test('a context of Koa without a response is refused before anything is taken', async () => {
    const limiter = createLimiter(concurrency({ max: 1 }))
    const context = { req: { headers: {}, socket: {} }, state: {} } as never
    const next = vi.fn()
    await expect(forKoa.rateLimit({ limiter, key: () => 'all' })(context, next)).rejects.toMatchObject({ code: 'UNSUPPORTED' })
    expect([next.mock.calls, limiter.inflight()]).toEqual([[], 0])
  })
})
