/**
 * Every verb under every policy while a real server stands still, or was never reached: each call
 * is answered, and afterwards Redis decides again.
 */
import { Redis } from 'ioredis'
import { Redis as Valkey } from 'iovalkey'
import { createClient } from 'redis'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, gcra, type Limiter, type LimiterOptions } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { type FaultProxy, ofCalls, startProxy } from '../support/fault-proxy.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { POLICIES, type Policy } from './story.ts'
import { settling, unhandled } from './watch.ts'

const CAPACITY = 10
/** A busy machine is not an outage. */
const STORE_TIMEOUT_MS = 1_000
const limit = gcra({ rate: '1/h', burst: CAPACITY })
type Sluice = Limiter<typeof limit, AsyncStore>

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})
afterAll(() => expect(unhandled()).toEqual([]))

async function serverBehindProxy(): Promise<{ server: RedisServer; proxy: FaultProxy }> {
  const server = await startServer()
  closers.push(() => server.kill())
  const proxy = await startProxy(server.port)
  closers.push(() => proxy.close())
  return { server, proxy }
}

function limiterOn(client: RedisClient, onStoreError: Policy, options: Partial<LimiterOptions<typeof limit, AsyncStore>> = {}): Sluice {
  const limiter = createLimiter(limit, {
    name: 'api',
    store: redisStore(client),
    onStoreError,
    storeTimeoutMs: STORE_TIMEOUT_MS,
    ...options,
  })
  closers.push(() => limiter.close())
  return limiter
}

async function clientOf({ host, port }: { host: string; port: number }): Promise<RedisClient> {
  const client = createClient({ socket: { host, port } })
  client.on('error', () => undefined)
  await client.connect()
  closers.push(() => client.destroy())
  return client
}

/** What a call ends with: what it gives, or the code of its error. */
const endOf = (call: Promise<unknown>) =>
  settling(call).then(
    (value) => value,
    (error) => ({ code: error.code, is: `${error}` }),
  )

async function decidedByRedis(limiter: Sluice): Promise<void> {
  await until(async () => !(await settling(limiter.peek('u1', 0))).degraded && limiter.health().state === 'up', 20_000)
}

const STORE = { code: 'STORE' }
const served = { allowed: true, degraded: true }
const refused = { allowed: false, outcome: 'limited', degraded: true }

/** What each verb ends with while there is no Redis. */
const ENDS: Readonly<Record<Policy, Readonly<Record<string, unknown>>>> = {
  throw: { consume: STORE, peek: STORE, reserve: STORE, refund: STORE, reset: STORE, acquire: STORE },
  allow: { consume: served, peek: served, reserve: served, refund: undefined, reset: STORE, acquire: served },
  deny: {
    consume: refused,
    peek: refused,
    reserve: refused,
    refund: undefined,
    reset: STORE,
    acquire: { code: 'TIMEOUT' },
  },
  local: { consume: served, peek: served, reserve: served, refund: undefined, reset: STORE, acquire: served },
}

