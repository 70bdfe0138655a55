/**
 * Every error that a server can answer with, from a server that really answers so. Where a decision
 * can still be had it is had, charged once; where not, callers are told what Redis said and what to
 * do, and nothing is restarted for Redis to decide again once it can.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, gcra, type Limiter, type LimiterOptions, SluiceError } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { redisKey, slotOf } from '../../src/stores/redis/keys.ts'
import { ofScripts, startProxy } from '../support/fault-proxy.ts'
import { clientCases, type Opened } from '../support/redis-clients.ts'
import { freePort, type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { keysWithoutExpiry, settling, unhandled } from './watch.ts'

const CAPACITY = 10
const limit = gcra({ rate: '1/h', burst: CAPACITY })
type Sluice = Limiter<typeof limit, AsyncStore>
type Policy = NonNullable<LimiterOptions['onStoreError']>
const OTHER_POLICIES = ['allow', 'deny', 'local'] as const

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
afterAll(() => expect(unhandled()).toEqual([]))

async function ownServer(options: readonly string[] = [], port?: number): Promise<RedisServer> {
  const server = await startServer(options, port)
  closers.push(() => server.kill())
  return server
}

type NodeRedisOptions = Parameters<typeof createClient>[0]

async function clientOf({ host, port }: { host: string; port: number }, options: NodeRedisOptions = {}) {
  const client = createClient({ socket: { host, port }, ...options })
  client.on('error', () => undefined)
  await client.connect()
  closers.push(() => client.destroy())
  return client
}

type Options = Partial<LimiterOptions<typeof limit, AsyncStore>>

const limiterOn = (client: RedisClient, onStoreError: Policy = 'throw', name = 'api', options: Options = {}): Sluice =>
  createLimiter(limit, { name, store: redisStore(client), onStoreError, ...options })

/** A limiter for each policy on one client, each with keys of its own. */
const limitersOn = (client: RedisClient) => OTHER_POLICIES.map((policy) => [policy, limiterOn(client, policy, policy)] as const)

async function failureOf(call: Promise<unknown>): Promise<SluiceError> {
  const end = await settling(call).then(
    (value) => new Error(`it did not fail, but gave ${JSON.stringify(value)}`),
    (error) => error,
  )
  expect(end).toBeInstanceOf(SluiceError)
  return end
}

/** It says what Redis said, and then what to do: some words of ours. */
function expectAdvice(error: SluiceError, said: RegExp): void {
  expect(error).toMatchObject({ code: 'STORE', message: expect.stringMatching(said) })
  const words = error.message.replace(/^Redis: /, '').replace((error.cause as Error).message, '')
  expect(words, error.message).toMatch(/\w+(?: \S+){3,}/)
}

/** What each policy answers for a decision that Redis does not make. */
async function expectPolicies(limiters: ReturnType<typeof limitersOn>, key: string): Promise<void> {
  for (const [policy, limiter] of limiters) {
    const decision = await settling(limiter.consume(key))
    expect(decision, policy).toMatchObject({ degraded: true, outcome: policy === 'deny' ? 'limited' : 'allowed' })
  }
}

async function decidedByRedis(limiter: Sluice, key = 'u1'): Promise<void> {
  await until(async () => {
    const { degraded } = await settling(limiter.peek(key, 0))
    return !degraded && limiter.health().state === 'up'
  }, 20_000)
}

/** Until the server answers a command with such an error. */
function answers(command: () => Promise<unknown>, said: RegExp): Promise<void> {
  return until(() =>
    command().then(
      () => false,
      (error) => said.test(`${error}`),
    ),
  )
}

/**
 * The server itself is ill: everybody is told, the policies answer, and when it is well Redis
 * decides again.
 */
async function expectIllThenWell(client: RedisClient, said: RegExp, makeWell: () => Promise<unknown>): Promise<void> {
  const told: string[] = []
  const limiter = limiterOn(client, 'throw', 'api', { onHealth: ({ state }) => told.push(state) })
  const others = limitersOn(client)
  expectAdvice(await failureOf(limiter.consume('u1')), said)
  expect(limiter.health()).toMatchObject({ state: 'down', error: { code: 'STORE', message: expect.stringMatching(said) } })
  await expectPolicies(others, 'u1')
  await callThroughProbes(limiter)
  expect(told).toEqual(['down'])
  await makeWell()
  for (const each of [limiter, ...others.map(([, other]) => other)]) {
    await decidedByRedis(each)
    expect(await each.consume('u1')).toMatchObject({ degraded: false, remaining: CAPACITY - 1 })
  }
  expect(told).toEqual(['down', 'up'])
}

