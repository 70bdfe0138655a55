/**
 * Connections that look open and are dead, as when a firewall or a NAT has forgotten them: the
 * server is well, and new connections are served at once. Only the client can notice, and by
 * default none does.
 */
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, expect, inject, test } from 'vitest'
import { openStore } from '../../server/src/store.ts'
import { type AsyncStore, createLimiter, gcra } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type FaultProxy, startProxy } from '../support/fault-proxy.ts'
import { until } from '../support/redis-servers.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

async function proxyOfItsOwn(): Promise<FaultProxy> {
  const proxy = await startProxy(inject('redisPort'))
  closers.push(() => proxy.close())
  return proxy
}

async function nodeRedis(port: number, options: Parameters<typeof createClient>[0] = {}): Promise<AsyncStore> {
  const client = createClient({ ...options, socket: { ...options.socket, host: '127.0.0.1', port } as never })
  client.on('error', () => undefined)
  await client.connect()
  closers.push(() => client.destroy())
  return redisStore(client)
}

function ioredis(port: number, options: { socketTimeout?: number } = {}): AsyncStore {
  const client = new Redis({ host: '127.0.0.1', port, maxRetriesPerRequest: 0, ...options })
  client.on('error', () => undefined)
  closers.push(() => client.disconnect())
  return redisStore(client)
}

/** Redis decides, then its connections die. Resolves when the breaker is open. */
async function struck(store: AsyncStore, proxy: FaultProxy) {
  const limiter = createLimiter(gcra({ rate: '1/h', burst: 10 }), { name: 'half-open', store, onStoreError: 'deny', storeTimeoutMs: 500 })
  closers.push(() => limiter.close())
  await until(async () => !(await limiter.peek('k')).degraded && limiter.health().state === 'up')
  proxy.forgetAll()
  expect(await limiter.peek('k')).toMatchObject({ degraded: true })
  expect(limiter.health().state).toBe('down')
  return limiter
}

test('with the options of the guide, and in the service, the client makes a new connection and everything recovers', async () => {
  const proxies = await Promise.all([proxyOfItsOwn(), proxyOfItsOwn(), proxyOfItsOwn()])
  const [first, second, third] = proxies as [FaultProxy, FaultProxy, FaultProxy]
  const service = await openStore(`redis://127.0.0.1:${third.port}`, () => undefined)
  closers.push(() => service.close())
  const reconnectStrategy = (retries: number) => Math.min(50 * retries, 1000)
  const limiters = await Promise.all([
    struck(ioredis(first.port, { socketTimeout: 1_000 }), first),
    struck(await nodeRedis(second.port, { pingInterval: 300, socket: { socketTimeout: 1_000, reconnectStrategy } }), second),
    struck(service.store as AsyncStore, third),
  ])
  await Promise.all(limiters.map((limiter) => until(async () => !(await limiter.peek('k')).degraded, 20_000)))
})

test('with the default options a warning says what to set', async () => {
  const warnings: string[] = []
  const listener = (warning: Error & { code?: string }) => {
    if (warning.code === 'SLUICE_HALF_OPEN') warnings.push(warning.message)
  }
  process.on('warning', listener)
  closers.push(() => process.off('warning', listener))
  const proxies = await Promise.all([proxyOfItsOwn(), proxyOfItsOwn()])
  const [first, second] = proxies as [FaultProxy, FaultProxy]
  await Promise.all([struck(ioredis(first.port), first), struck(await nodeRedis(second.port), second)])
  await until(async () => warnings.length === 2, 20_000)
  expect(warnings.sort()).toEqual([
    expect.stringMatching(/make it with socket: \{ socketTimeout: 3000, reconnectStrategy: .* \}, pingInterval: 1000$/),
    expect.stringMatching(/make it with socketTimeout: 3000$/),
  ])
})
