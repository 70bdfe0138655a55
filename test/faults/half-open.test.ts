/**
 * Connections that look open and are dead, as when a firewall or a NAT has forgotten them: the
 * server is well, and new connections are served at once. Only the client can notice, and by
 * default none does. The options are those of the guide, read from its text.
 */
import { readFileSync } from 'node:fs'
import * as ioredis from 'ioredis'
import * as iovalkey from 'iovalkey'
import * as redis from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { openStore } from '../../server/src/store.ts'
import { systemClock } from '../../src/clock/clock.ts'
import { type AsyncStore, createLimiter, gcra, type Limit, type Limiter } from '../../src/index.ts'
import { senderOf } from '../../src/stores/redis/client.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { slotOf } from '../../src/stores/redis/keys.ts'
import { Part, Step } from '../../src/stores/step.ts'
import { type FaultProxy, ofScripts, once, startProxy } from '../support/fault-proxy.ts'
import { ranFromGuide } from '../support/guide.ts'
import { type Proxied, proxiedCluster, proxiedSentinel, proxiedServer } from '../support/proxied-servers.ts'
import { clientCases } from '../support/redis-clients.ts'
import { type RedisServer, type Shards, startShards, until } from '../support/redis-servers.ts'

type RemoteLimiter = Limiter<Limit, AsyncStore>

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** Keys that lie on every server of a cluster. */
const KEYS = Array.from({ length: 24 }, (_, k) => `user:${k}`)

async function anyDegraded(limiter: RemoteLimiter): Promise<boolean> {
  const decisions = await Promise.all(KEYS.map((key) => limiter.consume(key)))
  return decisions.some(({ degraded }) => degraded)
}

function limiterOn(store: AsyncStore): RemoteLimiter {
  const options = { name: 'half-open', store, onStoreError: 'deny', storeTimeoutMs: 500 } as const
  const limiter: RemoteLimiter = createLimiter(gcra({ rate: '1/h', burst: 10_000 }), options)
  closers.push(() => limiter.close())
  return limiter
}

/** Redis decides, and then its connections die. Resolves when the breaker is open. */
async function struck(limiter: RemoteLimiter, forgetAll: () => void): Promise<void> {
  await until(async () => limiter.health().state === 'up' && !(await anyDegraded(limiter)))
  forgetAll()
  expect(await anyDegraded(limiter)).toBe(true)
  expect(limiter.health().state).toBe('down')
}

/** The probes alone find the way back: nothing else is asked until they have. */
async function recovers(limiter: RemoteLimiter): Promise<void> {
  await until(async () => limiter.health().state === 'up', 20_000)
  await until(async () => !(await anyDegraded(limiter)), 20_000)
}

interface Closable {
  destroy?(): unknown
  disconnect?(): unknown
}

function closed(client: unknown): unknown {
  const { destroy, disconnect } = client as Closable
  return destroy === undefined ? disconnect?.call(client) : destroy.call(client)
}

describe('with the options of the guide a client makes a new connection, and everything recovers', () => {
  let servers: Readonly<Record<'one' | 'sentinel' | 'cluster', Proxied>>
  beforeAll(async () => {
    const [one, sentinel, cluster] = await Promise.all([proxiedServer(), proxiedSentinel(), proxiedCluster()])
    servers = { one, sentinel, cluster }
  }, 120_000)
  afterAll(() => Promise.all(Object.values(servers).map((each) => each.stop())))

  const addresses = () => ({
    'limits.internal': servers.one.entry,
    's1.internal': servers.sentinel.entry,
    'n1.internal': servers.cluster.entry,
  })

  test('redis, as the guide begins', async () => {
    const { client, limiter } = await ranFromGuide('redis.md', "onStoreError: 'local', //", ['client', 'limiter'], addresses(), { redis })
    closers.push(() => closed(client))
    closers.push(() => (limiter as RemoteLimiter).close())
    await struck(limiter as RemoteLimiter, servers.one.forgetAll)
    await recovers(limiter as RemoteLimiter)
  })

  test.each([
    { name: 'redis', having: 'createSentinel({', modules: { redis } },
    { name: 'ioredis', having: "from 'ioredis'", modules: { ioredis } },
    { name: 'iovalkey', having: "from 'ioredis'", modules: { ioredis: iovalkey } },
  ])('$name on one server, with Sentinel and in a cluster', async ({ having, modules }) => {
    const clients = await ranFromGuide('redis.md', having, ['one', 'sentinel', 'cluster'], addresses(), modules)
    for (const client of Object.values(clients)) closers.push(() => closed(client))
    await Promise.all(
      Object.entries(clients).map(async ([name, client]) => {
        const limiter = limiterOn(redisStore(client as RedisClient))
        await struck(limiter, servers[name as keyof typeof servers].forgetAll)
        await recovers(limiter)
      }),
    )
  })

  test('redis with Sentinel sends nothing again when the reply was lost', async () => {
    const clients = await ranFromGuide('redis.md', 'createSentinel({', ['one', 'sentinel', 'cluster'], addresses(), { redis })
    for (const client of Object.values(clients)) closers.push(() => closed(client))
    const limiter = limiterOn(redisStore(clients.sentinel as RedisClient))
    await until(async () => !(await limiter.peek('once')).degraded)
    servers.sentinel.primary.strike(once(ofScripts({ cut: 'reply', afterBytes: 0 })))
    expect(await limiter.consume('once')).toMatchObject({ degraded: true })
    await until(async () => !(await limiter.peek('once')).degraded)
    expect(await limiter.peek('once')).toMatchObject({ remaining: 9_999 })
  })

  test('the service does so by itself', async () => {
    const { host, port } = servers.one.entry
    const service = await openStore(`redis://${host}:${port}`, () => undefined)
    closers.push(() => service.close())
    const limiter = limiterOn(service.store as AsyncStore)
    await struck(limiter, servers.one.forgetAll)
    await recovers(limiter)
  })
})

