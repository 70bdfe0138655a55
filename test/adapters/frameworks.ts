/**
 * The frameworks, each serving the application behind its adapter on a real socket. A new one is
 * tested by being listed.
 */
import 'reflect-metadata'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createHttp2Server, type Http2Server } from 'node:http2'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { serve as serveHono } from '@hono/node-server'
import { Controller, Get, Module, Req, Res } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import * as forHono from '../../src/adapters/hono.ts'
import * as forKoa from '../../src/adapters/koa.ts'
import * as forNest from '../../src/adapters/nest.ts'
import * as forNode from '../../src/adapters/node.ts'
import { App } from './app.ts'
import { REMOTE_FRAMEWORKS } from './remote.ts'
import type { SetupName } from './setups.ts'

/** Another version under another name, which has no types. */
const express4 = createRequire(import.meta.url)('express4') as typeof express

export interface Served {
  readonly url: string
  /** Asks the application, wherever it runs. */
  ask(command: string, argument?: string): Promise<unknown>
  close(): Promise<void>
}

export interface Framework {
  readonly name: string
  /** Why it cannot be had on this machine. */
  readonly missing?: string | undefined
  serve(setup: SetupName): Promise<Served>
  /** The same over HTTP/2 without TLS, where the framework has it. */
  serveHttp2?(setup: SetupName): Promise<Served>
}

const headerOfNode = (request: { headers: IncomingMessage['headers'] }, name: string) => request.headers[name] as string | undefined

