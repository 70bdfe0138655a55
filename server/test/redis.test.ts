/** Several copies of the service on one real Redis. */
import { randomUUID } from 'node:crypto'
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, inject, test, vi } from 'vitest'
import { freePort, QUICK_MS, type RedisServer, startCluster, startSentinels, startServer } from '../../test/support/redis-servers.ts'
import { redisTls } from '../src/redis-tls.ts'
import { redisAddress } from '../src/redis-url.ts'
import { type OpenedStore, openStore, type RedisSecrets } from '../src/store.ts'
import { call } from './support/client.ts'
import { expectNoFailure, serviceOn, type TestService } from './support/service.ts'

const COPIES = 2
const certificate = (name: string) => fileURLToPath(new URL(`./support/certificates/${name}`, import.meta.url))

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

describe('other ways to Redis', () => {
  const CONFIG = 'limiters: { api: { limits: { type: gcra, rate: 1/h, burst: 2 } } }'
  let service: TestService
  let opened: OpenedStore

  afterEach(async () => {
    await service.stop(0)
    opened.close()
    expectNoFailure(service)
  })

  async function decidesBy(url: string, secrets: RedisSecrets = {}): Promise<boolean[]> {
    opened = await openStore(url, () => undefined, undefined, secrets)
    service = await serviceOn(CONFIG, opened.store)
    const { body } = await call(service.url, 'POST', '/v1/decide', { decisions: Array(3).fill({ limiter: 'api', key: 'u1' }) })
    return body.decisions.map(({ allowed }: { allowed: boolean }) => allowed)
  }

  test('sentinels say where the primary is, also after another took its place', async () => {
    const { servers, sentinels, stop } = await startSentinels(QUICK_MS)
    try {
      const hosts = sentinels.map(({ host, port }) => `${host}:${port}`).join(',')
      expect(await decidesBy(`redis+sentinel://${hosts}/main/3`)).toEqual([true, true, false])
      expect(opened.description).toBe(`redis+sentinel://${hosts.replaceAll(',', ', ')}/main/3`)
      expect(await servers[0]?.command('INFO', 'keyspace')).toContain('db3:')
      await servers[0]?.kill()
      const again = async () => (await call(service.url, 'POST', '/v1/decide', { limiter: 'api', key: 'u2' })).status
      await vi.waitFor(async () => expect(await again()).toBe(200), { timeout: 30_000, interval: 200 })
      await vi.waitFor(() => expect(service.storeState.state).toBe('up'), { timeout: 30_000 })
    } finally {
      await stop()
    }
  })

  /**
   * A server that wants certificates, as a cluster of one, and a user without whom nothing but its
   * state can be seen.
   */
  async function startGuarded(): Promise<{ redis: RedisServer; port: number }> {
    const port = await freePort(55_000)
    const files = ['--tls-ca-cert-file', certificate('ca.pem'), '--tls-cert-file', certificate('server.pem')]
    const tls = ['--tls-port', `${port}`, ...files, '--tls-key-file', certificate('server.key'), '--tls-auth-clients', 'yes']
    const users = ['--user', 'default', 'on', 'nopass', '+@all', '-@scripting', '--user', 'limits', 'on', '>pass', '~*', '&*', '+@all']
    const redis = await startServer([
      '--cluster-enabled',
      'yes',
      '--cluster-announce-ip',
      '127.0.0.1',
      '--tls-cluster',
      'yes',
      ...tls,
      ...users,
    ])
    await redis.command('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await vi.waitFor(async () => expect(`${await redis.command('CLUSTER', 'INFO')}`).toContain('cluster_state:ok'), { timeout: 30_000 })
    return { redis, port }
  }

  test('TLS with certificates of both sides, to one server and to all nodes of a cluster', async () => {
    const { redis, port } = await startGuarded()
    const files = { ca: certificate('ca.pem'), cert: certificate('client.pem'), key: certificate('client.key') }
    const url = `rediss://limits:pass@127.0.0.1:${port}`
    try {
      const tls = redisTls(files, () => undefined)
      expect(await decidesBy(url, { tls })).toEqual([true, true, false])
      await service.stop(0)
      opened.close()
      // The cluster tells of this node by itself, without user and TLS.
      expect(await decidesBy(`${url},${url}`, { tls })).toEqual([false, false, false])
      await service.stop(0)
      opened.close()
      const errors: Error[] = []
      opened = await openStore(url, (error) => errors.push(error), undefined, {
        tls: redisTls({ ...files, cert: undefined, key: undefined }, () => undefined),
      })
      await vi.waitFor(() => expect(errors.map(({ message }) => message).join()).toContain('certificate required'), { timeout: 30_000 })
      service = await serviceOn(CONFIG)
    } finally {
      await redis.kill()
    }
  })

  test('a socket of this machine, with a user, a password and a database', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-socket-'))
    const path = join(folder, 'redis.sock')
    const redis = await startServer(['--unixsocket', path, '--user', 'limits', 'on', '>p@ss/word', '~*', '&*', '+@all'])
    try {
      expect(await decidesBy(`unix://limits:p%40ss%2Fword@${path}?db=2`)).toEqual([true, true, false])
      expect(opened.description).toBe(`unix://${path}`)
      expect(await redis.command('INFO', 'keyspace')).toContain('db2:')
    } finally {
      await redis.kill()
      rmSync(folder, { recursive: true })
    }
  })
})

