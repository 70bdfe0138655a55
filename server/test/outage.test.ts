/** Under load, with a new configuration and a restart of Redis in the middle: every request is answered, by the policy while Redis is away. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { freePort, type RedisServer, startServer } from '../../test/support/redis-servers.ts'
import { readConfig } from '../src/config/read.ts'
import { type OpenedStore, openStore } from '../src/store.ts'
import { call } from './support/client.ts'
import { expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

const CALLERS = 8
const COPIES = 2
const FIRST_LIMIT = 300
const LIMIT = 400

const withLimit = (limit: number) => `limiters:
  api:
    limits: { type: fixedWindow, limit: ${limit}, window: 366d, anchor: first }
    onStoreError: deny
    storeTimeoutMs: 500
`

let folder: string
let port: number
let redis: RedisServer
let opened: OpenedStore[]
let copies: TestService[]

/** What was answered has been written to the disk: a restart forgets nothing. */
const startRedis = () => startServer(['--dir', folder, '--appendonly', 'yes', '--appendfsync', 'always'], port)

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-service-'))
  port = await freePort()
  redis = await startRedis()
  opened = Array.from({ length: COPIES }, () => openStore(`redis://127.0.0.1:${port}`, () => undefined))
  copies = await Promise.all(opened.map(({ store }) => serviceOn(withLimit(FIRST_LIMIT), store)))
})

afterEach(async () => {
  for (const copy of copies) {
    await copy.stop(0)
    expectNoFailure(copy)
  }
  for (const { close } of opened) close()
  await redis.kill()
  rmSync(folder, { recursive: true })
})

test('counts stay exact through a reload and a restart of Redis', async () => {
  const seen = { allowed: 0, refused: 0, degraded: 0, statuses: new Set<number>() }
  let over = false

  async function caller(k: number): Promise<void> {
    while (!over) {
      const { status, body } = await call((copies[k % COPIES] as TestService).url, 'POST', '/v1/decide', { limiter: 'api', key: 'u1' })
      seen.statuses.add(status)
      if (body.degraded) seen.degraded += 1
      else if (body.allowed) seen.allowed += 1
      else seen.refused += 1
    }
  }
  const callers = Promise.all(Array.from({ length: CALLERS }, (_, k) => caller(k)))

  await until(() => seen.allowed >= 100)
  for (const { limiters } of copies) limiters.use(readConfig(withLimit(LIMIT), 'test.yaml'))
  await until(() => seen.allowed >= 200)
  await redis.kill()
  await until(() => copies.every(({ limiters }) => limiters.get('api')?.health.state === 'down'))
  await until(() => seen.degraded > 0)
  redis = await startRedis()
  await until(() => seen.refused > 0)
  over = true
  await callers

  expect([...seen.statuses]).toEqual([200])
  expect(seen.degraded).toBeGreaterThan(0)
  // One decision of each caller may have been charged without an answer when Redis was killed. None is ever admitted too many.
  expect(seen.allowed).toBeLessThanOrEqual(LIMIT)
  expect(seen.allowed).toBeGreaterThanOrEqual(LIMIT - CALLERS)
  for (const { url } of copies) {
    expect((await call(url, 'GET', '/v1/limiters/api/keys/u1')).body).toMatchObject({ limit: LIMIT, remaining: 0, degraded: false })
  }
})