function served(app: App, server: Server | Http2Server, close: () => Promise<unknown>): Served {
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/`,
    ask: async (command, argument = '') => app.do(command, argument),
    close: async () => {
      ;(server as Server).closeAllConnections?.()
      await close()
    },
  }
}

/** With room for a thousand connections that come at once: those beyond it Linux may reset. */
const ANYWHERE = { port: 0, host: '127.0.0.1', backlog: 2_048 }

async function listening(app: App, server: Server | Http2Server): Promise<Served> {
  await new Promise<void>((resolve) => server.listen(ANYWHERE, resolve))
  return served(app, server, () => new Promise((resolve) => server.close(resolve)))
}

const MAKERS = { http1: createServer, http2: createHttp2Server } as const
type Protocol = keyof typeof MAKERS

function serveNode(setup: SetupName, protocol: Protocol): Promise<Served> {
  const app = new App(setup, headerOfNode)
  const options = {
    ...app.options,
    onError: (_error: unknown, _request: unknown, response: { statusCode: number; end(text: string): void }) => failed(response),
  }
  const handle = async (request: IncomingMessage & { rateLimit?: never }, response: ServerResponse) => {
    const { status, body } = await app.handle((name) => headerOfNode(request, name), request.rateLimit, response)
    response.statusCode = status
    response.end(body)
  }
  const listener = forNode.rateLimit(options)(app.behind === undefined ? handle : (forNode.rateLimit(app.behind)(handle as never) as never))
  return listening(app, (MAKERS[protocol] as typeof createServer)(listener as never))
}

function failed(response: { statusCode: number; end(text: string): void }): void {
  response.statusCode = 500
  response.end('failed')
}

function serveExpress(make: typeof express): (setup: SetupName) => Promise<Served> {
  return (setup) => {
    const app = new App(setup, headerOfNode)
    const server = make()
    server.use(forExpress.rateLimit(app.options) as express.RequestHandler)
    if (app.behind !== undefined) server.use(forExpress.rateLimit(app.behind) as express.RequestHandler)
    server.get('/', async (request, response) => {
      const { status, body } = await app.handle((name) => request.get(name), request.rateLimit, response)
      response.status(status).end(body)
    })
    server.use(((_error, _request, response, _next) => failed(response)) as express.ErrorRequestHandler)
    return listening(app, createServer(server))
  }
}

async function serveFastify(setup: SetupName, protocol: Protocol): Promise<Served> {
  const app = new App(setup, headerOfNode)
  const server = fastify(protocol === 'http2' ? ({ http2: true } as never) : {})
  await server.register(forFastify.rateLimit(app.options))
  if (app.behind !== undefined) await server.register(forFastify.rateLimit(app.behind))
  server.get('/', async (request, reply) => {
    const { rateLimit } = request as forFastify.RateLimited
    const { status, body } = await app.handle((name) => headerOfNode(request, name), rateLimit, reply.raw)
    return reply.code(status).send(body)
  })
  await server.listen(ANYWHERE)
  return served(app, server.server, () => server.close())
}

async function serveOnHono(setup: SetupName, protocol: Protocol): Promise<Served> {
  const app = new App(setup, (c: { req: { header(name: string): string | undefined } }, name) => c.req.header(name))
  const server = new Hono<{ Variables: forHono.RateLimitVariables }>()
  server.use(forHono.rateLimit(app.options))
  if (app.behind !== undefined) server.use(forHono.rateLimit(app.behind))
  server.get('/', async (c) => {
    const { outgoing } = c.env as { outgoing: ServerResponse }
    const { status, body } = await app.handle((name) => c.req.header(name), c.get('rateLimit'), outgoing)
    return c.text(body, status as 200)
  })
  server.onError((_error, c) => c.text('failed', 500))
  const options = { fetch: server.fetch, port: 0, hostname: '127.0.0.1' }
  const http = await new Promise<Server>((resolve) => {
    const made = serveHono(protocol === 'http2' ? { ...options, createServer: createHttp2Server as never } : options, () =>
      resolve(made as Server),
    )
  })
  return served(app, http, () => new Promise((resolve) => http.close(resolve)))
}

function serveKoa(setup: SetupName, protocol: Protocol): Promise<Served> {
  const app = new App(setup, (ctx: Koa.Context, name) => headerOfNode(ctx.req, name))
  const server = new Koa<forKoa.RateLimitState>({})
  server.silent = true
  server.use(forKoa.rateLimit(app.options))
  if (app.behind !== undefined) server.use(forKoa.rateLimit(app.behind))
  server.use(async (ctx) => {
    const { status, body } = await app.handle((name) => ctx.get(name) || undefined, ctx.state.rateLimit, ctx.res)
    ctx.status = status
    ctx.body = body
  })
  return listening(app, (MAKERS[protocol] as typeof createServer)(server.callback() as never))
}

/**
 * The parameters of a decorated method, which TypeScript would write down if it compiled with
 * decorators.
 */
function serveNest(platform: 'express' | 'fastify'): (setup: SetupName) => Promise<Served> {
  return async (setup) => {
    const app = new App(setup, headerOfNode)
    class Home {
      async get(
        request: { headers: IncomingMessage['headers']; rateLimit?: never },
        response: { status(code: number): { send(body: string): void }; raw?: ServerResponse },
      ) {
        const connection = response.raw ?? (response as unknown as ServerResponse)
        const { status, body } = await app.handle((name) => headerOfNode(request, name), request.rateLimit, connection)
        response.status(status).send(body)
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Home.prototype, 'get') as PropertyDescriptor
    Get()(Home.prototype, 'get', descriptor)
    Req()(Home.prototype, 'get', 0)
    Res()(Home.prototype, 'get', 1)
    Controller()(Home)
    class Root {}
    const { options, behind } = app
    if (behind !== undefined) forNest.Limit('default', 'behind')(Home)
    const moduleOptions = behind === undefined ? options : { ...options, named: { behind } }
    Module({ imports: [forNest.RateLimitModule.forRoot(moduleOptions)], controllers: [Home] })(Root)
    const nest =
      platform === 'express'
        ? await NestFactory.create(Root, { logger: false })
        : await NestFactory.create(Root, new FastifyAdapter(), { logger: false })
    // It is passed on to the server, whatever the types say.
    await nest.listen(ANYWHERE as never)
    return served(app, nest.getHttpServer(), () => nest.close())
  }
}

export const FRAMEWORKS: readonly Framework[] = [
  { name: 'node:http', serve: (setup) => serveNode(setup, 'http1'), serveHttp2: (setup) => serveNode(setup, 'http2') },
  { name: 'Express 5', serve: serveExpress(express) },
  { name: 'Express 4', serve: serveExpress(express4) },
  { name: 'Fastify 5', serve: (setup) => serveFastify(setup, 'http1'), serveHttp2: (setup) => serveFastify(setup, 'http2') },
  { name: 'Hono on Node', serve: (setup) => serveOnHono(setup, 'http1'), serveHttp2: (setup) => serveOnHono(setup, 'http2') },
  { name: 'Koa 3', serve: (setup) => serveKoa(setup, 'http1'), serveHttp2: (setup) => serveKoa(setup, 'http2') },
  { name: 'Nest on Express', serve: serveNest('express') },
  { name: 'Nest on Fastify', serve: serveNest('fastify') },
  ...REMOTE_FRAMEWORKS,
]