/**
 * Calls while the limiter looks after the server the first two times, after 100 ms and 200 ms more.
 */
async function callThroughProbes(limiter: Sluice): Promise<void> {
  const endMs = performance.now() + 450
  while (performance.now() < endMs) {
    await failureOf(limiter.consume('u1'))
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

describe('the server is ill', () => {
  test('READONLY: a replica; as a primary it decides', async () => {
    const primary = await ownServer()
    const replica = await ownServer(['--replicaof', primary.host, `${primary.port}`])
    await until(async () => `${await replica.command('INFO', 'replication')}`.includes('master_link_status:up'))
    await expectIllThenWell(await clientOf(replica), /READONLY/, () => replica.command('REPLICAOF', 'NO', 'ONE'))
    expect(await keysWithoutExpiry([replica])).toEqual([])
  })

  test('MASTERDOWN: a replica that has lost its primary', async () => {
    const port = await freePort(50_000)
    const replica = await ownServer(['--replicaof', '127.0.0.1', `${port}`, '--replica-serve-stale-data', 'no'])
    await expectIllThenWell(await clientOf(replica), /MASTERDOWN/, () => replica.command('REPLICAOF', 'NO', 'ONE'))
  })

  test('LOADING: a server that reads its file, slowly', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-loading-'))
    closers.push(() => rmSync(folder, { recursive: true, force: true }))
    const before = await ownServer(['--dir', folder])
    await before.command('EVAL', "for k = 1, 50000 do redis.call('SET', 'k' .. k, 'v', 'PX', 3600000) end", '0')
    await before.command('SAVE')
    const client = await clientOf(before)
    const limiter = limiterOn(client)
    const others = limitersOn(client)
    for (const each of [limiter, ...others.map(([, other]) => other)]) expect((await each.consume('u1')).degraded).toBe(false)
    await before.kill()
    // So slow that it would take most of a minute, and willing to answer meanwhile.
    const slow = ['--key-load-delay', '1000', '--loading-process-events-interval-bytes', '1024']
    const starting = startServer(['--dir', folder, ...slow], before.port)
    const hurry = () => before.command('CONFIG', 'SET', 'key-load-delay', '0')
    closers.push(async () => {
      await hurry().catch(() => undefined)
      await (await starting).kill()
    })
    await answers(() => before.command('GET', 'x'), /LOADING/)
    await until(async () => {
      const error = await failureOf(limiter.consume('u1'))
      return /LOADING/.test(error.message)
    })
    expectAdvice(await failureOf(limiter.consume('u1')), /LOADING/)
    expect(limiter.health().state).toBe('down')
    await expectPolicies(others, 'u1')
    await hurry()
    await starting
    for (const each of [limiter, ...others.map(([, other]) => other)]) {
      await decidedByRedis(each)
      // It was saved before the first call.
      expect(await each.consume('u1')).toMatchObject({ degraded: false, remaining: CAPACITY - 1 })
    }
  })

  test('BUSY: another script; when it is killed Redis decides', async () => {
    const server = await ownServer(['--lua-time-limit', '20'])
    const other = await clientOf(server)
    const client = await clientOf(server)
    const endless = other.sendCommand(['EVAL', 'while true do end', '0']).catch((error: unknown) => error)
    await answers(() => server.command('GET', 'x'), /BUSY/)
    await expectIllThenWell(client, /BUSY/, () => server.command('SCRIPT', 'KILL'))
    expect(`${await endless}`).toMatch(/killed/i)
  })

  test('OOM: the memory is full; when there is more Redis decides', async () => {
    const server = await ownServer(['--maxmemory', '1', '--maxmemory-policy', 'noeviction'])
    await expectIllThenWell(await clientOf(server), /OOM/, () => server.command('CONFIG', 'SET', 'maxmemory', '0'))
    expect(await keysWithoutExpiry([server])).toEqual([])
  })

  test('MISCONF: it cannot save, and takes no more writes until it can', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-misconf-'))
    const server = await ownServer(['--dir', folder, '--save', '3600 1'])
    rmSync(folder, { recursive: true, force: true })
    await server.command('SET', 'x', '1', 'PX', '3600000')
    await server.command('BGSAVE')
    await answers(() => server.command('SET', 'x', '1', 'PX', '3600000'), /MISCONF/)
    await expectIllThenWell(await clientOf(server), /MISCONF/, () => server.command('CONFIG', 'SET', 'save', ''))
  })

  test('NOREPLICAS: too few replicas to write', async () => {
    const server = await ownServer(['--min-replicas-to-write', '1'])
    await expectIllThenWell(await clientOf(server), /NOREPLICAS/, () => server.command('CONFIG', 'SET', 'min-replicas-to-write', '0'))
  })

  test('CLUSTERDOWN: no node has the slot; when one has, Redis decides', async () => {
    const node = await ownServer(CLUSTER)
    await expectIllThenWell(await clientOf(node), /CLUSTERDOWN/, () => giveSlots(node, 0, SLOTS - 1))
  })

  test('the words of a loading server, byte by byte, are understood from any client', async () => {
    const server = await ownServer()
    const proxy = await startProxy(server.port)
    closers.push(() => proxy.close())
    for (const cell of clientCases.filter(({ topology }) => topology === 'single')) {
      const opened = await cell.open([{ ...server, host: proxy.host, port: proxy.port }])
      closers.push(() => opened.close())
      const limiter = limiterOn(opened.client, 'throw', cell.name.replace(' ', '-'))
      await limiter.consume('u1')
      proxy.strike(ofScripts({ answer: '-LOADING Redis is loading the dataset in memory\r\n' }))
      expectAdvice(await failureOf(limiter.consume('u1')), /LOADING|loading/)
      expect(limiter.health().state, cell.name).toBe('down')
      proxy.heal()
      await decidedByRedis(limiter)
      expect((await limiter.consume('u1')).remaining).toBe(CAPACITY - 2)
    }
  })
})

