/**
 * Servers as one finds them: with users that may do little, without scripts, with keys that others
 * have touched, not there yet.
 */
import { randomUUID } from 'node:crypto'
import ioredis from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import {
  type AsyncStore,
  createLimiter,
  type Decision,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { type RedisSender, redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { freePort, type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { livesUntilUs } from '../support/state-bytes.ts'

/** What the documents tell to give a user of a shared server. */
const ACL_RULES = [
  'on',
  '>secret',
  '~sluice:*',
  '+evalsha',
  '+eval',
  '+time',
  '+get',
  '+mget',
  '+getrange',
  '+strlen',
  '+set',
  '+setrange',
  '+pexpire',
  '+del',
  '+pttl',
]

const LIMITS: readonly (readonly [name: string, limit: Limit])[] = [
  ['gcra', gcra({ rate: '5/100s', burst: 5 })],
  ['tokenBucket', tokenBucket({ refill: '5/100s', capacity: 5 })],
  ['leakyBucket', leakyBucket({ leak: '5/100s', capacity: 5 })],
  ['fixedWindow', fixedWindow({ limit: 5, window: '100s', anchor: 'first' })],
  ['slidingWindow', slidingWindow({ limit: 5, window: '100s' })],
  ['slidingLog', slidingLog({ limit: 5, window: '100s' })],
]

/** By so much a key may live longer than it must: an eighth of the longest of these windows. */
const STEP_MS = 110_000 / 8

let redis: TestRedis
let prefix: string
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())
beforeEach(() => {
  prefix = `test:${randomUUID()}`
})

const nameOf = (key: string) => redisKey({ prefix, hashTag: undefined }, 'api', key)
const limiterOn = (client: RedisSender, limit: Limit) => createLimiter(limit, { name: 'api', store: redisStore(client, { prefix }) })
const errorOf = (promise: Promise<unknown>) => promise.then(() => undefined).catch((error: unknown) => error)

describe.each(LIMITS)('%s', (_, limit) => {
  test('its keys are strings, as the documents say', async () => {
    await limiterOn(redis, limit).consume('u1')
    expect(await redis.send(['TYPE', nameOf('u1')])).toBe('string')
  })

  test.each([
    ['string', ['SET', 'hello']],
    ['empty string', ['SET', '']],
    ['hash', ['HSET', 'a', '1']],
    ['list', ['RPUSH', 'a']],
    ['set', ['SADD', 'a']],
    ['zset', ['ZADD', '1', 'a']],
    ['stream', ['XADD', '1-1', 'a', '1']],
  ])('a foreign %s under its name is a clear error, and stays as it was', async (_type, [command, ...args]) => {
    await redis.send([command as string, nameOf('u1'), ...args])
    const before = await redis.send(['DUMP', nameOf('u1')])
    const limiter = limiterOn(redis, limit)
    for (const call of [limiter.consume('u1'), limiter.peek('u1'), limiter.refund('u1')]) {
      expect(await errorOf(call)).toMatchObject({ code: 'STORE', message: expect.stringContaining('does not hold a') })
    }
    expect(await redis.send(['DUMP', nameOf('u1')])).toEqual(before)
    expect(await redis.send(['PTTL', nameOf('u1')])).toBe(-1)
  })

  test.each([
    ['refused', 5],
    ['asked about', 0],
    ['admitted', 1],
  ])('a key without a time to live that is %s gets one, unless it is admitted and lives no longer', async (_verb, cost) => {
    const limiter = limiterOn(redis, limit)
    const first = await limiter.consume('u1', 2)
    await redis.send(['PERSIST', nameOf('u1')])
    const second = await limiter.consume('u1', cost)
    const ttlMs = Number(await redis.send(['PTTL', nameOf('u1')]))
    const endUs = ({ atMs, resetAfterMs }: Decision) => livesUntilUs(limit[RULE], Math.round((atMs + resetAfterMs) * 1_000))
    if (cost === 1 && endUs(first) === endUs(second)) {
      expect(ttlMs).toBe(-1)
      expect(limit.type).toMatch(/Window|Log/)
      return
    }
    expect(ttlMs).toBeGreaterThan(0)
    expect(ttlMs).toBeLessThanOrEqual(110_000 + STEP_MS)
  })

  test('the time to live ends when the state is idle, however often and by whichever verb it is written', async () => {
    const limiter = limiterOn(redis, limit)
    const random = new Random(5)
    for (let turn = 0; turn < 20; turn++) {
      const decision = await limiter.consume('u0')
      const calls = Array.from({ length: 6 }, () => `u${random.whole(0, 3)}`).map((key, k) => {
        return k % 3 === 0 ? limiter.charge(key, 1) : k % 3 === 1 ? limiter.consume(key) : decision.settle(0)
      })
      await Promise.all(calls)
      for (const key of ['u0', 'u1', 'u2', 'u3']) {
        const [held] = await inspectKey(redis, nameOf(key))
        // A permit takes 20 s: no stall of the server is as long.
        if (held === undefined) continue
        expect(held.ttlMs - held.resetAfterMs).toBeGreaterThan(-5_000)
        expect(held.ttlMs - held.resetAfterMs).toBeLessThan(5_000 + STEP_MS)
      }
    }
  })

  test('a key without a time to live gets one when it is admitted after the one that it had', async () => {
    const clock = fakeClock()
    const limiter = createLimiter(limit, { name: 'api', store: redisStore(redis, { prefix }), clock })
    await limiter.consume('u1', 2)
    await redis.send(['PERSIST', nameOf('u1')])
    clock.setMs(101_000)
    await limiter.consume('u1')
    expect(await redis.send(['PTTL', nameOf('u1')])).toBeGreaterThan(0)
  })

  test('a foreign key among several: nothing is charged on the others', async () => {
    const limiter = createLimiter({ a: limit, b: limit }, { name: 'api', store: redisStore(redis, { prefix }) })
    await redis.send(['SADD', nameOf('of b'), 'x'])
    expect(await errorOf(limiter.consume({ a: 'of a', b: 'of b' }))).toMatchObject({ code: 'STORE' })
    expect(await redis.send(['EXISTS', nameOf('of a')])).toBe(0)
  })
})

describe('a server of its own', () => {
  const closers: (() => unknown)[] = []
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close()
  })

  async function ownServer(options: string[] = [], port?: number): Promise<RedisServer> {
    const server = await startServer(options, port)
    closers.push(() => server.kill())
    return server
  }

  async function clientOf({ port }: RedisServer, user: { username?: string; password?: string } = {}) {
    const client = createClient({ socket: { host: '127.0.0.1', port }, ...user })
    client.on('error', () => undefined)
    await client.connect()
    closers.push(() => client.destroy())
    return client
  }

  const sluiceOn = (store: AsyncStore, limit: Limit) => createLimiter(limit, { name: 'api', store })

  test('a user with no more rights than the documents say can do everything', async () => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'limiter', ...ACL_RULES)
    const client = await clientOf(server, { username: 'limiter', password: 'secret' })
    for (const [name, limit] of LIMITS) {
      const limiter = sluiceOn(redisStore(client), limit)
      expect((await limiter.consume(name, 3)).remaining, name).toBe(2)
      expect((await limiter.consume(name, 3)).outcome, name).toBe('limited')
      await limiter.refund(name)
      const turn = await limiter.reserve(name)
      await turn.cancel()
      expect((await limiter.peek(name)).allowed, name).toBe(true)
      await limiter.reset(name)
    }
    expect(await errorOf(client.sendCommand(['SCRIPT', 'LOAD', 'return 1']))).toBeInstanceOf(Error)
    expect(await errorOf(client.sendCommand(['SET', 'other', '1']))).toBeInstanceOf(Error)
  })

  test.each(['+mget', '+pttl'])('a user without %s: every limit of every decision of a call is charged', async (missing) => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'limiter', ...ACL_RULES.filter((rule) => rule !== missing))
    const client = await clientOf(server, { username: 'limiter', password: 'secret' })
    const [, limit] = LIMITS[0] as (typeof LIMITS)[number]
    const limiter = createLimiter({ default: limit, named: limit }, { name: 'api', store: redisStore(client) })
    for (const remaining of [3, 1]) {
      const answers = await Promise.all(['u1', 'u2'].map((key) => limiter.consume(key, 2)))
      for (const { parts } of answers) expect(parts).toMatchObject({ default: { remaining }, named: { remaining } })
    }
    expect((await limiter.consume('u1', 2)).outcome).toBe('limited')
  })

  test('a user who may not use EVALSHA is served by EVAL', async () => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'limiter', ...ACL_RULES.filter((rule) => rule !== '+evalsha'))
    const limiter = sluiceOn(
      redisStore(await clientOf(server, { username: 'limiter', password: 'secret' })),
      gcra({ rate: '1/h', burst: 2 }),
    )
    expect([(await limiter.consume('u1')).allowed, (await limiter.consume('u1')).allowed, (await limiter.consume('u1')).allowed]).toEqual([
      true,
      true,
      false,
    ])
  })

  test('a user who may not touch the key is told so', async () => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'limiter', ...ACL_RULES)
    const client = await clientOf(server, { username: 'limiter', password: 'secret' })
    const error = await errorOf(sluiceOn(redisStore(client, { prefix: 'other' }), gcra({ rate: '1/h', burst: 2 })).consume('u1'))
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringMatching(/NOPERM|permission/i) })
  })

  test('a server without scripts is told apart', async () => {
    const server = await ownServer(['--rename-command', 'EVALSHA', '', '--rename-command', 'EVAL', ''])
    const error = await errorOf(sluiceOn(redisStore(await clientOf(server)), gcra({ rate: '1/h', burst: 2 })).consume('u1'))
    expect(error).toMatchObject({ code: 'UNSUPPORTED', message: expect.stringContaining('no Lua') })
  })

  test('a server that restarts has forgotten script and keys, and goes on', async () => {
    const server = await ownServer()
    const limiter = sluiceOn(redisStore(await clientOf(server)), gcra({ rate: '1/h', burst: 2 }))
    expect((await limiter.consume('u1')).remaining).toBe(1)
    await server.kill()
    await ownServer([], server.port)
    const answer = await eventually(() => limiter.consume('u1'))
    expect(answer.remaining).toBe(1)
  })

  test('a failed first connection does not poison the store', async () => {
    const port = await freePort(50_000)
    const client = createClient({ socket: { host: '127.0.0.1', port, reconnectStrategy: 20 }, disableOfflineQueue: true })
    client.on('error', () => undefined)
    const connecting = client.connect()
    closers.push(() => client.destroy())
    const limiter = sluiceOn(redisStore(client), gcra({ rate: '1/h', burst: 2 }))
    expect(await errorOf(limiter.consume('u1'))).toMatchObject({ code: 'STORE' })
    await ownServer([], port)
    await connecting
    await until(async () => limiter.health().state === 'up')
    expect((await limiter.consume('u1')).remaining).toBe(1)
  })
})

