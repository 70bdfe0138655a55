/**
 * Behind a proxy each framework's own setting says who the client is. It is asked over real
 * sockets, with forged headers of all kinds, and the key has to be what the framework itself
 * answers.
 */
import 'reflect-metadata'
import { createServer, type RequestListener, type Server } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2Server } from 'node:http2'
import { createRequire } from 'node:module'
import { type AddressInfo, connect } from 'node:net'
import { Controller, Get, Module, Req } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { NestExpressApplication } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
import fc from 'fast-check'
import fastify from 'fastify'
import Koa from 'koa'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as forExpress from '../../src/adapters/express.ts'
import * as forFastify from '../../src/adapters/fastify.ts'
import * as forKoa from '../../src/adapters/koa.ts'
import * as forNest from '../../src/adapters/nest.ts'
import { addressIn, addressText } from '../../src/http/address.ts'
import type { ByIpOptions } from '../../src/http/by-ip.ts'
import { createLimiter, gcra } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const express4 = createRequire(import.meta.url)('express4') as typeof express

/** Where clients connect from: what stands for a proxy, and somebody else. */
const PROXY = '127.0.0.1'
const OTHER = '127.0.0.2'

interface Answer {
  readonly status: number
  /** What the framework says that the client's address is, or the error's code. */
  readonly body: string
}

interface Running {
  readonly port: number
  /** Keys that were counted, in order. */
  readonly keys: string[]
  ask(forwarded?: readonly string[], from?: string): Promise<Answer>
}

let closing: (() => unknown)[] = []
let warned: { code: string }[]
beforeEach(() => {
  warned = []
  vi.spyOn(process, 'emitWarning').mockImplementation(((_message: string, options: { code: string }) => warned.push(options)) as never)
})
afterEach(async () => {
  vi.restoreAllMocks()
  for (const close of closing) await close()
  closing = []
})

interface Options {
  readonly burst?: number
  readonly byIp?: ByIpOptions
  /** Of the header that is forged. */
  readonly header?: string
}

function limits({ burst = 10_000, byIp }: Options, keys: string[]) {
  const limiter = createLimiter(gcra({ rate: '1/h', burst }), { clock: fakeClock(), onDecision: ({ key }) => keys.push(key as string) })
  return byIp === undefined ? { limiter } : { limiter, key: forExpress.byIp(byIp) }
}

/** Each line of the header as it is written, with nothing put right by a client. */
function overHttp1(port: number, name: string) {
  return (forwarded: readonly string[] = [], from = PROXY): Promise<Answer> =>
    new Promise((resolve, reject) => {
      let answer = ''
      const socket = connect({ port, host: '127.0.0.1', localAddress: from }).on('error', reject)
      socket.on('data', (data) => {
        answer += data
      })
      socket.on('close', () => resolve({ status: Number(answer.slice(9, 12)), body: answer.slice(answer.indexOf('\r\n\r\n') + 4) }))
      const lines = forwarded.map((line) => `${name}: ${line}\r\n`).join('')
      socket.end(`GET / HTTP/1.0\r\nHost: a\r\n${lines}\r\n`)
    })
}

function overHttp2(port: number, name: string) {
  return (forwarded: readonly string[] = [], from = PROXY): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const session = connectHttp2(`http://127.0.0.1:${port}`, {
        createConnection: () => connect({ port, host: '127.0.0.1', localAddress: from }),
      })
      const stream = session.request({ ':path': '/', ...(forwarded.length > 0 && { [name]: [...forwarded] }) }).on('error', reject)
      let status = 0
      let body = ''
      stream.on('response', (headers) => {
        status = headers[':status'] as number
      })
      stream.setEncoding('utf8').on('data', (data) => {
        body += data
      })
      stream.on('end', () => {
        session.close()
        resolve({ status, body })
      })
    })
}

function running(server: Server, keys: string[], { header = 'x-forwarded-for' }: Options, over = overHttp1): Running {
  const { port } = server.address() as AddressInfo
  return { port, keys, ask: over(port, header) }
}

async function listening(server: Server): Promise<Server> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => server.close())
  return server
}

interface Failure {
  readonly code: string
  readonly message: string
}