test.each([
  [
    'redis+sentinel://u:p%40@a:1,[::1]:2,c/main/4',
    { kind: 'sentinels', primary: 'main', access: { username: 'u', password: 'p@', db: 4 } },
  ],
  ['rediss+sentinel://:pw@a/main', { kind: 'sentinels', access: { password: 'pw', tls: {} } }],
  ['unix:/run/redis.sock', { kind: 'socket', path: '/run/redis.sock', access: {} }],
  ['rediss://a', { kind: 'server', url: 'rediss://a', access: { tls: {} } }],
  [
    'rediss://u:p%40@a, rediss://u:p%40@[::1]:7000',
    {
      kind: 'cluster',
      nodes: [
        { host: 'a', port: 6379 },
        { host: '::1', port: 7000 },
      ],
      access: { username: 'u', password: 'p@', tls: {} },
    },
  ],
])('%s', (url, expected) => expect(redisAddress(url)).toMatchObject(expected))

test('sentinels have their own port unless another is named', () => {
  expect(redisAddress('redis+sentinel://a:1,[::1]:2,c/main')).toMatchObject({
    sentinels: [
      { host: 'a', port: 1 },
      { host: '::1', port: 2 },
      { host: 'c', port: 26_379 },
    ],
  })
})

test.each([
  'redis+sentinel://a:1',
  'redis+sentinel:///main',
  'unix:',
  'unix://relative',
  'localhost:6379',
  'http://localhost',
  'redis://a:6379,nonsense',
  '://',
])('%j is no Redis URL', async (url) => {
  await expect(openStore(url, () => undefined)).rejects.toThrow(/must be such as redis:\/\/localhost:6379/)
})

test('a password is not told, wherever it stands', async () => {
  const { description, close } = await openStore('redis://user:secret@127.0.0.1:1/2?password=secret', () => undefined)
  close()
  expect(description).toBe('redis://127.0.0.1:1/2')
  const wrong = [
    'ftp://user:secret@host',
    'user:secret@host',
    'redis+sentinel://u:secret@a,b',
    'redis://a,b:secret@c',
    'http://a?password=secret',
  ]
  for (const url of wrong) await expect(openStore(url, () => undefined)).rejects.toThrow(/^(?!.*secret)/)
})

test('certificates that are wrong, or that nothing would use, are an error at the start', async () => {
  const failed = () => undefined
  const ca = certificate('ca.pem')
  expect(redisTls({ ca: undefined, cert: undefined, key: undefined }, failed)).toBeUndefined()
  expect(() => redisTls({ ca, cert: certificate('client.pem'), key: undefined }, failed)).toThrow(
    '--redis-cert and --redis-key go together',
  )
  expect(() => redisTls({ ca: '/nowhere', cert: undefined, key: undefined }, failed)).toThrow('--redis-ca /nowhere cannot be read')
  const mixed = { ca, cert: certificate('client.pem'), key: certificate('stranger.key') }
  expect(() => redisTls(mixed, failed)).toThrow(/^the certificates for Redis, .*stranger\.key, cannot be used: /)
  const tls = redisTls({ ca, cert: undefined, key: undefined }, failed)
  await expect(openStore('redis://u:secret@a', failed, undefined, { tls })).rejects.toThrow(
    /go with a URL of rediss:\/\/, not "redis:\/\/a"$/,
  )
  expect(() => redisAddress('redis://a,rediss://b')).toThrow('URLs of one kind')
})

test('certificates are read again at each connection, and those of before stay where the new ones are wrong', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-tls-'))
  const ca = join(folder, 'ca.pem')
  const errors: string[] = []
  try {
    copyFileSync(certificate('ca.pem'), ca)
    const tls = redisTls({ ca, cert: undefined, key: undefined }, ({ message }) => errors.push(message))
    const connecting = () => `${Object.assign({}, tls).ca}`
    copyFileSync(certificate('stranger.pem'), ca)
    expect(connecting()).toBe(readFileSync(certificate('stranger.pem'), 'utf8'))
    writeFileSync(ca, 'half of a cert')
    expect(connecting()).toBe(readFileSync(certificate('stranger.pem'), 'utf8'))
    expect(errors).toEqual([expect.stringContaining('cannot be used')])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
