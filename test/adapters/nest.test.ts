/**
 * Nest alone: the order of guards, decorators with numbers, and what is found out when an
 * application starts.
 */
import 'reflect-metadata'
import { randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  type INestApplication,
  Injectable,
  Module,
  UseGuards,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { afterEach, describe, expect, test, vi } from 'vitest'
import {
  byRoute,
  byUser,
  Limit,
  RateLimitGuard,
  RateLimitModule,
  type RateLimitOptionsFactory,
  SkipLimit,
} from '../../src/adapters/nest.ts'
import { concurrency, createLimiter, gcra } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { connectRedis } from '../support/redis-client.ts'

const numbers = (burst: number) => gcra({ rate: '1/h', burst })
const burst = (permits: number) => createLimiter(numbers(permits), { clock: fakeClock() })

/** As Passport's guards do. */
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest()
    request.user = { id: request.headers['x-user'] }
    return true
  }
}
Injectable()(AuthGuard)

const byId = byUser((request: { user?: { id: string } }) => request.user?.id)

type Class = { new (...injected: never[]): object }
type Decorate = MethodDecorator | ClassDecorator

/** Decorators as plain calls: the tests are compiled without them. */
function controller(name: string, routes: Record<string, Decorate[]>, ...ofClass: Decorate[]): Class {
  const made = { [name]: class {} }[name] as Class
  for (const [route, decorators] of Object.entries(routes)) {
    const handler = { [route]: () => route }[route]
    Object.defineProperty(made.prototype, route, { value: handler, configurable: true, writable: true })
    const descriptor = Object.getOwnPropertyDescriptor(made.prototype, route) as PropertyDescriptor
    for (const decorate of [...decorators, Get(route)] as MethodDecorator[]) decorate(made.prototype, route, descriptor)
  }
  for (const decorate of [...ofClass, Controller()] as ClassDecorator[]) decorate(made as never)
  return made
}

let app: INestApplication | undefined

afterEach(async () => {
  await app?.close()
  app = undefined
})