describe.each(POLICIES)("'%s'", (policy) => {
  test('every verb is answered while the server stands still, and by Redis when it goes on', async () => {
    const { server } = await serverBehindProxy()
    const limiter = limiterOn(await clientOf(server), policy)
    await limiter.consume('u1')
    server.signal('SIGSTOP')
    // Who is refused waits until the time is up; all others are answered long before.
    const timeoutMs = policy === 'deny' ? 2_000 : 15_000
    try {
      const calls: Record<string, Promise<unknown>> = {
        consume: limiter.consume('u1'),
        peek: limiter.peek('u1'),
        reserve: limiter.reserve('u1'),
        refund: limiter.refund('u1'),
        reset: limiter.reset('u1'),
        acquire: limiter.acquire('u1', { timeoutMs }),
      }
      for (const [verb, call] of Object.entries(calls)) {
        const end = await endOf(call)
        const expected = ENDS[policy][verb]
        if (typeof expected === 'object') expect(end, verb).toMatchObject(expected as object)
        else expect(end, verb).toBe(expected)
      }
      expect(limiter.health()).toMatchObject({ state: 'down', error: STORE })
      // Now that it is known nobody waits for the server any more.
      expect(await endOf(limiter.consume('u1'))).toMatchObject(
        policy === 'throw' ? STORE : { allowed: expect.any(Boolean), degraded: true },
      )
    } finally {
      server.signal('SIGCONT')
    }
    await decidedByRedis(limiter)
    await limiter.reset('u1')
    expect(await limiter.consume('u1')).toMatchObject({ degraded: false, remaining: CAPACITY - 1 })
  })

  test('an outage costs one wait, not one for each call', async () => {
    const { proxy } = await serverBehindProxy()
    const told: string[] = []
    const limiter = limiterOn(await clientOf(proxy), policy, { onHealth: ({ state }) => told.push(state) })
    await limiter.consume('u1')
    proxy.strike(ofCalls({ drop: 'request' }))
    // Probes come after 100, 200, 400 ms and so on, and each of them is waited for: in 1,000 calls
    // there are at most a few.
    for (let call = 0; call < 1_000; call++) await endOf(limiter.consume('u1'))
    console.log(`${policy}: ${proxy.struck} of 1000 calls and probes were sent to a server that does not answer, at most 5`)
    expect(proxy.struck).toBeLessThanOrEqual(5)
    expect(told).toEqual(['down'])
    proxy.heal()
    await decidedByRedis(limiter)
    expect(told).toEqual(['down', 'up'])
  })
})

test("a caller that waits under 'deny' is served by Redis when it is back", async () => {
  const { server } = await serverBehindProxy()
  const limiter = limiterOn(await clientOf(server), 'deny')
  await limiter.consume('u1')
  server.signal('SIGSTOP')
  let turn: Promise<unknown>
  try {
    expect(await limiter.consume('u1')).toMatchObject(refused)
    turn = limiter.acquire('u1')
    expect(limiter.waiting()).toBe(1)
  } finally {
    server.signal('SIGCONT')
  }
  expect(await settling(turn)).toMatchObject({ allowed: true, degraded: false })
  expect(limiter.waiting()).toBe(0)
})

/**
 * Clients that are given out before they are connected. Those of valkey-glide never are: one waits
 * for the client itself.
 */
const CONNECTING: readonly (readonly [name: string, open: (proxy: FaultProxy) => RedisClient])[] = [
  [
    'redis',
    ({ host, port }) => {
      const client = createClient({ socket: { host, port } })
      client.on('error', () => undefined)
      client.connect().catch(() => undefined)
      closers.push(() => client.destroy())
      return client
    },
  ],
  ...[Redis, Valkey as unknown as typeof Redis].map(
    (Client, k) =>
      [
        k === 0 ? 'ioredis' : 'iovalkey',
        ({ host, port }: FaultProxy) => {
          const client = new Client({ host, port, maxRetriesPerRequest: 0 })
          client.on('error', () => undefined)
          closers.push(() => client.disconnect())
          return client
        },
      ] as const,
  ),
]

describe.each(CONNECTING)('%s that is still connecting', (_, open) => {
  test('every policy answers in time; when the server is reached Redis decides', async () => {
    const { proxy } = await serverBehindProxy()
    proxy.strike(() => ({ drop: 'request' }))
    const client = open(proxy)
    const limiters = POLICIES.map((policy) => ({ policy, limiter: limiterOn(client, policy, { name: policy }) }))
    const calls = limiters.map(({ limiter }) => Promise.all(Array.from({ length: 5 }, () => endOf(limiter.consume('u1')))))
    for (const [k, ends] of (await Promise.all(calls)).entries()) {
      const { policy, limiter } = limiters[k] as (typeof limiters)[number]
      for (const end of ends) expect(end, policy).toMatchObject(ENDS[policy].consume as object)
      expect(limiter.health().state, policy).toBe('down')
    }
    proxy.heal()
    for (const { policy, limiter } of limiters) {
      await decidedByRedis(limiter)
      const { degraded, remaining } = await limiter.consume('u1')
      expect(degraded, policy).toBe(false)
      // What a client had not sent it may send later: up to one charge for each call, and never one
      // more.
      expect(remaining, policy).toBeGreaterThanOrEqual(CAPACITY - 5 - 1)
    }
  })
})
