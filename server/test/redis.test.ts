/** Several copies of the service on one real Redis. */
import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { startCluster } from '../../test/support/redis-servers.ts'
import { type OpenedStore, openStore } from '../src/store.ts'
import { call } from './support/client.ts'
import { expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const COPIES = 2

describe('two copies of the service', () => {
  let opened: OpenedStore[]
  let copies: TestService[]
  // The server is shared by all tests.
  const name = `svc-${randomUUID()}`

  beforeEach(async () => {
    const config = `limiters:\n  ${name}: { limits: { type: fixedWindow, limit: 100, window: 366d, anchor: first } }\n`
    opened = await Promise.all(Array.from({ length: COPIES }, () => openStore(`redis://127.0.0.1:${inject('redisPort')}`, () => undefined)))
    copies = await Promise.all(opened.map(({ store }) => serviceOn(config, store)))
  })

  afterEach(async () => {
    for (const copy of copies) {
      await copy.stop(0)
      expectNoFailure(copy)
    }
    for (const { close } of opened) close()
  })

  test('hold one limit exactly', async () => {
    const question = { limiter: name, key: 'u1' }
    const calls = Array.from({ length: 150 }, (_, k) => call((copies[k % COPIES] as TestService).url, 'POST', '/v1/decide', question))
    const batch = call((copies[0] as TestService).url, 'POST', '/v1/decide', { decisions: Array(50).fill(question) })
    const single = (await Promise.all(calls)).map(({ body }) => body)
    const decisions = [...single, ...(await batch).body.decisions] as { allowed: boolean; degraded: boolean }[]
    expect(decisions.filter(({ degraded }) => degraded)).toEqual([])
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(100)
    const [first, second] = copies as [TestService, TestService]
    expect((await call(first.url, 'DELETE', `/v1/limiters/${name}/keys/u1`)).status).toBe(204)
    expect((await call(second.url, 'GET', `/v1/limiters/${name}/keys/u1`)).body.remaining).toBe(100)
  })
})

test('several URLs are the nodes of a cluster', async () => {
  const cluster = await startCluster()
  const urls = cluster.servers.slice(0, 2).map(({ host, port }) => `redis://${host}:${port}`)
  const { store, close, description } = await openStore(urls.join(', '), () => undefined)
  const service = await serviceOn('limiters: { api: { limits: { type: gcra, rate: 1/h, burst: 2 } } }', store)
  try {
    expect(description).toBe(urls.join(', '))
    // Of keys in many slots, on all nodes.
    const keys = Array.from({ length: 20 }, (_, k) => `user:${k}`)
    const decisions = keys.flatMap((key) => Array(3).fill({ limiter: 'api', key }))
    const { body } = await call(service.url, 'POST', '/v1/decide', { decisions })
    expect(body.decisions.map(({ allowed }: { allowed: boolean }) => allowed)).toEqual(keys.flatMap(() => [true, true, false]))
  } finally {
    await service.stop(0)
    close()
    await cluster.stop()
  }
  expectNoFailure(service)
})

test.each(['localhost:6379', 'http://localhost', 'redis://a:6379,nonsense', '://'])('%j is no Redis URL', async (url) => {
  await expect(openStore(url, () => undefined)).rejects.toThrow(/must be such as redis:\/\/localhost:6379/)
})

test('a password is not told', async () => {
  const { description, close } = await openStore('redis://user:secret@127.0.0.1:1', () => undefined)
  close()
  expect(description).toBe('redis://127.0.0.1:1')
  await expect(openStore('ftp://user:secret@host', () => undefined)).rejects.toThrow(/^(?!.*secret)/)
})