function said({ code, message }: Failure): string {
  return `${code}: ${message}`
}

type Serve = (setting: unknown, options?: Options) => Promise<Running>

function expressApp(make: typeof express, setting: unknown, options: Options, keys: string[]) {
  const app = make()
  if (setting !== undefined) app.set('trust proxy', setting)
  app.use(forExpress.rateLimit(limits(options, keys)))
  app.get('/', (request, response) => void response.end(String(request.ip)))
  app.use(((error, _request, response, _next) => void response.status(500).end(said(error))) as express.ErrorRequestHandler)
  return app
}

const onExpress =
  (make: typeof express): Serve =>
  async (setting, options = {}) => {
    const keys: string[] = []
    return running(await listening(createServer(expressApp(make, setting, options, keys) as RequestListener)), keys, options)
  }

/** Limited within an application that is mounted in another, which has the setting. */
const onSubApp =
  (make: typeof express): Serve =>
  async (setting, options = {}) => {
    const keys: string[] = []
    const outer = make()
    outer.use(expressApp(make, undefined, options, keys))
    outer.set('trust proxy', setting)
    return running(await listening(createServer(outer as RequestListener)), keys, options)
  }

const onFastify =
  (http2: boolean): Serve =>
  async (setting, options = {}) => {
    const keys: string[] = []
    const app = fastify({ trustProxy: setting, ...(http2 && { http2 }) } as object)
    await app.register(forFastify.rateLimit(limits(options, keys)))
    app.setErrorHandler((error: Failure, _request, reply) => reply.code(500).send(said(error)))
    app.get('/', (request) => String(request.ip))
    await app.listen({ port: 0, host: '127.0.0.1' })
    closing.push(() => app.close())
    return running(app.server, keys, options, http2 ? overHttp2 : overHttp1)
  }

const onKoa =
  (http2: boolean): Serve =>
  async (setting, options = {}) => {
    const keys: string[] = []
    const app = new Koa(setting as object)
    app.use(async (ctx, next) => {
      await next().catch((error: Failure) => {
        ctx.status = 500
        ctx.body = said(error)
      })
    })
    app.use(forKoa.rateLimit(limits(options, keys)))
    app.use((ctx) => {
      ctx.body = ctx.ip
    })
    const server = http2 ? (createHttp2Server(app.callback()) as unknown as Server) : createServer(app.callback())
    return running(await listening(server), keys, options, http2 ? overHttp2 : overHttp1)
  }

class Home {
  get(request: { ip: unknown }) {
    return String(request.ip)
  }
}
Get()(Home.prototype, 'get', Object.getOwnPropertyDescriptor(Home.prototype, 'get') as PropertyDescriptor)
Req()(Home.prototype, 'get', 0)
Controller()(Home)

const onNest =
  (platform: 'express' | 'fastify'): Serve =>
  async (setting, options = {}) => {
    const keys: string[] = []
    class Root {}
    Module({ imports: [forNest.RateLimitModule.forRoot(limits(options, keys))], controllers: [Home] })(Root)
    const nest =
      platform === 'express'
        ? await NestFactory.create<NestExpressApplication>(Root, { logger: false })
        : await NestFactory.create(Root, new FastifyAdapter({ trustProxy: setting as never }), { logger: false })
    if (platform === 'express') (nest as NestExpressApplication).set('trust proxy', setting)
    // Nest's own filter tells nothing of an error.
    nest.useGlobalFilters({
      catch(error, host) {
        const response = host.switchToHttp().getResponse()
        response.status(error.status ?? 500).send(said(error))
      },
    })
    await nest.listen(0, '127.0.0.1')
    closing.push(() => nest.close())
    return running(nest.getHttpServer(), keys, options)
  }

const isOurs = (address: string) => address === PROXY || address.startsWith('10.')