describe('no call is admitted', () => {
  test('NOAUTH: no password where one is needed', async () => {
    const server = await ownServer()
    const admin = await clientOf(server)
    await admin.sendCommand(['CONFIG', 'SET', 'requirepass', 'right'])
    const client = await clientOf(server, { RESP: 2 })
    // From whom it does not know it takes no long commands at all, and says it in other words. The
    // first call of a process sends the script in full.
    const firstClient = await clientOf(server, { RESP: 2 })
    const first = limiterOn({
      send: (args) =>
        args[0] === 'EVALSHA' ? Promise.reject(new Error('NOSCRIPT it is the first call')) : firstClient.sendCommand([...args]),
    })
    expectAdvice(await failureOf(first.consume('u1')), /unauthenticated bulk/)
    await expectIllThenWell(client, /NOAUTH|unauthenticated/, () => admin.sendCommand(['CONFIG', 'SET', 'requirepass', '']))
  })

  test.each([
    ['NOAUTH', {}],
    ['WRONGPASS', { password: 'wrong' }],
  ])('%s on a client that says so itself', async (said, user) => {
    const server = await ownServer()
    const admin = await clientOf(server)
    await admin.sendCommand(['CONFIG', 'SET', 'requirepass', 'right'])
    const client = new Redis({ host: server.host, port: server.port, maxRetriesPerRequest: 0, ...user })
    client.on('error', () => undefined)
    closers.push(() => client.disconnect())
    const limiter = limiterOn(client)
    expectAdvice(await failureOf(limiter.consume('u1')), new RegExp(said))
    expect(limiter.health().state).toBe('down')
    await admin.sendCommand(['CONFIG', 'SET', 'requirepass', said === 'NOAUTH' ? '' : 'wrong'])
    await decidedByRedis(limiter)
    expect((await limiter.consume('u1')).remaining).toBe(CAPACITY - 1)
  })
})

