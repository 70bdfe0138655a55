/**
 * Two copies of a service on one Redis, with another `max` and another lease: as while a new
 * configuration is rolled out. Used belongs to the key, capacity to the caller: each copy lets in
 * by its own `max` whatever the other holds, nobody's lease is cut or lost, and nobody waits for
 * ever.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { concurrency, createLimiter } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { heldAtGrant, holdsOf, mostHeld } from './swept.ts'

/** A lease is renewed after a third of it: a machine may stand still for two seconds. */
const OLD = { max: 2, leaseMs: 4_000 }
const NEW = { max: 5, leaseMs: 5_000 }

let server: RedisServer
let clients: readonly [TestRedis, TestRedis, TestRedis]

beforeAll(async () => {
  server = await startServer()
  clients = [await connectRedis(server.port), await connectRedis(server.port), await connectRedis(server.port)]
})

afterAll(async () => {
  for (const client of clients) client.close()
  await server.kill()
})

async function serverUs(): Promise<number> {
  const [seconds, micros] = (await clients[2].send(['TIME'])) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}

/** A busy machine is not an outage. */
const copyOf = ({ max, leaseMs }: typeof OLD, client: TestRedis, name: string) =>
  createLimiter(concurrency({ max, lease: `${leaseMs}ms` }), { name, store: redisStore(client), storeTimeoutMs: Number.POSITIVE_INFINITY })

test('each lets in by its own numbers, and renews what it holds by them', async () => {
  const [before, after] = [copyOf(OLD, clients[0], 'rolled'), copyOf(NEW, clients[1], 'rolled')]
  const ofOld = [await before.consume('key'), await before.consume('key')]
  expect(await before.consume('key')).toMatchObject({ outcome: 'limited', limit: 2, remaining: 0 })
  const ofNew = [await after.consume('key'), await after.consume('key'), await after.consume('key')]
  expect(ofNew.map(({ allowed, limit, remaining }) => [allowed, limit, remaining])).toEqual([
    [true, 5, 2],
    [true, 5, 1],
    [true, 5, 0],
  ])
  expect(await before.peek('key')).toMatchObject({ outcome: 'limited', remaining: 0 })
  expect(await before.consume('key', 3)).toMatchObject({ outcome: 'impossible' })
  // Longer than both leases: each copy renews its own, by its own.
  const untilUs = (await serverUs()) + NEW.leaseMs * 1_000
  await until(async () => (await serverUs()) > untilUs)
  expect([...ofOld, ...ofNew].map(({ held }) => held)).toEqual([true, true, true, true, true])
  const state = (await inspectKey(clients[2], 'sluice:rolled:{key}'))[0]?.state ?? {}
  const nowUs = await serverUs()
  for (const [{ leaseMs }, permits] of [
    [OLD, ofOld],
    [NEW, ofNew],
  ] as const) {
    for (const { token } of permits) {
      const endUs = state[`${token} until`] as number
      expect(endUs).toBeGreaterThan(token + NEW.leaseMs * 1_000)
      expect(endUs).toBeLessThanOrEqual(nowUs + leaseMs * 1_000)
    }
  }
  // Four of five places are used: one more for the new copy, none for the old one until fewer than
  // its two are.
  await ofOld[0]?.release()
  expect((await before.consume('key')).allowed).toBe(false)
  const last = await after.consume('key')
  expect(last.allowed).toBe(true)
  const waiting = before.acquire('key')
  for (const permit of [ofOld[1], last, ...ofNew.slice(1)]) await permit?.release()
  const granted = await waiting
  expect((await after.peek('key')).remaining).toBe(3)
  await Promise.all([granted.release(), ofNew[0]?.release()])
  expect([(await before.peek('key')).remaining, (await after.peek('key')).remaining]).toEqual([2, 5])
})

test('no grant goes beyond the max of its own copy, and all who wait come in', async () => {
  const copies = [copyOf(OLD, clients[0], 'mixed'), copyOf(NEW, clients[1], 'mixed')] as const
  const notes: [token: number, us: number][] = []
  const ofCopy = [new Set<number>(), new Set<number>()] as const
  const work = async (copy: 0 | 1, jobs: number) => {
    for (let job = 0; job < jobs; job++) {
      const permit = await copies[copy].acquire('key')
      ofCopy[copy].add(permit.token)
      for (let look = 0; look < 2 + (job % 3); look++) {
        const us = await serverUs()
        if (permit.held) notes.push([permit.token, us])
      }
      await permit.release()
    }
  }
  await Promise.all([0, 1, 2, 3].flatMap(() => [work(0, 15), work(1, 40)]))
  const holds = holdsOf(notes)
  expect(holds.size).toBe(4 * (15 + 40))
  expect(mostHeld(holds)).toBeLessThanOrEqual(NEW.max)
  for (const token of ofCopy[0]) expect(heldAtGrant(holds, token)).toBeLessThanOrEqual(OLD.max)
  for (const token of ofCopy[1]) expect(heldAtGrant(holds, token)).toBeLessThanOrEqual(NEW.max)
  expect([(await copies[0].peek('key')).remaining, (await copies[1].peek('key')).remaining]).toEqual([2, 5])
})
