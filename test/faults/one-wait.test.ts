/**
 * A server that stands still costs one wait, whatever the number of limiters on the store: one call
 * waits for it, and all others are answered at once, by the policy of their limiter.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, type FailurePolicy, gcra, type Limit, type Limiter } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { type FaultProxy, isScript, startProxy } from '../support/fault-proxy.ts'
import { clientCases } from '../support/redis-clients.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { settling, unhandled } from './watch.ts'

const POLICIES: readonly FailurePolicy[] = ['deny', 'allow', 'local', 'throw']
const LIMITERS = 40

let server: RedisServer
let proxy: FaultProxy
beforeAll(async () => {
  server = await startServer()
  proxy = await startProxy(server.port)
})
afterAll(async () => {
  await proxy.close()
  await server.kill()
})

const closers: (() => unknown)[] = []
afterEach(async () => {
  server.signal('SIGCONT')
  for (const close of closers.splice(0).reverse()) await close()
})

type RemoteLimiter = Limiter<Limit, AsyncStore>

const clients = clientCases.filter(({ topology }) => topology === 'single')

describe.each(clients)('$name', ({ open }) => {
  const opened = async () => {
    const { client, close } = await open([{ ...server, port: proxy.port }])
    closers.push(close)
    const store = redisStore(client)
    const events = new Map<string, string[]>()
    const make = (name: string, onStoreError: FailurePolicy, storeTimeoutMs = 1_000): RemoteLimiter => {
      const limiter: RemoteLimiter = createLimiter(gcra({ rate: '1/h', burst: 100 }), {
        name,
        store,
        onStoreError,
        storeTimeoutMs,
        onHealth: ({ limiter, state }) => events.get(limiter)?.push(state),
      })
      events.set(name, [])
      closers.push(() => limiter.close())
      return limiter
    }
    return { make, events }
  }

  /** What a caller is told: the code of an error, or who decided, and how. */
  const toldBy = (limiter: RemoteLimiter) =>
    settling(limiter.consume('user:42')).then(
      ({ allowed, degraded }) => `${degraded ? 'policy' : 'Redis'}: ${allowed}`,
      ({ code }) => code,
    )

  test(`${LIMITERS} limiters on a server that stands still send one call, and all are back with one probe`, async () => {
    const { make, events } = await opened()
    const run = randomUUID()
    const limiters = Array.from({ length: LIMITERS }, (_, k) => make(`${k}-${run}`, POLICIES[k % 4] as FailurePolicy))
    const [first, ...others] = limiters as [RemoteLimiter, ...RemoteLimiter[]]
    for (const limiter of limiters) expect(await toldBy(limiter)).toBe('Redis: true')
    let scripts = 0
    proxy.strike((command) => {
      scripts += isScript(command) ? 1 : 0
      return undefined
    })
    server.signal('SIGSTOP')
    expect(await toldBy(first)).toBe('policy: false')
    const answers = ['policy: false', 'policy: true', 'policy: true', 'STORE']
    for (const [k, limiter] of others.entries()) expect(await toldBy(limiter)).toBe(answers[(k + 1) % 4])
    const late = make(`late-${run}`, 'deny')
    expect([late.health().state, await toldBy(late)]).toEqual(['down', 'policy: false'])
    server.signal('SIGCONT')
    const all = [...limiters, late]
    await until(async () => all.every((limiter) => limiter.health().state === 'up'))
    expect(scripts).toBe(1)
    for (const limiter of all) expect(await toldBy(limiter)).toBe('Redis: true')
    expect([...events.values()]).toEqual(all.map(() => ['down', 'up']))
    expect(unhandled()).toEqual([])
  })

  test('a limiter with less time than Redis takes keeps it from no other', async () => {
    const { make, events } = await opened()
    const [login, search] = [make(`login-${randomUUID()}`, 'deny'), make(`search-${randomUUID()}`, 'allow', 20)]
    expect(await toldBy(login)).toBe('Redis: true')
    closers.push(() => proxy.strike(() => undefined))
    proxy.strike(() => ({ delay: 'reply', ms: 60 }))
    await until(async () => (await toldBy(search)) === 'policy: true' && login.health().state === 'down')
    await until(async () => login.health().state === 'up')
    for (let k = 0; k < 20; k++) {
      expect([await toldBy(login), await toldBy(search)]).toEqual(['Redis: true', 'policy: true'])
    }
    expect(search.health().state).toBe('down')
    proxy.strike(() => undefined)
    await until(async () => search.health().state === 'up')
    expect(events.get(login.name)).toEqual(['down', 'up'])
  })

  test('what concerns one key of one limiter leaves the others alone', async () => {
    const { make, events } = await opened()
    const [one, other] = [make(`one-${randomUUID()}`, 'deny'), make(`other-${randomUUID()}`, 'deny')]
    expect([await toldBy(one), await toldBy(other)]).toEqual(['Redis: true', 'Redis: true'])
    const key = `sluice:${one.name}:{user:42}`
    for (const write of [
      ['SET', key, 'garbage'],
      ['LPUSH', key, 'another type'],
    ]) {
      await server.command('DEL', key)
      await server.command(...write)
      expect([await toldBy(one), await toldBy(other)]).toEqual(['policy: false', 'Redis: true'])
    }
    expect([...events.values()]).toEqual([[], []])
  })
})
