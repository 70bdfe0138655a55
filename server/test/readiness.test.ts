/**
 * Readiness, which says whether to send callers here: on a real Redis that is missing, starts,
 * stands still and stops.
 */
import { afterEach, describe, expect, test, vi } from 'vitest'
import { freePort, type RedisServer, startServer } from '../../test/support/redis-servers.ts'
import { readConfig } from '../src/config/read.ts'
import { type OpenedStore, openStore } from '../src/store.ts'
import { call } from './support/client.ts'
import { expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const limiter = (name: string, policy: string) =>
  `  ${name}: { limits: { type: gcra, rate: 1/h, burst: 100 }, onStoreError: ${policy}, storeTimeoutMs: 200 }\n`
const configOf = (...policies: string[]) => `limiters:\n${policies.map((policy, k) => limiter(`l${k}`, policy)).join('')}`

let redis: RedisServer | undefined
let opened: OpenedStore
let service: TestService

afterEach(async () => {
  redis?.signal('SIGCONT')
  await service.stop(0)
  opened.close()
  await redis?.kill()
  redis = undefined
  expectNoFailure(service)
})

async function start(port: number, ...policies: string[]): Promise<void> {
  opened = await openStore(`redis://127.0.0.1:${port}`, () => undefined)
  service = await serviceOn(configOf(...policies), opened.store)
}

const readyz = () => call(service.url, 'GET', '/readyz')
const READY = { status: 200, body: { status: 'ready' } }
const WAIT = { timeout: 30_000, interval: 50 }
const NOT_READY = { status: 503, body: { code: 'STORE' } }
const becomes = (expected: object) => vi.waitFor(async () => expect(await readyz()).toMatchObject(expected), WAIT)

test('without a Redis that was ever reached it is not ready, though nobody has asked for a decision; with one it is', async () => {
  const port = await freePort(50_000)
  await start(port, 'throw', 'local')
  expect(await readyz()).toMatchObject(NOT_READY)
  redis = await startServer([], port)
  await becomes(READY)
})

test('where every limiter decides without Redis, it is ready without', async () => {
  await start(await freePort(50_000), 'local', 'allow', 'deny')
  expect(await readyz()).toMatchObject(READY)
})

describe('when Redis stands still', () => {
  test('one limiter that can decide keeps it ready', async () => {
    redis = await startServer()
    await start(redis.port, 'throw', 'local')
    redis.signal('SIGSTOP')
    await vi.waitFor(async () => {
      const { status, body } = await call(service.url, 'POST', '/v1/decide', { limiter: 'l0', key: 'k' })
      expect({ status, code: body.code }).toEqual({ status: 503, code: 'STORE' })
    }, WAIT)
    expect((await call(service.url, 'POST', '/v1/decide', { limiter: 'l1', key: 'k' })).body).toMatchObject({ degraded: true })
    // The first probe comes when the outage has been noticed.
    await vi.waitFor(() => expect(service.storeState.state).toBe('down'), WAIT)
    expect(await readyz()).toMatchObject(READY)
  })

  test('it is not ready where none can, a reload changes nothing of that, and it comes back by itself', async () => {
    redis = await startServer()
    await start(redis.port, 'throw', 'throw')
    expect(await readyz()).toMatchObject(READY)
    redis.signal('SIGSTOP')
    await becomes(NOT_READY)
    // New limiters, which have not been asked anything.
    service.limiters.use(readConfig(configOf('throw', 'throw', 'throw').replaceAll('200 }', '201 }'), 'test.yaml'))
    expect(await readyz()).toMatchObject(NOT_READY)
    redis.signal('SIGCONT')
    await becomes(READY)
  })
})

test('a reload while all is well leaves it ready', async () => {
  redis = await startServer()
  await start(redis.port, 'throw')
  for (const options of ['201 }', '202 }']) {
    service.limiters.use(readConfig(configOf('throw').replaceAll('200 }', options), 'test.yaml'))
    expect(await readyz()).toMatchObject(READY)
  }
})

test('a Redis that answers but takes no writes is not ready', async () => {
  const primary = await startServer()
  redis = await startServer(['--replicaof', '127.0.0.1', `${primary.port}`])
  await start(redis.port, 'throw')
  try {
    expect(await readyz()).toMatchObject(NOT_READY)
  } finally {
    await primary.kill()
  }
})