/** One key or one command is the matter, not the server: other callers are served. */
describe('one decision fails', () => {
  const nameOf = (limiter: string, key: string) => redisKey({ prefix: 'sluice', hashTag: undefined }, limiter, key)

  test('WRONGTYPE: the policy answers for it, and for nobody else', async () => {
    const server = await ownServer()
    const client = await clientOf(server)
    const limiter = limiterOn(client)
    const others = limitersOn(client)
    for (const name of ['api', ...OTHER_POLICIES]) await server.command('RPUSH', nameOf(name, 'foreign'), 'a')
    const [foreign, own] = await Promise.allSettled([limiter.consume('foreign'), limiter.consume('own')])
    expectAdvice((foreign as PromiseRejectedResult).reason, /does not hold a state.*WRONGTYPE/)
    expect(own).toMatchObject({ status: 'fulfilled', value: { degraded: false, remaining: CAPACITY - 1 } })
    await expectPolicies(others, 'foreign')
    for (const each of [limiter, ...others.map(([, other]) => other)]) {
      expect(each.health()).toMatchObject({ state: 'up', error: undefined })
      expect((await each.consume('another')).degraded).toBe(false)
    }
  })

  test('NOPERM: a user who may not touch the key', async () => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~sluice:*own*', '+@all')
    const client = await clientOf(server, { username: 'limiter', password: 'secret' })
    const limiter = limiterOn(client)
    const others = limitersOn(client)
    const [foreign, own] = await Promise.allSettled([limiter.consume('foreign'), limiter.consume('own')])
    expectAdvice((foreign as PromiseRejectedResult).reason, /NOPERM/)
    expect(own).toMatchObject({ status: 'fulfilled', value: { degraded: false, remaining: CAPACITY - 1 } })
    await expectPolicies(others, 'foreign')
    for (const each of [limiter, ...others.map(([, other]) => other)]) expect(each.health().state).toBe('up')
    await server.command('ACL', 'SETUSER', 'limiter', '~sluice:*')
    expect(await limiter.consume('foreign')).toMatchObject({ degraded: false, remaining: CAPACITY - 1 })
  })

  test('a user who may not run a command of the script: who travels along is charged once', async () => {
    const server = await ownServer()
    await server.command('ACL', 'SETUSER', 'limiter', 'on', '>secret', '~sluice:*', '+@all', '-del')
    const store = redisStore(await clientOf(server, { username: 'limiter', password: 'secret' }))
    const limiter = createLimiter(limit, { name: 'api', store })
    for (let turn = 1; turn <= 3; turn++) {
      const [own, forbidden, again] = await Promise.allSettled([limiter.consume('u1'), limiter.reset('u3'), limiter.consume('u2')])
      expect(own).toMatchObject({ status: 'fulfilled', value: { remaining: CAPACITY - turn } })
      expect(again).toMatchObject({ status: 'fulfilled', value: { remaining: CAPACITY - turn } })
      expectAdvice((forbidden as PromiseRejectedResult).reason, /NOPERM|can't run this command|ACL/)
    }
    expect(limiter.health().state).toBe('up')
  })
})

const SLOTS = 16_384
const CLUSTER = ['--cluster-enabled', 'yes', '--cluster-node-timeout', '1000', '--cluster-config-file', 'nodes.conf']

async function giveSlots(node: RedisServer, first: number, last: number): Promise<void> {
  await node.command('CLUSTER', 'ADDSLOTS', ...Array.from({ length: last - first + 1 }, (_, k) => `${first + k}`))
}

const idOf = async (node: RedisServer) => `${await node.command('CLUSTER', 'MYID')}`