describe.each(['express', 'fastify'] as const)('Nest on %s', (platform) => {
  async function start(imports: object[], ...controllers: Class[]): Promise<void> {
    class Root {}
    Module({ imports: imports as never[], controllers })(Root)
    app =
      platform === 'express'
        ? await NestFactory.create(Root, { logger: false, abortOnError: false })
        : await NestFactory.create(Root, new FastifyAdapter(), { logger: false, abortOnError: false })
    await app.listen(0, '127.0.0.1')
  }

  async function get(path: string, user = ''): Promise<Response> {
    const { port } = (app as INestApplication).getHttpServer().address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}/${path}`, { headers: { 'x-user': user } })
    await response.text()
    return response
  }

  async function statuses(...requests: [path: string, user?: string][]): Promise<number[]> {
    const found: number[] = []
    for (const [path, user] of requests) found.push((await get(path, user)).status)
    return found
  }

  const AS_USERS: [string, string][] = [
    ['mine', 'ann'],
    ['mine', 'ann'],
    ['mine', 'bob'],
    ['mine', 'bob'],
    ['mine', 'ann'],
    ['mine', 'bob'],
  ]

  test.each([
    ['a controller', [], [UseGuards(AuthGuard, RateLimitGuard)]],
    ['a handler', [UseGuards(AuthGuard, RateLimitGuard)], []],
    ['both', [UseGuards(RateLimitGuard)], [UseGuards(AuthGuard)]],
  ] as const)('@UseGuards(AuthGuard, RateLimitGuard) on %s counts users', async (_name, ofHandler, ofClass) => {
    const limiter = burst(2)
    const routes = controller('Mine', { mine: [...ofHandler] }, ...ofClass)
    await start([RateLimitModule.forRoot({ limiter, key: byId })], routes)
    expect(await statuses(...AS_USERS)).toEqual([200, 200, 200, 200, 429, 429])
    expect(limiter.peek('ip:127.0.0.1').remaining).toBe(2)
  })

  test('a handler without a response, as of a subscription, holds no place: nobody would give it back', async () => {
    const limiter = createLimiter(concurrency({ max: 1 }))
    const routes = controller('Feeds', { feed: [] })
    await start([RateLimitModule.forRoot({ limiter, key: () => 'all' })], routes)
    const handler = (routes.prototype as Record<string, () => string>).feed
    const context = {
      getType: () => 'graphql',
      // As graphql-ws makes it.
      getArgs: () => [undefined, undefined, { extra: { request: { headers: {}, socket: {} } } }],
      getHandler: () => handler,
      getClass: () => routes,
    }
    const guard = (app as INestApplication).get(RateLimitGuard, { strict: false })
    expect([guard.canActivate(context as never), guard.canActivate(context as never)]).toEqual([true, true])
    expect(limiter.inflight()).toBe(0)
  })

  test('a guard of the application’s own that extends ours counts users too, and the rest by address', async () => {
    class UserGuard extends RateLimitGuard {}
    Injectable()(UserGuard)
    const routes = controller('Mine', { mine: [UseGuards(AuthGuard, UserGuard)], open: [] })
    await start([RateLimitModule.forRoot({ limiter: burst(2), key: byId })], routes)
    expect(await statuses(...AS_USERS)).toEqual([200, 200, 200, 200, 429, 429])
    expect(await statuses(['open', 'ann'], ['open', 'bob'], ['open', 'cid'])).toEqual([200, 200, 429])
  })

  test('a module without the guard’s own module says what is missing', async () => {
    await expect(start([], controller('Mine', { mine: [UseGuards(RateLimitGuard)] }))).rejects.toThrow(/RateLimitGuard/)
  })

  test('users that are signed in after they were counted are told of', async () => {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    try {
      vi.resetModules()
      const { RateLimitModule: Fresh, byUser: freshByUser } = await import('../../src/adapters/nest.ts')
      const key = freshByUser((request: { user?: { id: string } }) => request.user?.id)
      await start([Fresh.forRoot({ limiter: burst(9), key })], controller('Mine', { mine: [UseGuards(AuthGuard)] }))
      expect(await statuses(['mine', 'ann'], ['mine', 'bob'])).toEqual([200, 200])
      await vi.waitFor(
        () => expect(warned.mock.calls.map(([, options]) => (options as { code?: string }).code)).toEqual(['SLUICE_USER_CAME_LATE']),
        // Longer than a busy machine needs.
        { timeout: 30_000 },
      )
    } finally {
      warned.mockRestore()
    }
  })

  test('@Limit holds numbers of a handler’s own, options, and names, in any order', async () => {
    const routes = controller('Routes', {
      usual: [],
      strict: [Limit(numbers(1)) as MethodDecorator],
      other: [Limit(numbers(1)) as MethodDecorator],
      dear: [Limit({ cost: 3 }) as MethodDecorator],
      keyed: [
        Limit({
          limit: numbers(1),
          key: (request: { headers: Record<string, string> }) => `k${request.headers['x-user']}`,
        }) as MethodDecorator,
      ],
      both: [Limit('default', 'slow') as MethodDecorator],
    })
    await start([RateLimitModule.forRoot({ limiter: burst(4), named: { slow: { limit: numbers(2) } } })], routes)
    expect(await statuses(['strict'], ['strict'], ['other'], ['other'])).toEqual([200, 429, 200, 429])
    expect(await statuses(['keyed', 'ann'], ['keyed', 'bob'], ['keyed', 'ann'])).toEqual([200, 200, 429])
    const both = await get('both')
    expect(both.headers.get('ratelimit')).toMatch(/^"default";r=3;t=\d+,"slow";r=1;t=\d+$/)
    expect(await statuses(['dear'], ['usual'])).toEqual([200, 429])
  })

  test('@Limit with numbers on a controller is one limit for all its handlers', async () => {
    const [first, second] = ['First', 'Second'].map((name) =>
      controller(name, { [`${name}a`]: [], [`${name}b`]: [] }, Limit(numbers(1)) as ClassDecorator),
    )
    await start([RateLimitModule.forRoot({ limiter: burst(9) })], first as Class, second as Class)
    expect(await statuses(['Firsta'], ['Firstb'], ['Seconda'], ['Secondb'])).toEqual([200, 429, 200, 429])
  })

  test('@Limit with numbers keeps them in the store of the module’s limiter, by the name of the place', async () => {
    const redis = await connectRedis()
    try {
      const prefix = randomUUID()
      const limiter = createLimiter(numbers(9), { name: 'api', store: redisStore(redis, { prefix }), onStoreError: 'throw' })
      const routes = controller('Orders', { create: [Limit(numbers(1)) as MethodDecorator], list: [] })
      await start([RateLimitModule.forRoot({ limiter, key: () => 'k' })], routes)
      expect(await statuses(['create'], ['create'], ['list'])).toEqual([200, 429, 200])
      const keys = (await redis.send(['KEYS', `*${prefix}*`])) as string[]
      expect(keys.map((key) => /Orders\.create|api/.exec(key)?.[0]).sort()).toEqual(['Orders.create', 'api'])
    } finally {
      redis.close()
    }
  })

  test('a limit that does not exist is an error at the start, with its place', async () => {
    const routes = controller('Users', { login: [Limit('logn') as MethodDecorator] })
    const options = { limiter: burst(1), named: { login: { limiter: burst(1) } } }
    await expect(start([RateLimitModule.forRoot(options)], routes)).rejects.toThrow(
      '@Limit("logn") on Users.login: there is no such limit, there is default, login',
    )
    const ofClass = controller('Users', { login: [] }, Limit('logn') as ClassDecorator)
    await expect(start([RateLimitModule.forRoot(options)], ofClass)).rejects.toThrow('@Limit("logn") on Users')
    const wrong = controller('Users', { login: [Limit({ max: 5 } as never) as MethodDecorator] })
    await expect(start([RateLimitModule.forRoot(options)], wrong)).rejects.toThrow('did you mean limit: fixedWindow({ limit: 5')
  })

  test.each(['useClass', 'useExisting', 'useFactory'] as const)('forRootAsync by %s', async (way) => {
    class Numbers {
      readonly burst = 2
    }
    class Options implements RateLimitOptionsFactory {
      readonly #numbers: Numbers
      constructor(numbersOf: Numbers) {
        this.#numbers = numbersOf
      }
      async createRateLimitOptions() {
        return { limiter: burst(this.#numbers.burst) }
      }
    }
    Reflect.defineMetadata('design:paramtypes', [Numbers], Options)
    class Settings {}
    Injectable()(Numbers)
    Injectable()(Options)
    Module({ providers: [Numbers, Options], exports: [Numbers, Options] })(Settings)
    const ways = {
      useClass: { imports: [Settings], useClass: Options },
      useExisting: { imports: [Settings], useExisting: Options },
      useFactory: { imports: [Settings], inject: [Options], useFactory: (options: Options) => options.createRateLimitOptions() },
    }
    await start(
      [RateLimitModule.forRootAsync(ways[way] as never)],
      controller('Routes', { usual: [], free: [SkipLimit() as MethodDecorator] }),
    )
    expect(await statuses(['usual'], ['usual'], ['usual'], ['free'])).toEqual([200, 200, 429, 200])
  })

  test('byRoute() counts each handler by itself', async () => {
    const limiter = burst(1)
    await start([RateLimitModule.forRoot({ limiter, key: byRoute() })], controller('Routes', { one: [], two: [] }))
    expect(await statuses(['one'], ['two'], ['one'], ['two?x=1'])).toEqual([200, 200, 429, 429])
    expect(limiter.peek('route:Routes.one').remaining).toBe(0)
  })
})
