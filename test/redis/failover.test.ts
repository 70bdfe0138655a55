/**
 * A primary dies under load, and a replica takes over. Replication is asynchronous, so what the
 * dead primary had admitted last may be unknown to its successor: over-admission is bounded by one
 * more capacity. It must not come to a call that hangs, a store that stays broken, a key without a
 * time to live.
 */
import { randomUUID } from 'node:crypto'
import { createSentinel } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, gcra, type Limiter, type Limits, SluiceError, tokenBucket } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { redisKey, slotOf } from '../../src/stores/redis/keys.ts'
import { ranFromGuide } from '../support/guide.ts'
import { clientCases, type Opened } from '../support/redis-clients.ts'
import { primaryOf, QUICK_MS, type RedisServer, startCluster, startSentinels, type Topology, until } from '../support/redis-servers.ts'

const CAPACITY = 50
const limits = { burst: gcra({ rate: '1/h', burst: CAPACITY }), spare: tokenBucket({ refill: '1/h', capacity: 10 * CAPACITY }) }

/** A call that hangs must not hold up everything. */
const PATIENCE_MS = 90_000

/** Calls one after the other until told to stop. */
class Load {
  admitted = 0
  readonly failures: unknown[] = []
  #stopped = false
  readonly #ended: Promise<void>

  constructor(limiter: Limiter<Limits, AsyncStore>, key: string) {
    this.#ended = this.#run(limiter, key)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#ended
  }

  async #run(limiter: Limiter<Limits, AsyncStore>, key: string): Promise<void> {
    while (!this.#stopped) {
      await limiter.consume(key).then(
        ({ allowed }) => {
          this.admitted += allowed ? 1 : 0
        },
        (error) => this.failures.push(error),
      )
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}

async function failOver(opened: Opened, key: string, prefix: string, killPrimary: () => Promise<RedisServer>): Promise<void> {
  const limiter = createLimiter(limits, { name: 'api', store: redisStore(opened.client, { prefix }) })
  expect((await limiter.consume(key)).allowed).toBe(true)
  const load = new Load(limiter as unknown as Limiter<Limits, AsyncStore>, key)
  const successor = await killPrimary()
  await until(async () => {
    await limiter.peek(key)
    return true
  })
  await until(async () => (await limiter.consume(key)).outcome === 'limited')
  await load.stop()
  console.log(`${load.admitted} admitted of ${CAPACITY}, at most ${2 * CAPACITY}; ${load.failures.length} calls failed meanwhile`)
  expect(load.admitted + 1).toBeLessThanOrEqual(2 * CAPACITY)
  for (const failure of load.failures) expect(failure).toBeInstanceOf(SluiceError)
  const name = redisKey({ prefix, hashTag: undefined }, 'api', key)
  expect(Number(await successor.command('PTTL', name))).toBeGreaterThan(0)
}

describe.each(clientCases.filter(({ topology }) => topology === 'sentinel'))('$name with Sentinel', (cell) => {
  let topology: Awaited<ReturnType<typeof startSentinels>>
  beforeAll(async () => {
    topology = await startSentinels(QUICK_MS)
  }, 120_000)
  afterAll(() => topology.stop())

  test(
    'goes on with the replica when the primary dies',
    async () => {
      const opened = await cell.open(topology.sentinels)
      try {
        await failOver(opened, 'u1', `test:${randomUUID()}`, async () => {
          const [primary, replica] = topology.servers as [RedisServer, RedisServer]
          await primary.kill()
          await until(async () => (await primaryOf([replica])) !== undefined)
          return replica
        })
      } finally {
        await opened.close()
      }
    },
    PATIENCE_MS,
  )
})

test('redis with Sentinel, with the options of the guide, leaves a primary that was replaced and lives on', async () => {
  const topology = await startSentinels(QUICK_MS)
  const [sentinel, other] = topology.sentinels as [RedisServer, RedisServer]
  // The block makes clients of all kinds: only that of Sentinel is wanted here.
  const unused = () => ({ on() {}, async connect() {}, sendCommand() {}, evalSha() {} })
  const modules = { redis: { createSentinel, createClient: unused, createCluster: unused } }
  const servers = { 'limits.internal': sentinel, 's1.internal': sentinel, 'n1.internal': sentinel }
  const ran = await ranFromGuide('redis.md', 'createSentinel({', ['sentinel'], servers, modules)
  const client = ran.sentinel as ReturnType<typeof createSentinel>
  const options = { name: 'api', store: redisStore(client as RedisClient), onStoreError: 'deny', storeTimeoutMs: 500 } as const
  const limiter = createLimiter(gcra({ rate: '1/h', burst: 100_000 }), options)
  // Under load it connects to the same server again when that one ends the connection.
  const calls = setInterval(() => void limiter.consume('u1'), 20)
  try {
    await until(async () => !(await limiter.consume('u1')).degraded)
    const before = await primaryOf(topology.servers)
    await other.command('SENTINEL', 'FAILOVER', 'main')
    await until(async () => `${await before?.command('ROLE')}`.startsWith('slave'))
    await until(async () => !(await limiter.consume('u1')).degraded, 30_000)
    await until(async () => limiter.health().state === 'up')
  } finally {
    clearInterval(calls)
    limiter.close()
    await client.destroy()
    await topology.stop()
  }
})

describe.each(clientCases.filter(({ topology }) => topology === 'cluster'))('$name in a cluster', (cell) => {
  let topology: Topology
  beforeAll(async () => {
    topology = await startCluster(QUICK_MS)
  }, 120_000)
  afterAll(() => topology.stop())

  test(
    'goes on with the replica when the primary of the key dies',
    async () => {
      const opened = await cell.open(topology.servers)
      const prefix = `test:${randomUUID()}`
      try {
        await failOver(opened, 'u1', prefix, async () => {
          const slot = slotOf(redisKey({ prefix, hashTag: undefined }, 'api', 'u1'))
          const primary = await ownerOf(slot, topology.servers)
          await primary.kill()
          const alive = topology.servers.filter((server) => server !== primary)
          let successor: RedisServer | undefined
          await until(async () => {
            successor = await ownerOf(slot, alive)
            return `${await successor.command('CLUSTER', 'INFO')}`.includes('cluster_state:ok')
          })
          return successor as RedisServer
        })
      } finally {
        await opened.close()
      }
    },
    PATIENCE_MS,
  )
})

/** The primary that holds a slot. */
async function ownerOf(slot: number, servers: readonly RedisServer[]): Promise<RedisServer> {
  for (const server of servers) {
    const nodes = `${await server.command('CLUSTER', 'NODES')}`
    const own = nodes.split('\n').find((line) => line.includes('myself,master')) ?? ''
    const ranges = own
      .split(' ')
      .slice(8)
      .map((range) => range.split('-').map(Number))
    if (ranges.some(([first = -1, last = first]) => slot >= first && slot <= last)) return server
  }
  throw new Error(`nobody has slot ${slot}`)
}