/** Asks again until the client has found the server again. */
async function eventually<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await ask()
    } catch (error) {
      if (tries > 100) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

describe('clients', () => {
  test.each([null, undefined, 42, 'redis://localhost', {}, { send: 'no' }])('%o is no client', (client) => {
    expect(() => redisStore(client as never)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
  })

  test('nothing is added to the client', async () => {
    const client = createClient()
    const before = Reflect.ownKeys(client)
    createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store: redisStore(client) })
    expect(Reflect.ownKeys(client)).toEqual(before)
  })

  test('one that would send a decision again is warned about, one that would not is not', () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    try {
      const { Redis, Cluster } = ioredis
      const lazy = { lazyConnect: true }
      redisStore(new Redis({ ...lazy, maxRetriesPerRequest: 0 }))
      redisStore(new Cluster([{ port: 1 }], { ...lazy, retryDelayOnFailover: 0 }))
      expect(warn).not.toHaveBeenCalled()
      redisStore(new Redis(lazy))
      redisStore(new Cluster([{ port: 1 }], lazy))
      expect(warn).toHaveBeenCalledTimes(2)
      for (const option of ['maxRetriesPerRequest', 'retryDelayOnFailover']) {
        expect(warn).toHaveBeenCalledWith(expect.stringContaining(`${option}: 0`), expect.objectContaining({ code: 'SLUICE_RESEND' }))
      }
    } finally {
      warn.mockRestore()
    }
  })
})