describe('a cluster of two', () => {
  let nodes: readonly [RedisServer, RedisServer]
  beforeAll(async () => {
    nodes = [await startServer(CLUSTER), await startServer(CLUSTER)]
    const [left, right] = nodes
    await giveSlots(left, 0, SLOTS / 2 - 1)
    await giveSlots(right, SLOTS / 2, SLOTS - 1)
    await left.command('CLUSTER', 'MEET', right.host, `${right.port}`)
    for (const node of nodes) {
      await until(async () => {
        const info = `${await node.command('CLUSTER', 'INFO')}`
        return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:2') && info.includes('cluster_slots_ok:16384')
      })
    }
  }, 60_000)
  afterAll(async () => {
    for (const node of nodes) await node.kill()
  })

  const slotOfKey = (limiter: string, key: string) => slotOf(redisKey({ prefix: 'sluice', hashTag: undefined }, limiter, key))
  /** Some keys whose slots are on the first node, or on the second. */
  const keysOn = (node: 0 | 1, count: number, limiter = 'api') =>
    Array.from({ length: 200 }, (_, k) => `u${k}`)
      .filter((key) => Math.floor(slotOfKey(limiter, key) / (SLOTS / 2)) === node)
      .slice(0, count)

  test('MOVED: a client of one server on a node of a cluster is told to be a cluster client', async () => {
    const client = await clientOf(nodes[0])
    const limiter = limiterOn(client, 'throw', 'moved')
    const [here = ''] = keysOn(0, 1, 'moved')
    const [there = ''] = keysOn(1, 1, 'moved')
    expect((await limiter.consume(here)).remaining).toBe(CAPACITY - 1)
    expectAdvice(await failureOf(limiter.consume(there)), /MOVED/)
    await decidedByRedis(limiter, here)
    expect((await limiter.consume(here)).remaining).toBe(CAPACITY - 2)
  })

  test('CROSSSLOT: decisions that travel together but may not are sent apart, and charged once each', async () => {
    const limiter = limiterOn(await clientOf(nodes[0]), 'throw', 'cross')
    const keys = keysOn(0, 20, 'cross')
    expect(new Set(keys.map((key) => slotOfKey('cross', key))).size).toBeGreaterThan(10)
    for (let left = CAPACITY - 1; left >= CAPACITY - 3; left--) {
      const decisions = await Promise.all(keys.map((key) => limiter.consume(key)))
      expect(decisions.map(({ remaining }) => remaining)).toEqual(keys.map(() => left))
    }
    expect(limiter.health().state).toBe('up')
  })

  test('CROSSSLOT: one decision on keys of several slots is made slot by slot', async () => {
    const limits = { user: limit, tenant: limit }
    const limiter = createLimiter(limits, { name: 'wide', store: redisStore(await clientOf(nodes[0])) })
    const [user = '', tenant = ''] = keysOn(0, 2, 'wide')
    expect(slotOfKey('wide', user)).not.toBe(slotOfKey('wide', tenant))
    for (let left = CAPACITY - 1; left >= CAPACITY - 3; left--) {
      const { parts } = await limiter.consume({ user, tenant })
      expect([parts.user.remaining, parts.tenant.remaining]).toEqual([left, left])
    }
  })

  describe.each(clientCases.filter(({ topology }) => topology === 'cluster'))('$name while a slot moves', (cell) => {
    let opened: Opened
    beforeAll(async () => {
      opened = await cell.open(nodes)
    })
    afterAll(() => opened.close())

    test('MOVED and ASK: every decision is charged once, wherever its key is', async () => {
      const moving = await movingSlot(nodes, `one-${cell.name}`)
      const limiter = createLimiter(limit, { name: 'moving', store: redisStore(opened.client, { hashTag: moving.hashTag }) })
      const left = async (key: string) => (await limiter.consume(key)).remaining
      expect([await left('u1'), await left('u2')]).toEqual([CAPACITY - 1, CAPACITY - 1])
      await moving.begin()
      // Still there; not there yet, so that the target is asked; gone there.
      expect([await left('u1'), await left('fresh')]).toEqual([CAPACITY - 2, CAPACITY - 1])
      await moving.move('moving', 'u1')
      expect([await left('u1'), await left('u2'), await left('fresh')]).toEqual([CAPACITY - 3, CAPACITY - 2, CAPACITY - 2])
      await moving.move('moving', 'u2')
      await moving.end()
      expect([await left('u1'), await left('u2'), await left('fresh')]).toEqual([CAPACITY - 4, CAPACITY - 3, CAPACITY - 3])
      expect(limiter.health().state).toBe('up')
      expect(await keysWithoutExpiry(nodes)).toEqual([])
    })

    test('TRYAGAIN: decisions that travel together while only one of their keys has moved are made apart', async () => {
      const moving = await movingSlot(nodes, `many-${cell.name}`)
      // Some clients ask again by themselves for a second or two before they say so.
      const options = { name: 'moving', store: redisStore(opened.client, { hashTag: moving.hashTag }), storeTimeoutMs: 15_000 }
      const limiter = createLimiter(limit, options)
      const together = async () => {
        const decisions = await Promise.all([limiter.consume('u1'), limiter.consume('u2')])
        return decisions.map(({ remaining }) => remaining)
      }
      expect(await together()).toEqual([CAPACITY - 1, CAPACITY - 1])
      await moving.begin()
      await moving.move('moving', 'u1')
      // No script can have both keys now, but nobody asked for that.
      expect(await together()).toEqual([CAPACITY - 2, CAPACITY - 2])
      await moving.move('moving', 'u2')
      await moving.end()
      expect(await together()).toEqual([CAPACITY - 3, CAPACITY - 3])
    })

    test('TRYAGAIN: a decision of two keys of which only one has moved fails and charges nothing, or is made once it can be', async () => {
      const moving = await movingSlot(nodes, `two-${cell.name}`)
      const limiter = createLimiter(
        { default: limit, two: limit },
        // What is given up may be charged all the same, and nobody would know: on a busy machine a
        // second may pass.
        { name: 'moving', store: redisStore(opened.client, { hashTag: moving.hashTag }), storeTimeoutMs: 20_000 },
      )
      const keys = { default: 'u1', two: 'u2' }
      expect((await limiter.consume(keys)).remaining).toBe(CAPACITY - 1)
      await moving.begin()
      await moving.move('moving', 'u1')
      const torn = settling(limiter.consume(keys)).then(
        () => 1,
        (error: SluiceError) => error,
      )
      // Some clients ask again by themselves, for a while.
      const early = await Promise.race([torn, new Promise<void>((resolve) => setTimeout(resolve, 200))])
      if (early !== undefined) expectAdvice(early as SluiceError, /TRYAGAIN/)
      await moving.move('moving', 'u2')
      await moving.end()
      const charged = (await torn) === 1 ? 1 : 0
      await until(async () => !(await limiter.peek(keys, 0)).degraded)
      const { parts } = await limiter.consume(keys)
      expect([parts.default.remaining, parts.two.remaining]).toEqual([CAPACITY - 2 - charged, CAPACITY - 2 - charged])
    })
  })
})