test('with the default options a warning says what to set', async () => {
  const warnings: string[] = []
  const listener = (warning: Error & { code?: string }) => {
    if (warning.code === 'SLUICE_HALF_OPEN') warnings.push(warning.message)
  }
  process.on('warning', listener)
  closers.push(() => process.off('warning', listener))
  const names = ['ioredis', 'redis']
  await Promise.all(
    names.map(async (name) => {
      const proxy: FaultProxy = await startProxy(inject('redisPort'))
      closers.push(() => proxy.close())
      const { client, close } = await openedBy(name, 'single', [proxy as unknown as RedisServer])
      closers.push(close)
      await struck(limiterOn(redisStore(client)), () => proxy.forgetAll())
    }),
  )
  await until(async () => warnings.length === names.length, 20_000)
  expect(warnings.sort()).toEqual([
    expect.stringMatching(/make it with socket: \{ socketTimeout: 3000, reconnectStrategy: .* \}, pingInterval: 1000$/),
    expect.stringMatching(/make it with socketTimeout: 3000$/),
  ])
})

test('a probe that its client never answers is lost after 10 s, later than any timeout of the guide', async () => {
  const guide = readFileSync(new URL('../../docs/guides/redis.md', import.meta.url), 'utf8')
  const timeoutsMs = [...guide.matchAll(/(?:socket|idle)Timeout: ([\d_]+)/g)].map(([, ms]) => Number(ms?.replace('_', '')))
  expect(Math.max(...timeoutsMs)).toBeLessThan(10_000)
  const { client, close } = await openedBy('ioredis', 'single', [{ port: inject('redisPort') } as RedisServer])
  closers.push(close)
  const { send } = senderOf(client)
  let isLost = true
  const store = redisStore({ send: (args, key) => (isLost ? new Promise(() => undefined) : send(args, key)) })
  const limiter = limiterOn(store)
  const scope = limiter.scope()
  const step = new Step('ask', scope, [new Part('default', scope.limits[0]?.rule as Part['rule'], 'user:42', 1)], -1, -1, undefined)
  let nowUs = systemClock.nowUs()
  const reading = vi.spyOn(systemClock, 'nowUs').mockImplementation(() => nowUs)
  closers.push(() => reading.mockRestore())
  void store.driver.probe?.(step)
  isLost = false
  nowUs += 9_999_999
  await expect(store.driver.probe?.(step)).rejects.toMatchObject({ code: 'STORE', message: 'Redis: the last probe is not answered' })
  nowUs += 1
  await store.driver.probe?.(step)
})

function openedBy(name: string, topology: string, servers: readonly RedisServer[]) {
  const known = clientCases.find((each) => each.name === name && each.topology === topology)
  if (known === undefined) throw new Error(`there is no ${name} for ${topology}`)
  return known.open(servers)
}

describe('in a cluster', () => {
  let shards: Shards
  beforeAll(async () => {
    shards = await startShards()
  }, 120_000)
  afterAll(() => shards.stop())

  test('nothing is advised about a server whose connection is not open', async () => {
    const senders = await Promise.all(
      ['redis', 'ioredis', 'iovalkey'].map(async (name) => {
        const { client, close } = await openedBy(name, 'cluster', shards.servers)
        closers.push(close)
        return senderOf(client)
      }),
    )
    const slots = [slotOf('{a}'), slotOf('{b}'), slotOf('{c}')]
    const dead = shards.servers[0] as RedisServer
    for (const sender of senders) {
      await Promise.all(['a', 'b', 'c'].map((tag) => until(async () => (await sender.send(['GET', `{${tag}}`], `{${tag}}`)) === null)))
      expect(slots.map((slot) => typeof sender.advice?.(slot))).toEqual(['string', 'string', 'string'])
    }
    expect(slots.map((slot) => Math.floor((3 * slot) / 16_384)).sort()).toEqual([0, 1, 2])
    await dead.kill()
    const ofDead = slots.find((slot) => slot < 16_384 / 3) as number
    for (const sender of senders) {
      await until(async () => sender.advice?.(ofDead) === undefined)
      for (const slot of slots) if (slot !== ofDead) expect(sender.advice?.(slot)).toContain('socketTimeout: 3000')
    }
  })
})
