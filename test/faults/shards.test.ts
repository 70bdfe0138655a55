/**
 * One of three servers of a cluster dies, and nobody takes its place. Its keys are the policy's;
 * those of the other two are Redis's, all of them.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey, slotOf } from '../../src/stores/redis/keys.ts'
import { clientCases } from '../support/redis-clients.ts'
import { QUICK_MS, type RedisServer, type Shards, startShards, until } from '../support/redis-servers.ts'
import { keysWithoutExpiry, settling, unhandled } from './watch.ts'

const STORE_TIMEOUT_MS = 1_000
/** redis-cli gives each of three servers a third of the slots, in the order of their addresses. */
const SLOTS_OF_ONE = 16_384 / 3
const KEYS_OF_EACH = 20

let shards: Shards
beforeAll(async () => {
  shards = await startShards(QUICK_MS)
}, 120_000)
afterAll(() => shards.stop())

/** So many keys of a limiter on each of the servers. */
function keysByServer(limiter: string): string[][] {
  const keys: string[][] = [[], [], []]
  for (let k = 0; keys.some((some) => some.length < KEYS_OF_EACH); k++) {
    const slot = slotOf(redisKey({ prefix: 'sluice', hashTag: undefined }, limiter, `u${k}`))
    const some = keys[Math.min(2, Math.floor(slot / SLOTS_OF_ONE))] as string[]
    if (some.length < KEYS_OF_EACH) some.push(`u${k}`)
  }
  return keys
}

const clients = clientCases.filter(({ topology, name }) => topology === 'cluster' && name !== 'valkey-glide')

describe.each([
  { how: 'dies', strike: (server: RedisServer) => server.kill(), end: (index: number) => shards.restart(index) },
  {
    how: 'stands still',
    strike: async (server: RedisServer) => server.signal('SIGSTOP'),
    end: async (index: number) => shards.servers[index]?.signal('SIGCONT'),
  },
])('one server of three $how', ({ strike, end }) => {
  test('the others decide about all of their keys, and afterwards it decides about its own again', async () => {
    const opened = await Promise.all(clients.map((client) => client.open(shards.servers)))
    const cells = opened.map(({ client }, k) => {
      const name = `shards-${randomUUID()}`
      const events: string[] = []
      const limiter = createLimiter(gcra({ rate: '1/h', burst: 1_000 }), {
        name,
        store: redisStore(client),
        onStoreError: 'deny',
        storeTimeoutMs: STORE_TIMEOUT_MS,
        onHealth: ({ state }) => events.push(state),
      })
      const keys = keysByServer(name)
      /** How many of these keys were decided by the policy. */
      const degraded = async (some: readonly string[]) => {
        const decisions = await Promise.all(some.map((key) => settling(limiter.consume(key))))
        return decisions.filter((decision) => decision.degraded).length
      }
      return {
        client: clients[k]?.name,
        limiter,
        events,
        degraded,
        dead: keys[0] as string[],
        others: [...(keys[1] as string[]), ...(keys[2] as string[])],
      }
    })
    try {
      for (const { client, degraded, dead, others } of cells) expect([client, await degraded([...dead, ...others])]).toEqual([client, 0])
      await strike(shards.servers[0] as RedisServer)
      await Promise.all(
        cells.map(async ({ client, limiter, degraded, dead, others }) => {
          expect([client, await degraded(dead)]).toEqual([client, KEYS_OF_EACH])
          expect([client, limiter.health().state]).toEqual([client, 'down'])
          // For longer than the cluster takes to notice, and several probes.
          for (let round = 0; round < 20; round++) {
            expect([client, await degraded(others)]).toEqual([client, 0])
            expect([client, await degraded(dead)]).toEqual([client, KEYS_OF_EACH])
            await new Promise((resolve) => setTimeout(resolve, 100))
          }
        }),
      )
      for (const { client, events } of cells) expect([client, events]).toEqual([client, ['down']])
      await end(0)
      await Promise.all(cells.map(({ degraded, dead }) => until(async () => (await degraded(dead)) === 0, 30_000)))
      for (const { client, limiter, events, degraded, dead, others } of cells) {
        expect([client, await degraded([...dead, ...others])]).toEqual([client, 0])
        // A server that is back may say once more that its cluster is down.
        expect([client, limiter.health().state, events.at(-1)]).toEqual([client, 'up', 'up'])
      }
      expect(await keysWithoutExpiry(shards.servers)).toEqual([])
      expect(unhandled()).toEqual([])
    } finally {
      for (const { limiter } of cells) limiter.close()
      for (const each of opened) await each.close()
    }
  })
})