/** A slot with a tag of its own that moves from the node that has it to the other, step by step. */
async function movingSlot(nodes: readonly [RedisServer, RedisServer], tag: string) {
  const hashTag = () => tag
  const nameOf = (limiter: string, key: string) => redisKey({ prefix: 'sluice', hashTag }, limiter, key)
  const slot = slotOf(nameOf('any', 'any'))
  const [source, target] = slot < SLOTS / 2 ? nodes : [nodes[1], nodes[0]]
  const [sourceId, targetId] = [await idOf(source), await idOf(target)]
  return {
    hashTag,
    async begin() {
      await target.command('CLUSTER', 'SETSLOT', `${slot}`, 'IMPORTING', sourceId)
      await source.command('CLUSTER', 'SETSLOT', `${slot}`, 'MIGRATING', targetId)
    },
    move: (limiter: string, key: string) => source.command('MIGRATE', target.host, `${target.port}`, nameOf(limiter, key), '0', '5000'),
    async end() {
      for (const node of [target, source]) await node.command('CLUSTER', 'SETSLOT', `${slot}`, 'NODE', targetId)
    },
  }
}

describe('errors of clients that cannot reach the server are told with advice', () => {
  const told = async (store: AsyncStore) => {
    const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { name: 'api', store })
    const error = (await limiter.consume('k').catch((thrown: unknown) => thrown)) as Error
    limiter.close()
    return error.message
  }

  test('ioredis, which does not try again', async () => {
    const client = new Redis(1, { maxRetriesPerRequest: 0, retryStrategy: () => 1_000 })
    client.on('error', () => undefined)
    expect(await told(redisStore(client))).toMatch(/^Redis: .*\(the server cannot be reached: look at its address/)
    client.disconnect()
  })

  test('redis, whose connect() was forgotten', async () => {
    const client = createClient({ url: 'redis://127.0.0.1:1', disableOfflineQueue: true })
    expect(await told(redisStore(client))).toMatch(/^Redis: .*\(the client is not connected: call its connect\(\) first/)
  })
})
