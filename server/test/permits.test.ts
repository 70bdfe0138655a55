/** Permits over HTTP: taken at one copy of the service, renewed and released at another. */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { asyncStore } from '../../src/stores/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { readConfig } from '../src/config/read.ts'
import { type OpenedStore, openStore } from '../src/store.ts'
import { call, type Reply } from './support/client.ts'
import { startedProcess } from './support/process.ts'
import { expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

const post = async (service: TestService, path: string, body: unknown): Promise<Reply['body']> => {
  const { status, body: answer } = await call(service.url, 'POST', path, body)
  expect(status, JSON.stringify(answer)).toBe(200)
  return answer
}
const inflightAt = async (service: TestService) =>
  Number(/^sluice_inflight\{limiter=".*"\} (\d+)$/m.exec((await call(service.url, 'GET', '/metrics')).body)?.[1])

describe('in memory', () => {
  const CONFIG = `
limiters:
  reports:
    limits:
      rate: { type: gcra, rate: 100/s, burst: 100 }
      inflight: { type: concurrency, max: 2, lease: 30s }
    plans:
      pro:
        rate: { type: gcra, rate: 100/s, burst: 100 }
        inflight: { type: concurrency, max: 3, lease: 60s }
  quiet:
    limits: { type: concurrency, max: 1, lease: 1s }
    shadow: true
  plain:
    limits: { type: gcra, rate: 1/s, burst: 3 }
`
  const ask = { limiter: 'reports', key: 'tenant:9' }
  let service: TestService

  beforeEach(async () => {
    service = await serviceOn(CONFIG)
  })

  afterEach(async () => {
    await service.stop(0)
    expectNoFailure(service)
  })

  const remaining = async () => (await call(service.url, 'GET', '/v1/limiters/reports/keys/tenant:9')).body.parts.inflight.remaining

  test('a place is taken by a decision, and free when its permit is released, once', async () => {
    const first = await post(service, '/v1/decide', ask)
    const second = await post(service, '/v1/decide', ask)
    expect([first.allowed, second.allowed, first.leaseMs]).toEqual([true, true, 30_000])
    expect(second.token).toBeGreaterThan(first.token)
    const refused = await post(service, '/v1/decide', ask)
    expect(refused).toMatchObject({ allowed: false, policy: 'inflight' })
    expect(refused.permit).toBeUndefined()
    expect(await inflightAt(service)).toBe(2)
    expect((await call(service.url, 'GET', '/metrics')).body).toContain('sluice_limit_now{limiter="reports",limit="inflight"} 2')
    const { permit } = first
    expect(await post(service, '/v1/release', { permit })).toEqual({ limiter: 'reports', released: true })
    expect(await post(service, '/v1/release', { permit })).toEqual({ limiter: 'reports', released: false })
    expect([await remaining(), await inflightAt(service)]).toEqual([1, 1])
    const { limiters } = (await call(service.url, 'GET', '/v1/limiters')).body
    expect(limiters.map(({ inflight }: { inflight: number | null }) => inflight)).toEqual([1, 0, null])
  })

  test('the service does not renew for its callers: the place of one that died is free after its lease', async () => {
    const { permit } = await post(service, '/v1/decide', ask)
    const kept = await post(service, '/v1/decide', ask)
    service.clock.advanceMs(20_000)
    expect(await post(service, '/v1/renew', { permit: kept.permit })).toEqual({ limiter: 'reports', renewed: true, leaseMs: 30_000 })
    service.clock.advanceMs(9_999)
    expect(await remaining()).toBe(0)
    service.clock.advanceMs(1)
    expect([await remaining(), await inflightAt(service)]).toEqual([1, 1])
    expect(await post(service, '/v1/renew', { permit })).toEqual({ limiter: 'reports', renewed: false, leaseMs: 0 })
    expect(await post(service, '/v1/release', { permit })).toMatchObject({ released: false })
    service.clock.advanceMs(20_000)
    expect([await remaining(), await inflightAt(service)]).toEqual([2, 0])
  })

  test('a waiter gets a released permit, and one whose lease is over', async () => {
    const [first] = [await post(service, '/v1/decide', ask), await post(service, '/v1/decide', ask)]
    const waits = [post(service, '/v1/acquire', { ...ask, timeoutMs: 60_000 }), post(service, '/v1/acquire', { ...ask, timeoutMs: 60_000 })]
    await until(() => service.limiters.get('reports')?.waiting === 2)
    await post(service, '/v1/release', { permit: first.permit })
    const served = await waits[0]
    expect(served).toMatchObject({ allowed: true, leaseMs: 30_000, waitedMs: 0 })
    service.clock.advanceMs(30_000)
    expect(await waits[1]).toMatchObject({ allowed: true, waitedMs: 30_000 })
    // The one that was served first was not renewed either.
    expect(await post(service, '/v1/release', { permit: served.permit })).toMatchObject({ released: false })
  })

  test('a permit carries its plan, its cost and each of several keys', async () => {
    const pro = { ...ask, plan: 'pro', cost: { rate: 1, inflight: 3 }, key: { rate: 'u'.repeat(500), inflight: 'ü'.repeat(300) } }
    const { permit, leaseMs } = await post(service, '/v1/decide', pro)
    expect([leaseMs, (await post(service, '/v1/decide', pro)).allowed]).toEqual([60_000, false])
    expect(await post(service, '/v1/renew', { permit })).toMatchObject({ leaseMs: 60_000 })
    expect(await post(service, '/v1/release', { permit })).toMatchObject({ released: true })
    expect((await post(service, '/v1/decide', pro)).allowed).toBe(true)
  })

  test('nothing is held by a question, by a cost of nothing, and by one that passes in shadow', async () => {
    const peeked = await post(service, '/v1/decide', { ...ask, verb: 'peek' })
    const nothing = await post(service, '/v1/decide', { ...ask, cost: 0 })
    const shadow = { limiter: 'quiet', key: 'u1' }
    const [held, passed] = [await post(service, '/v1/decide', shadow), await post(service, '/v1/acquire', shadow)]
    expect([peeked, nothing, held, passed].map(({ permit }) => typeof permit)).toEqual(['undefined', 'undefined', 'string', 'undefined'])
    expect(await remaining()).toBe(2)
  })

  test('a reload keeps what is held, under other numbers', async () => {
    const { permit } = await post(service, '/v1/decide', ask)
    service.limiters.use(readConfig(CONFIG.replace('max: 2', 'max: 5').replace('quiet:', 'still:'), 'test.yaml'))
    expect(await remaining()).toBe(4)
    expect(await post(service, '/v1/release', { permit })).toMatchObject({ released: true })
    expect(await remaining()).toBe(5)
  })

  const forged = (json: unknown) => Buffer.from(JSON.stringify(json)).toString('base64url')
  test.each([
    [undefined, 400, 'PERMIT', 'permit undefined must be the permit of a decision'],
    ['not one', 400, 'PERMIT', 'permit "not one" must be the permit of a decision'],
    [forged({}), 400, 'PERMIT', 'must be the permit of a decision'],
    [forged(['reports', null, []]), 400, 'PERMIT', 'must be the permit of a decision'],
    [forged(['reports', null, [['inflight', 'k', -1, 5, 0]]]), 400, 'PERMIT', 'must be the permit of a decision'],
    [forged(['reports', null, [['inflight', '', 1, 5, 0]]]), 400, 'KEY', 'key'],
    [forged(['reports', null, [['inflight', 'k', 1e12, 5, 0]]]), 400, 'COST', 'cost'],
    [forged(['reports', null, [['rate', 'k', 1, 5, 0]]]), 400, 'CONFIG', `limiter 'reports' has no limit "rate" that is held`],
    [forged(['plain', null, [['default', 'k', 1, 5, 0]]]), 400, 'CONFIG', `limiter 'plain' has no limit "default" that is held`],
    [forged(['reports', null, Array(3).fill(['inflight', 'k', 1, 5, 0])]), 400, 'CONFIG', 'lends no permit of 3 limits: it has 2'],
    [forged(['none', null, [['inflight', 'k', 1, 5, 0]]]), 404, 'LIMITER', 'there is no limiter "none"'],
    [
      forged(['reports', null, [['constructor', 'k', 1, 5, 0]]]),
      400,
      'CONFIG',
      `limiter 'reports' has no limit "constructor" that is held`,
    ],
    [forged(['reports', null, [['__proto__', 'k', 1, 5, 0]]]), 400, 'CONFIG', `limiter 'reports' has no limit "__proto__" that is held`],
  ])('a permit that is none is refused before anything is touched: %j', async (permit, status, code, detail) => {
    for (const path of ['/v1/release', '/v1/renew']) {
      const reply = await call(service.url, 'POST', path, { permit })
      expect(reply).toMatchObject({ status, body: { code, detail: expect.stringContaining(detail) } })
    }
  })

  test('permits are not refunded and not charged', async () => {
    const refund = await call(service.url, 'POST', '/v1/decide', { limiter: 'quiet', key: 'u', verb: 'refund' })
    const charge = await call(service.url, 'POST', '/v1/charge', { limiter: 'quiet', key: 'u' })
    for (const { status, body } of [refund, charge]) {
      expect([status, body.detail]).toEqual([400, expect.stringContaining('held until they are released: see /v1/release')])
    }
  })
})

test.each(['local', 'allow'])('a permit granted while the store is down counts until its lease is over: %s', async (policy) => {
  const clock = fakeClock(1_000_000)
  const store = asyncStore({ shared: true, apply: () => Promise.reject(new Error('down')) })
  const config = `limiters: { held: { limits: { type: concurrency, max: 5, lease: 30s }, onStoreError: ${policy} } }`
  const service = await serviceOn(config, store, undefined, { clock })
  const taken = [
    await post(service, '/v1/decide', { limiter: 'held', key: 'k' }),
    await post(service, '/v1/decide', { limiter: 'held', key: 'l' }),
  ]
  expect(taken.map(({ degraded, permit }) => [degraded, typeof permit])).toEqual([true, true].map((degraded) => [degraded, 'string']))
  await post(service, '/v1/release', { permit: taken[0].permit })
  expect(await inflightAt(service)).toBe(1)
  // The holder of the other one has died.
  clock.advanceMs(30_000)
  expect(await inflightAt(service)).toBe(0)
  await service.stop(0)
})

describe('two copies on one Redis', () => {
  // The server is shared by all tests.
  const name = `held-${randomUUID()}`
  let opened: OpenedStore[]
  let copies: [TestService, TestService]

  beforeEach(async () => {
    const config = `limiters:\n  ${name}: { limits: { type: concurrency, max: 2, lease: 60s } }\n`
    opened = await Promise.all([0, 1].map(() => openStore(`redis://127.0.0.1:${inject('redisPort')}`, () => undefined)))
    copies = (await Promise.all(opened.map(({ store }) => serviceOn(config, store)))) as [TestService, TestService]
  })

  afterEach(async () => {
    for (const copy of copies) {
      await copy.stop(0)
      expectNoFailure(copy)
    }
    for (const { close } of opened) close()
  })

  test('a permit is renewed and released at the copy that did not lend it', async () => {
    const [one, other] = copies
    const ask = { limiter: name, key: 'k' }
    const [first, second] = [await post(one, '/v1/decide', ask), await post(other, '/v1/decide', ask)]
    expect([first.allowed, second.allowed, second.token > first.token]).toEqual([true, true, true])
    expect((await post(one, '/v1/decide', ask)).allowed).toBe(false)
    expect(await post(other, '/v1/renew', { permit: first.permit })).toEqual({ limiter: name, renewed: true, leaseMs: 60_000 })
    // A caller waits at each; each release happens at the other copy than the take.
    const waits = [post(one, '/v1/acquire', ask), post(other, '/v1/acquire', ask)]
    await until(() => copies.every(({ limiters }) => limiters.get(name)?.waiting === 1))
    expect(await post(other, '/v1/release', { permit: first.permit })).toMatchObject({ released: true })
    expect(await post(one, '/v1/release', { permit: second.permit })).toMatchObject({ released: true })
    const served = await Promise.all(waits)
    expect(served.map(({ allowed }) => allowed)).toEqual([true, true])
    expect((await post(one, '/v1/decide', { ...ask, verb: 'peek' })).remaining).toBe(0)
    expect(await post(one, '/v1/renew', { permit: first.permit })).toMatchObject({ renewed: false })
    for (const { permit } of served) expect(await post(one, '/v1/release', { permit })).toMatchObject({ released: true })
    expect((await post(other, '/v1/decide', { ...ask, verb: 'peek' })).remaining).toBe(2)
  })

  /**
   * Callers that take at one copy, and release at another, as a balancer has it: never more than
   * two hold at once.
   */
  test('many callers through both copies never hold more than the limit', async () => {
    let holding = 0
    let most = 0
    const caller = async (k: number) => {
      const { permit } = await post(copies[k % 2] as TestService, '/v1/acquire', { limiter: name, key: 'many' })
      holding += 1
      most = Math.max(most, holding)
      // The first one keeps its place until another holds the second.
      await until(() => most >= 2)
      holding -= 1
      expect(await post(copies[(k + 1) % 2] as TestService, '/v1/release', { permit })).toMatchObject({ released: true })
    }
    await Promise.all(Array.from({ length: 20 }, (_, k) => caller(k)))
    expect(most).toBe(2)
  })
})

test('a copy that is killed leaves what it has lent: another one renews and releases it', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-held-'))
  const file = join(folder, 'sluice.yaml')
  const limiter = `killed-${randomUUID()}`
  writeFileSync(file, `limiters: { ${limiter}: { limits: { type: concurrency, max: 1, lease: 60s } } }\n`)
  const copy = () => startedProcess(file, '--redis', `redis://127.0.0.1:${inject('redisPort')}`)
  const [one, other] = await Promise.all([copy(), copy()])
  try {
    const sent = async ({ url }: { url: string }, path: string, body: object) => (await call(url, 'POST', path, body)).body
    const ask = { limiter, key: 'k' }
    const { permit } = await sent(one, '/v1/decide', ask)
    one.process.kill('SIGKILL')
    await one.ended
    expect((await sent(other, '/v1/decide', ask)).allowed).toBe(false)
    expect(await sent(other, '/v1/renew', { permit })).toEqual({ limiter, renewed: true, leaseMs: 60_000 })
    expect(await sent(other, '/v1/release', { permit })).toEqual({ limiter, released: true })
    expect((await sent(other, '/v1/decide', ask)).allowed).toBe(true)
  } finally {
    one.process.kill('SIGKILL')
    other.process.kill('SIGKILL')
    rmSync(folder, { recursive: true })
  }
})