const OF_EXPRESS: readonly unknown[] = [
  false,
  1,
  2,
  3,
  'loopback',
  '127.0.0.1, 10.0.0.0/8',
  [PROXY, 'uniquelocal'],
  [PROXY, '192.0.2.0/24'],
  isOurs,
]
const OF_FASTIFY: readonly unknown[] = [
  false,
  1,
  PROXY,
  'loopback',
  '127.0.0.1,10.0.0.0/8',
  [PROXY, '10.0.0.0/8'],
  [PROXY, '192.0.2.0/24'],
  isOurs,
]
const OF_KOA: readonly object[] = [{}, { proxy: true, maxIpsCount: 1 }, { proxy: true, maxIpsCount: 2 }, { proxy: true, maxIpsCount: 9 }]

interface Framework {
  readonly name: string
  readonly serve: Serve
  readonly settings: readonly unknown[]
  /** One proxy stands in front. */
  readonly one: unknown
  readonly all: readonly unknown[]
  /** Part of what to write instead. */
  readonly instead: string
}

/** Express refuses '0.0.0.0/0' itself. */
const EVERYONE = ['0.0.0.0/1', '128.0.0.0/1']

const EXPRESS = {
  settings: OF_EXPRESS,
  one: 1,
  all: [true, () => true, async () => false, EVERYONE, EVERYONE.join(', '), 1_000],
  instead: "app.set('trust proxy', 1)",
}
const FASTIFY = {
  settings: OF_FASTIFY,
  one: [PROXY],
  all: [true, () => true, EVERYONE],
  instead: "Fastify({ trustProxy: ['10.0.0.0/8'] })",
}
const KOA = {
  settings: OF_KOA,
  one: { proxy: true, maxIpsCount: 1 },
  all: [{ proxy: true }, { proxy: true, proxyIpHeader: 'x-real-ip' }],
  instead: 'new Koa({ proxy: true, maxIpsCount: 1 })',
}

const FRAMEWORKS: readonly Framework[] = [
  { name: 'Express 5', serve: onExpress(express), ...EXPRESS },
  { name: 'Express 4', serve: onExpress(express4), ...EXPRESS },
  { name: 'an application in one of Express 5', serve: onSubApp(express), ...EXPRESS },
  { name: 'an application in one of Express 4', serve: onSubApp(express4), ...EXPRESS },
  { name: 'Fastify 5', serve: onFastify(false), ...FASTIFY },
  { name: 'Fastify 5 over HTTP/2', serve: onFastify(true), ...FASTIFY },
  { name: 'Koa 3', serve: onKoa(false), ...KOA },
  { name: 'Koa 3 over HTTP/2', serve: onKoa(true), ...KOA },
  { name: 'Nest on Express', serve: onNest('express'), ...EXPRESS },
  { name: 'Nest on Fastify', serve: onNest('fastify'), ...FASTIFY },
]

const text = (setting: unknown) => (typeof setting === 'function' ? String(setting) : JSON.stringify(setting))

const FORGED: readonly (readonly string[])[] = [
  [],
  ...[
    '203.0.113.9',
    '198.51.100.1, 203.0.113.9',
    '203.0.113.9,',
    ',203.0.113.9',
    ', ,203.0.113.9, ,',
    'unknown',
    '203.0.113.9, unknown',
    '_hidden, 203.0.113.9',
    '203.0.113.9:4711',
    '198.51.100.1, 203.0.113.9:4711',
    '[2001:db8:1:2ff::1]:443',
    '2001:db8:1:2ff::1',
    '2001:db8:1:2ff::1, 10.0.0.7',
    '::ffff:203.0.113.9',
    '::ffff:127.0.0.1, ::ffff:10.0.0.7',
    '64:ff9b::cb00:7109',
    'fe80::1%eth0',
    '127.0.0.1',
    '203.0.113.9, 127.0.0.1',
    '203.0.113.9, 10.0.0.7, 127.0.0.1',
    '999.1.1.1, 203.0.113.9',
    '198.51.100.1,\t203.0.113.9\t,\t10.0.0.7',
    '"203.0.113.9"',
    'for=203.0.113.9',
    'x'.repeat(3_000),
    '1.2.3.4,'.repeat(500),
    `${'1.2.3.4,'.repeat(500)}203.0.113.9`,
  ].map((line) => [line]),
  ['198.51.100.1', '203.0.113.9'],
  ['203.0.113.9, 10.0.0.7', '10.0.0.8'],
]

