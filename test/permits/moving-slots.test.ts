/**
 * A cluster moves a slot from one server to another, and back, while permits of two of its keys are
 * held, renewed, taken and released. For longer than a lease one of the keys has moved and the
 * other has not: no script can have both, and they are renewed in one call. By the servers' time,
 * which is that of one machine, no more than `max` are held at once; every holder keeps its permit;
 * and when all is over, nothing is left in use.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { concurrency, createLimiter } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey, slotOf } from '../../src/stores/redis/keys.ts'
import { clientCases, type Opened } from '../support/redis-clients.ts'
import { type RedisServer, type Shards, startShards, until } from '../support/redis-servers.ts'
import { heldAtGrant, holdsOf, mostHeld } from './swept.ts'

const MAX = 3
/**
 * ioredis asks again for 1.6 s by itself before it says that a script could not be run. A renewal,
 * sent after a third of the lease, may take as long and longer on a busy machine.
 */
const LEASE_MS = 6_000
const KEYS = ['first', 'second'] as const
const WORKERS = 8

let shards: Shards

beforeAll(async () => {
  shards = await startShards()
}, 60_000)

afterAll(() => shards.stop())

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

async function serverUs(): Promise<number> {
  const [seconds, micros] = (await (shards.servers[0] as RedisServer).command('TIME')) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}

let lastMigration: Promise<unknown> = Promise.resolve()

/** One after the other: two servers that send each other a key wait for each other. */
function migrated(source: RedisServer, target: RedisServer, name: string): Promise<unknown> {
  const migrate = () => source.command('MIGRATE', target.host, `${target.port}`, name, '0', '20000')
  const migration = lastMigration.then(migrate, migrate)
  lastMigration = migration
  return migration
}

/** The slot that all keys of a tag are in, and the ways to move it. */
function slotWith(tag: string) {
  const hashTag = () => tag
  const nameOf = (key: string) => redisKey({ prefix: 'sluice', hashTag }, 'jobs', key)
  const slot = slotOf(nameOf('any'))
  const cluster = async (server: RedisServer, ...args: string[]) => `${await server.command('CLUSTER', ...args)}`
  const owner = async () => {
    for (const server of shards.servers) {
      const own = (await cluster(server, 'NODES')).split('\n').find((line) => line.includes('myself')) as string
      const ranges = own
        .split(' ')
        .slice(8)
        .map((range) => range.split('-').map(Number))
      if (ranges.some(([from = -1, to = from]) => from <= slot && slot <= to)) return server
    }
    throw new Error(`no server has slot ${slot}`)
  }
  /**
   * Moves key after key; `between` is waited for while the first has moved and the second has not.
   */
  const move = async (between: () => Promise<void>) => {
    const source = await owner()
    const target = shards.servers.find((server) => server !== source) as RedisServer
    const [sourceId, targetId] = await Promise.all([source, target].map((server) => cluster(server, 'MYID')))
    await cluster(target, 'SETSLOT', `${slot}`, 'IMPORTING', sourceId as string)
    await cluster(source, 'SETSLOT', `${slot}`, 'MIGRATING', targetId as string)
    for (const key of KEYS) {
      expect(await migrated(source, target, nameOf(key))).toBe('OK')
      if (key === KEYS[0]) await between()
    }
    for (const node of [target, source]) await cluster(node, 'SETSLOT', `${slot}`, 'NODE', targetId as string)
  }
  return { hashTag, move }
}

describe.concurrent.each(clientCases.filter(({ topology, name }) => topology === 'cluster' && (name === 'redis' || name === 'ioredis')))(
  'a slot of a cluster moves, with $name',
  (cell) => {
    test('and nobody who holds a permit there notices', async () => {
      const slot = slotWith(`moved-${cell.name}`)
      const clients: Opened[] = await Promise.all([0, 1].map(() => cell.open(shards.servers)))
      // To Redis they are two processes. A busy machine is not an outage.
      const limiters = clients.map(({ client }) => {
        const store = redisStore(client, { hashTag: slot.hashTag })
        return createLimiter(concurrency({ max: MAX, lease: `${LEASE_MS}ms` }), { name: 'jobs', store, storeTimeoutMs: 20_000 })
      })
      const [limiter] = limiters as [(typeof limiters)[number]]
      try {
        const lasting = await Promise.all(KEYS.map((key) => limiter.acquire(key)))
        const notes: Record<string, [token: number, us: number][]> = { first: [], second: [] }
        let isOver = false
        const work = async (k: number) => {
          const key = KEYS[k % 2] as string
          while (!isOver) {
            const permit = await (limiters[(k >> 1) % 2] as typeof limiter).acquire(key)
            const us = await serverUs()
            if (permit.held) notes[key]?.push([permit.token, us])
            await pause(5)
            await permit.release()
          }
        }
        const workers = Promise.all(Array.from({ length: WORKERS }, (_, k) => work(k)))
        workers.catch(() => undefined)
        const aLease = async () => {
          const untilUs = (await serverUs()) + LEASE_MS * 1_000
          await until(async () => (await serverUs()) > untilUs)
        }
        await slot.move(aLease)
        await slot.move(async () => {})
        isOver = true
        await workers
        const endUs = await serverUs()
        expect(lasting.map(({ held, signal }) => [held, signal.aborted])).toEqual([
          [true, false],
          [true, false],
        ])
        for (const [k, key] of KEYS.entries()) {
          const holds = holdsOf([...(notes[key] as [number, number][]), [(lasting[k] as { token: number }).token, endUs]])
          console.log(`${cell.name}, ${key}: ${holds.size} permits, up to ${mostHeld(holds)} at once`)
          expect(holds.size).toBeGreaterThan(5)
          expect(mostHeld(holds)).toBeLessThanOrEqual(MAX)
          for (const token of holds.keys()) expect(heldAtGrant(holds, token)).toBeLessThanOrEqual(MAX)
          expect(await limiter.peek(key)).toMatchObject({ remaining: MAX - 1 })
        }
        await Promise.all(lasting.map((permit) => permit.release()))
        for (const key of KEYS) expect((await limiter.peek(key)).remaining).toBe(MAX)
      } finally {
        for (const each of limiters) each.close()
        for (const each of clients) await each.close()
      }
    })
  },
)
