/**
 * A process that stands still, or never lets its event loop turn, in front of a Redis that is well.
 */
import { randomUUID } from 'node:crypto'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'
import { type FaultProxy, ofCalls, startProxy } from '../support/fault-proxy.ts'
import { type RedisServer, startServer } from '../support/redis-servers.ts'

const ROUNDS = 10
const STORE_TIMEOUT_MS = 500
const WORK_MS = 700
const ROUND_TRIP_MS = 8

let server: RedisServer
let proxy: FaultProxy
// Nobody else's: with the time that is allowed here, one that is busy with another test's work is
// not well.
beforeAll(async () => {
  server = await startServer()
  proxy = await startProxy(server.port)
})
afterAll(async () => {
  await proxy.close()
  await server.kill()
})

const closers: (() => unknown)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

const CLIENTS: Readonly<Record<string, (port: number) => Promise<RedisClient>>> = {
  async ioredis(port) {
    const client = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: 0 })
    closers.push(() => client.disconnect())
    return client
  },
  async redis(port) {
    const client = createClient({ socket: { port, host: '127.0.0.1' } })
    client.on('error', () => undefined)
    await client.connect()
    closers.push(() => client.destroy())
    return client
  },
}

/**
 * Synchronous work: nothing else happens in this process, the network between it and Redis
 * included.
 */
function work(ms: number): void {
  const endMs = performance.now() + ms
  while (performance.now() < endMs);
}

describe.each(Object.keys(CLIENTS))('%s', (name) => {
  test(`${WORK_MS} ms of work in the turn of a call, with a timeout of ${STORE_TIMEOUT_MS} ms, is no outage`, async () => {
    const client = await (CLIENTS[name] as (port: number) => Promise<RedisClient>)(proxy.port)
    const events: string[] = []
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 10 }), {
      name: `still-${randomUUID()}`,
      store: redisStore(client),
      onStoreError: 'deny',
      storeTimeoutMs: STORE_TIMEOUT_MS,
      onHealth: ({ state }) => events.push(state),
    })
    closers.push(() => limiter.close())
    // The script is known, and the connection there.
    await limiter.consume('first')
    proxy.strike(ofCalls({ delay: 'reply', ms: ROUND_TRIP_MS }))
    let degraded = 0
    for (let round = 0; round < ROUNDS; round++) {
      // One by itself, and many at a time.
      const calls = round % 2 === 0 ? 1 : 100
      const asked = Array.from({ length: calls }, (_, k) => limiter.consume(`${round}-${k}`))
      work(WORK_MS)
      for (const decision of await Promise.all(asked)) degraded += decision.degraded ? 1 : 0
    }
    proxy.heal()
    expect({ degraded, events }).toEqual({ degraded: 0, events: [] })
  })

  test('a loop on a refused key, which the denial cache answers, lets the event loop turn', async () => {
    const client = await (CLIENTS[name] as (port: number) => Promise<RedisClient>)(server.port)
    for (const limits of [
      gcra({ rate: '1/h', burst: 1 }),
      { one: gcra({ rate: '1/h', burst: 1 }), two: gcra({ rate: '2/h', burst: 2 }) },
    ]) {
      const limiter = createLimiter(limits, { name: `spin-${randomUUID()}`, store: redisStore(client, { denialCache: { maxMs: 10_000 } }) })
      closers.push(() => limiter.close())
      await limiter.consume('k')
      expect((await limiter.consume('k')).allowed).toBe(false)
      let hasTurned = false
      setImmediate(() => {
        hasTurned = true
      })
      let calls = 0
      for (; !hasTurned && calls < 20_000; calls++) await limiter.consume('k')
      expect(calls).toBeLessThan(1_000)
    }
  })
})