const entry = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.constantFrom(PROXY, '10.0.0.7', '::1', '::ffff:10.0.0.1', '', 'unknown', '1.2.3.4:5', '1.2.3'),
)
const RANDOM = fc.sample(
  fc.array(
    fc.array(entry, { maxLength: 5 }).map((list) => list.join(', ')),
    { maxLength: 2 },
  ),
  {
    seed: 20_261_120,
    numRuns: 20,
  },
)

describe.each(FRAMEWORKS)('behind a proxy, on $name', ({ serve, settings, one, all, instead }) => {
  test.each(settings.map((setting) => [text(setting), setting]))('%s means what the framework makes of it', async (_text, setting) => {
    const { ask, keys } = await serve(setting)
    for (const from of [PROXY, OTHER]) {
      for (const forwarded of [...FORGED, ...RANDOM]) {
        const { status, body } = await ask(forwarded, from)
        // What is no address hides its sender, and the other end of the socket counts.
        const address = addressIn(body) ?? addressIn(from)
        expect([status, keys.pop()], `${forwarded} from ${from}`).toEqual([200, `ip:${addressText(address as never, 56)}`])
      }
    }
  })

  test('clients have a limit each, whatever they write before the proxy does', async () => {
    const { ask, keys } = await serve(one, { burst: 1 })
    const statuses = []
    for (const forwarded of ['198.51.100.1', '203.0.113.9', '198.51.100.1', '1.2.3.4, 203.0.113.9']) {
      statuses.push((await ask([forwarded])).status)
    }
    expect(statuses).toEqual([200, 200, 429, 429])
    expect(keys).toEqual(['ip:198.51.100.1', 'ip:203.0.113.9', 'ip:198.51.100.1', 'ip:203.0.113.9'])
    expect(warned).toEqual([])
  })

  test.each(all.map((setting) => [text(setting), setting]))(
    '%s lets clients write their own address, and is refused',
    async (_text, setting) => {
      const { ask, keys } = await serve(setting)
      for (const forwarded of [[], ['203.0.113.9']]) {
        const { status, body } = await ask(forwarded)
        expect([status, body]).toEqual([500, expect.stringMatching(/^CONFIG: .* believes every sender/)])
        expect(body).toContain(instead)
      }
      expect(keys).toEqual([])
    },
  )

  test('byIp() that says something of proxies itself goes before the setting', async () => {
    const { ask, keys } = await serve(all[0], { byIp: { trustProxy: 2 } })
    await ask(['198.51.100.1, 203.0.113.9, 10.0.0.7'])
    expect(keys).toEqual(['ip:203.0.113.9'])
    const none = await serve(one, { byIp: { trustProxy: 0 } })
    await none.ask(['203.0.113.9'])
    expect(none.keys).toEqual([`ip:${PROXY}`])
    const header = await serve(one, { byIp: { header: 'x-real-ip', from: [PROXY], ipv6Subnet: 64 }, header: 'x-real-ip' })
    for (const [value, from] of [
      ['2001:db8:1:2ff::1', PROXY],
      ['203.0.113.9', OTHER],
    ] as const)
      await header.ask([value], from)
    expect(header.keys).toEqual(['ip:2001:db8:1:2ff::/64', `ip:${OTHER}`])
    const subnet = await serve(one, { byIp: { ipv6Subnet: 64 } })
    await subnet.ask(['2001:db8:1:2ff::1'])
    expect(subnet.keys).toEqual(['ip:2001:db8:1:2ff::/64'])
  })
})

test.each<[name: string, serve: Serve, setting: unknown, options?: Options]>([
  ['Express 5', onExpress(express), 5],
  ['Express 4', onExpress(express4), 5],
  ['Koa', onKoa(false), { proxy: true, maxIpsCount: 5 }],
  ['byIp', onExpress(express), false, { byIp: { trustProxy: 5 } }],
])('a number too large lets clients write their own address, on %s, as the guide says', async (_name, serve, setting, options) => {
  const { ask, keys } = await serve(setting, options)
  await ask(['192.0.2.7, 10.0.0.1, 10.0.0.2, 10.0.0.3, 203.0.113.9'])
  expect(keys).toEqual(['ip:192.0.2.7'])
})
