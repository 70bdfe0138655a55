/** Set-ups that look right and limit the wrong thing are explained, once each. */

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { byIp } from '../../src/http/by-ip.ts'
import { Gate } from '../../src/http/gate.ts'
import { createLimiter, gcra, memoryStore } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

/** Longer than a busy machine needs. */
const WAIT = { timeout: 30_000 }

const limit = gcra({ rate: '1/s', burst: 3 })
const http = { address: '203.0.113.9', header: (): string | undefined => undefined }
const noConnection = () => undefined

const throwing = (message: string) => () => {
  throw new Error(message)
}

/** Until promises that nobody waited for would have ended the process. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 5))

/** Its decisions are made, and cannot be settled. */
function limiterWhoseStoreFails(name: string) {
  const limiter = createLimiter(limit, { name, clock: fakeClock() })
  return Object.assign(Object.create(limiter), {
    name,
    scope: () => limiter.scope(),
    consume: (key: string) => ({ ...limiter.consume(key), settle: () => Promise.reject(new Error('the store is down')) }),
  })
}

function leave(options: object): void {
  const entry = new Gate(options, noConnection).enter(undefined, http, undefined)
  ;(entry as { leave(outcome: object): void }).leave({ status: 200, aborted: false })
}

describe('misconfiguration is explained once, under its code', () => {
  let warned: { code: string; message: string; detail?: string }[]
  let emitWarning: { mockRestore(): void }

  beforeEach(() => {
    warned = []
    emitWarning = vi.spyOn(process, 'emitWarning').mockImplementation(((message: string, options: { code: string }) => {
      warned.push({ message, ...options })
    }) as never)
  })
  afterEach(() => emitWarning.mockRestore())

  const codes = () => warned.map(({ code }) => code)
  const enter = (gate: Gate<undefined>, address: string | undefined, headers: Record<string, string> = {}) =>
    gate.enter(undefined, { address, header: (name) => headers[name] }, undefined)

  test('a proxy that nobody trusts', async () => {
    const gate = new Gate<undefined>({ limit }, noConnection)
    await Promise.resolve()
    enter(gate, '203.0.113.9', { 'x-forwarded-for': '198.51.100.1' })
    enter(gate, '10.0.0.1')
    expect(codes()).toEqual([])
    // Whichever of them a proxy sends.
    for (const name of ['x-real-ip', 'forwarded', 'x-forwarded-for']) enter(gate, '::ffff:10.0.0.1', { [name]: '198.51.100.1' })
    expect(codes()).toEqual(['SLUICE_BEHIND_PROXY'])
    expect(warned[0]?.message).toContain('byIp({ trustProxy: 1 })')
  })

  test.each([
    ['a proxy that writes only Forwarded', { trustProxy: 1 }, '10.0.0.1', { forwarded: 'for=203.0.113.9' }],
    ['a proxy that is in none of the networks', { trustProxy: ['192.168.0.0/16'] }, '10.0.0.1', { 'x-forwarded-for': '203.0.113.9' }],
    ['a proxy that writes another header', { header: 'x-real-ip', from: ['loopback'] }, '::1', { 'x-forwarded-for': '203.0.113.9' }],
    [
      'a header from a proxy that is in none of the networks',
      { header: 'fly-client-ip', from: ['loopback'] },
      '10.0.0.1',
      { 'fly-client-ip': '203.0.113.9' },
    ],
    ['a proxy that the framework does not trust', {}, '10.0.0.1', { 'x-forwarded-for': '203.0.113.9' }, '10.0.0.1'],
    ['a proxy that hides its clients', {}, '10.0.0.1', { 'x-forwarded-for': 'unknown' }, 'unknown'],
  ] as const)(
    '%s, so that all share its address',
    async (_name, options, address, headers: Record<string, string>, clientAddress?: string) => {
      vi.resetModules()
      const fresh = await import('../../src/http/by-ip.ts')
      const keyOf = fresh.byIp(options)
      const key = (from: object) => keyOf(undefined, { address, clientAddress, header: () => undefined, ...from })
      // Checks of health carry none of them, and no proxy in front is to be seen.
      expect([key({}), codes()]).toEqual([`ip:${address === '::1' ? '::/56' : address}`, []])
      key({ header: (name: string) => headers[name] })
      expect(codes()).toEqual(['SLUICE_BEHIND_PROXY'])
    },
  )

  test('not a client nearby that a trusted proxy told of', async () => {
    vi.resetModules()
    const fresh = await import('../../src/http/by-ip.ts')
    const http = (more: object) => ({ address: '10.0.0.1', header: () => '10.0.0.9', ...more })
    expect(fresh.byIp()(undefined, http({ clientAddress: '10.0.0.9' }))).toBe('ip:10.0.0.9')
    for (const options of [{ trustProxy: 1 }, { header: 'x-real-ip', from: ['private'] }]) {
      expect(fresh.byIp(options)(undefined, http({}))).toBe('ip:10.0.0.9')
    }
    expect(codes()).toEqual([])
  })

  test('an onLimited that fails, which changes no answer', async () => {
    const failures = [() => Promise.reject(new Error('no log')), () => Promise.reject(), throwing('no log')]
    for (const onLimited of failures) {
      const gate = new Gate<undefined>({ limiter: createLimiter(limit, { clock: fakeClock() }), cost: 4, onLimited }, noConnection)
      expect(enter(gate, '203.0.113.9')).toMatchObject({ refusal: { status: 429 } })
    }
    await settled()
    expect(warned).toMatchObject([{ code: 'SLUICE_ON_LIMITED_FAILED', detail: 'Error: no log' }])
  })

  test('a shadow that fails, which refuses nobody', async () => {
    const limiter = createLimiter(limit, { clock: fakeClock() })
    const store = asyncStore({ shared: true, apply: () => Promise.reject(new Error('the store is down')) })
    const failures = [
      { limiter, key: throwing('no key') },
      { limiter, key: () => Promise.reject(new Error('no key')) },
      { limiter, key: () => Promise.reject(new Error('no key')), cost: throwing('no cost') },
      { limiter, plan: () => 'gold' },
      { limiter, skip: throwing('no skip') },
      { limiter: createLimiter(limit, { name: 'down', store, onStoreError: 'throw' }) },
    ]
    for (const options of failures) {
      const gate = new Gate<undefined>({ ...options, shadow: true }, noConnection)
      expect(await enter(gate, '203.0.113.9')).toMatchObject({ refusal: undefined, gone: false, headers: [] })
    }
    await settled()
    expect(codes()).toEqual(['SLUICE_SHADOW_FAILED'])
  })

  test('every proxy trusted', () => {
    byIp({ trustProxy: ['10.0.0.0/8'] })
    expect(codes()).toEqual([])
    byIp({ trustProxy: ['::/0'] })
    byIp({ trustProxy: ['0.0.0.0/0'] })
    expect(codes()).toEqual(['SLUICE_TRUSTS_EVERYONE'])
    byIp({ header: 'cf-connecting-ip', from: ['0.0.0.0/0'] })
    expect(warned[1]?.message).toContain('(from)')
  })

  test('no address', async () => {
    const gate = new Gate<undefined>({ limit }, noConnection)
    await Promise.resolve()
    for (let k = 0; k < 2; k++) enter(gate, undefined)
    expect(codes()).toEqual(['SLUICE_NO_ADDRESS'])
  })

  test('a middleware made for each request, not one made for all', async () => {
    const gate = new Gate<undefined>({ limit }, noConnection)
    await Promise.resolve()
    for (let k = 0; k < 10; k++) enter(gate, '203.0.113.9')
    expect(codes()).toEqual([])
    for (let k = 0; k < 10; k++) enter(new Gate<undefined>({ limit }, noConnection), '203.0.113.9')
    expect(codes()).toEqual(['SLUICE_LIMITER_PER_REQUEST'])
  })

  test('two limiters with one name and other numbers on one store, not one limiter in two places', () => {
    const store = memoryStore()
    const api = createLimiter(limit, { name: 'api', store })
    new Gate({ limiter: api }, noConnection)
    new Gate({ limiter: api }, noConnection)
    new Gate({ limit }, noConnection)
    new Gate({ limit }, noConnection)
    new Gate({ limit: gcra({ rate: '2/s', burst: 3 }), limiterOptions: { name: 'api', store: memoryStore() } }, noConnection)
    expect(codes()).toEqual([])
    new Gate({ limit: gcra({ rate: '2/s', burst: 3 }), limiterOptions: { name: 'api', store } }, noConnection)
    expect(codes()).toEqual(['SLUICE_SAME_NAME'])
    expect(warned[0]?.message).toContain('(api)')
    expect(api.name).toBe('api')
  })

  test('a refund that fails', async () => {
    leave({ limiter: limiterWhoseStoreFails('refunds'), refundWhen: () => true })
    await vi.waitFor(() => expect(codes()).toEqual(['SLUICE_REFUND_FAILED']), WAIT)
    expect(warned[0]?.detail).toContain('the store is down')
  })

  test('the cost of a request cannot be charged', async () => {
    leave({ limiter: limiterWhoseStoreFails('settles'), settle: () => 0 })
    await vi.waitFor(() => expect(codes()).toEqual(['SLUICE_SETTLE_FAILED']), WAIT)
    expect(warned[0]?.detail).toContain('the store is down')
  })
})
