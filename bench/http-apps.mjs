// The applications that are measured: each framework without a limiter, with ours, and with its
// usual one. Every limiter counts by address in memory, in fixed windows of an hour, and sends
// equally many headers. `inject(app)` gives a function that makes one request in process.
import 'reflect-metadata'
import { createServer } from 'node:http'
import fastifyRateLimit from '@fastify/rate-limit'
import { createAdaptorServer } from '@hono/node-server'
import { getConnInfo } from '@hono/node-server/conninfo'
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { ThrottlerGuard, ThrottlerModule } from '@nestjs/throttler'
import express from 'express'
import { rateLimit as expressRateLimit } from 'express-rate-limit'
import fastify from 'fastify'
import { Hono } from 'hono'
import { rateLimiter as honoRateLimiter } from 'hono-rate-limiter'
import lightMyRequest from 'light-my-request'

const HOUR_MS = 3_600_000
/** How many an hour: never reached, or reached by the first. */
export const SCENARIOS = { admitted: 1e9, refused: 1 }
/** `headers` only sets as many as the limiters do: what none of them can do without. */
export const CONTESTANTS = ['none', 'ours', 'usual', 'headers']
/** With `--against`: the package of an older commit, and ours. */
export const VERSIONS = ['older', 'ours']

const DRAFT_7 = [
  ['ratelimit-policy', '1000000000;w=3600'],
  ['ratelimit', 'limit=1000000000, remaining=999999999, reset=3600'],
]
const DRAFT_6 = [
  ['ratelimit-limit', '1000000000'],
  ['ratelimit-remaining', '999999999'],
  ['ratelimit-reset', '3600'],
]

/** For Express, and for Nest on it. */
const onlyHeaders = (headers) => (_request, response, next) => {
  for (const [name, value] of headers) response.setHeader(name, value)
  next()
}

/** What is needed of a package of ours that was built into this folder. */
async function packageIn(dist) {
  const from = (path) => import(`${dist}/${path}.js`)
  const [{ fixedWindow }, express, fastify, hono, nest] = await Promise.all(
    ['index', 'adapters/express', 'adapters/fastify', 'adapters/hono', 'adapters/nest'].map(from),
  )
  const limitOf = (limit) => fixedWindow({ limit, window: '1h', anchor: 'first' })
  return { limitOf, express: express.rateLimit, fastify: fastify.rateLimit, hono: hono.rateLimit, nest: nest.RateLimitModule }
}

const PACKAGES = { ours: await packageIn('../dist') }

/** The folder of the package that the contestant `older` uses. */
export async function useOlder(dist) {
  PACKAGES.older = await packageIn(dist)
}

export const FRAMEWORKS = {
  express: {
    title: 'Express 5',
    usual: 'express-rate-limit',
    headers: '`RateLimit-Policy` and `RateLimit` of draft 7',
    async make(contestant, limit) {
      const app = express()
      const own = PACKAGES[contestant]
      if (own) app.use(own.express({ limit: own.limitOf(limit), headers: 'draft-7' }))
      if (contestant === 'usual') app.use(expressRateLimit({ windowMs: HOUR_MS, limit, standardHeaders: 'draft-7', legacyHeaders: false }))
      if (contestant === 'headers') app.use(onlyHeaders(DRAFT_7))
      app.get('/', (_request, response) => response.send('hello'))
      return { server: createServer(app), inject: () => lightMyRequest(app, REQUEST) }
    },
  },
  fastify: {
    title: 'Fastify 5',
    usual: '@fastify/rate-limit',
    headers: 'the three of draft 6',
    async make(contestant, limit) {
      const app = fastify()
      const own = PACKAGES[contestant]
      if (own) await app.register(own.fastify({ limit: own.limitOf(limit), headers: 'draft-6' }))
      if (contestant === 'usual') await app.register(fastifyRateLimit, { max: limit, timeWindow: HOUR_MS, enableDraftSpec: true })
      if (contestant === 'headers') {
        app.addHook('onRequest', (_request, reply, done) => {
          for (const [name, value] of DRAFT_6) reply.header(name, value)
          done()
        })
      }
      app.get('/', (_request, reply) => reply.send('hello'))
      await app.ready()
      return { server: app.server, inject: () => app.inject(REQUEST) }
    },
  },
  hono: {
    title: 'Hono',
    usual: 'hono-rate-limiter',
    headers: '`RateLimit-Policy` and `RateLimit` of draft 7',
    async make(contestant, limit, mode) {
      const app = new Hono()
      const own = PACKAGES[contestant]
      const isInProcess = mode === 'in process'
      const address = isInProcess ? { address: () => '127.0.0.1' } : {}
      const keyGenerator = isInProcess ? () => '127.0.0.1' : (c) => getConnInfo(c).remote.address
      if (own) app.use(own.hono({ limit: own.limitOf(limit), headers: 'draft-7', ...address }))
      if (contestant === 'usual') app.use(honoRateLimiter({ windowMs: HOUR_MS, limit, standardHeaders: 'draft-7', keyGenerator }))
      if (contestant === 'headers') {
        app.use((c, next) => {
          for (const [name, value] of DRAFT_7) c.header(name, value)
          return next()
        })
      }
      app.get('/', (c) => c.text('hello'))
      return { server: createAdaptorServer(app), inject: async () => (await app.request('http://localhost/')).text() }
    },
  },
  nest: {
    title: 'Nest 12 on Express',
    usual: '@nestjs/throttler',
    headers: 'the three `X-RateLimit`',
    async make(contestant, limit) {
      class Home {
        get() {
          return 'hello'
        }
      }
      Get()(Home.prototype, 'get', Object.getOwnPropertyDescriptor(Home.prototype, 'get'))
      Controller()(Home)
      class Root {}
      const own = PACKAGES[contestant]
      const imports = own ? [own.nest.forRoot({ limit: own.limitOf(limit), headers: 'legacy' })] : []
      // It walks over all hits of its window at every call: where nothing is refused its window is
      // a millisecond, in its favour.
      if (contestant === 'usual') imports.push(ThrottlerModule.forRoot([{ ttl: limit === 1 ? HOUR_MS : 1, limit }]))
      const providers = contestant === 'usual' ? [{ provide: APP_GUARD, useClass: ThrottlerGuard }] : []
      Module({ imports, providers, controllers: [Home] })(Root)
      const app = await NestFactory.create(Root, { logger: false, abortOnError: false })
      if (contestant === 'headers') app.use(onlyHeaders(DRAFT_6))
      await app.init()
      const handler = app.getHttpAdapter().getInstance()
      return { server: createServer(handler), inject: () => lightMyRequest(handler, REQUEST) }
    },
  },
}

const REQUEST = { method: 'GET', url: '/', remoteAddress: '127.0.0.1' }
