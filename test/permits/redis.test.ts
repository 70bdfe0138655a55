/**
 * Permits on a real Redis: leases by its clock, renewed, lost, sent again, adopted; and a line that
 * all processes stand in.
 */
import { once as onceEvent } from 'node:events'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { concurrency, createLimiter, gcra } from '../../src/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { inspectKey } from '../../src/stores/redis/inspect.ts'
import { countingSender } from '../support/counted-commands.ts'
import { type FaultProxy, startProxy } from '../support/fault-proxy.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'

/** Of those that run out in a test. */
const SHORT_MS = 600
/**
 * Of those that are renewed for longer than they last, after each third: a machine that stands
 * still for two seconds is not in the way.
 */
const RENEWED_MS = 4_000
/** Of those that nobody waits for. */
const LONG_MS = 30_000
/** A busy machine is not an outage. */
const PATIENT = { storeTimeoutMs: Number.POSITIVE_INFINITY }
const places = (max: number, leaseMs: number = LONG_MS) => concurrency({ max, lease: `${leaseMs}ms` })

let server: RedisServer
let client: TestRedis
let other: TestRedis
let names = 0

beforeAll(async () => {
  server = await startServer()
  client = await connectRedis(server.port)
  other = await connectRedis(server.port)
})

afterAll(async () => {
  client.close()
  other.close()
  await server.kill()
})

/** Limiters of one name on connections of their own: to Redis they are two processes. */
function two(max: number, lease?: number) {
  const name = `limiter-${names++}`
  return [client, other].map((each) => createLimiter(places(max, lease), { name, store: redisStore(each), ...PATIENT })) as [
    ReturnType<typeof one>,
    ReturnType<typeof one>,
  ]
}

function one() {
  return createLimiter(places(1), { name: `limiter-${names++}`, store: redisStore(client), ...PATIENT })
}

async function serverMs(): Promise<number> {
  const [seconds, micros] = (await client.send(['TIME'])) as [string, string]
  return Number(seconds) * 1000 + Number(micros) / 1000
}

/** By the server's clock. */
async function passed(fromMs: number, ms: number): Promise<void> {
  await until(async () => (await serverMs()) > fromMs + ms)
}

describe('leases', () => {
  test('are required: nobody would free the place of a process that died', () => {
    const store = redisStore(client)
    const make = () => createLimiter(concurrency({ max: 1 }), { name: 'endless', store })
    expect(make).toThrow(expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining("limit 'default' needs a lease") }))
    const limiter = createLimiter(places(1), { name: 'endless', store })
    expect(() => limiter.update(concurrency({ max: 1 }) as never)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
    limiter.close()
  })

  test('are shared by all, and a release is seen by all', async () => {
    const [ours, theirs] = two(2)
    const [a, b] = [await ours.consume('key'), await theirs.consume('key')]
    expect(await ours.consume('key')).toMatchObject({ allowed: false, outcome: 'limited' })
    expect(b.token).toBeGreaterThan(a.token)
    await Promise.all([a.release(), a.release()])
    const c = await theirs.consume('key')
    expect(c.allowed).toBe(true)
    expect(c.token).toBeGreaterThan(b.token)
    await Promise.all([b.release(), c.release()])
    expect((await ours.peek('key')).remaining).toBe(2)
    // Denials are not kept: a release may come at any moment.
    expect((await ours.consume('key')).allowed).toBe(true)
  })

  test('with a rate are one decision', async () => {
    const limits = { rate: gcra({ rate: '1/h', burst: 2 }), inflight: places(1) }
    const limiter = createLimiter(limits, { name: `limiter-${names++}`, store: redisStore(client), ...PATIENT })
    const first = await limiter.consume('key')
    expect(await limiter.consume('key')).toMatchObject({ allowed: false, policy: 'inflight', parts: { rate: { remaining: 1 } } })
    await first.release()
    const second = await limiter.consume('key')
    await second.release()
    expect(await limiter.consume('key')).toMatchObject({ allowed: false, policy: 'rate', parts: { inflight: { remaining: 1 } } })
  })

  test('are renewed while they are held, many of a key at once', async () => {
    const [ours, theirs] = two(50, RENEWED_MS)
    const held = await Promise.all(Array.from({ length: 50 }, () => ours.consume('key')))
    await passed(await serverMs(), 1.5 * RENEWED_MS)
    expect(held.every((permit) => permit.held)).toBe(true)
    expect((await theirs.consume('key')).allowed).toBe(false)
    await Promise.all(held.map((permit) => permit.release()))
    expect((await theirs.peek('key')).remaining).toBe(50)
  })

  test('of a process that died are free when they have run out, by the clock of the server', async () => {
    const victim = await connectRedis(server.port)
    const name = `limiter-${names++}`
    const dying = createLimiter(places(1, SHORT_MS), { name, store: redisStore(victim), ...PATIENT })
    const heir = createLimiter(places(1), { name, store: redisStore(client), ...PATIENT })
    const { token } = await dying.consume('key')
    victim.close()
    const permit = await heir.acquire('key')
    expect(permit.token).toBeGreaterThanOrEqual(token + SHORT_MS * 1000)
    await permit.release()
  })

  test('that cannot be renewed are lost: the holder is told, and its late release takes nothing from the next', async () => {
    const cut = await connectRedis(server.port)
    const name = `limiter-${names++}`
    // Cut off, it is told so at once: no time is needed for that.
    const holder = createLimiter(places(1, SHORT_MS), { name, store: redisStore(cut), ...PATIENT })
    const heir = createLimiter(places(1), { name, store: redisStore(client), ...PATIENT })
    const permit = await holder.consume('key')
    const { signal } = permit
    cut.close()
    await onceEvent(signal as EventTarget & typeof signal, 'abort')
    expect(signal.reason).toMatchObject({ code: 'LOST' })
    expect(permit.held).toBe(false)
    expect(holder.inflight()).toBe(0)
    const next = await heir.acquire('key')
    await permit.release()
    expect((await heir.consume('key')).allowed).toBe(false)
    await next.release()
  })

  test('that the server has lost are counted again by their renewals; until then one more max may run', async () => {
    const [ours, theirs] = two(3, RENEWED_MS)
    const held = [await ours.consume('key', 2), await ours.consume('key')]
    // On one connection, without a turn in between: no renewal comes before the newcomers.
    const [, ...newcomers] = await Promise.all([other.send(['FLUSHALL']), theirs.consume('key', 3), theirs.consume('key')])
    expect(newcomers.map(({ allowed }) => allowed)).toEqual([true, false])
    const key = `sluice:${ours.name}:{key}`
    const tokens = async () => Object.keys((await inspectKey(client, key))[0]?.state ?? {})
    const known = held.map(({ token }) => `${token}`)
    await until(async () => known.every(Boolean) && (await tokens()).filter((name) => known.includes(name)).length === 2)
    await newcomers[0]?.release()
    expect((await theirs.consume('key')).allowed).toBe(false)
    expect(held.every((permit) => permit.held)).toBe(true)
    for (const permit of held) await permit.release()
    expect((await theirs.consume('key', 3)).allowed).toBe(true)
  })

  test.each([1, 5])('leave no key when the last of %i is released, and tokens increase all the same', async (count) => {
    const [ours] = two(5, 30_000)
    const name = `sluice:${ours.name}:{key}`
    const first = await Promise.all(Array.from({ length: count }, () => ours.consume('key')))
    expect(await client.send(['EXISTS', name])).toBe(1)
    for (const permit of first) await permit.release()
    expect(await client.send(['EXISTS', name])).toBe(0)
    const next = await ours.consume('key')
    expect(next.token).toBeGreaterThan(Math.max(...first.map(({ token }) => token)))
    await next.release()
    for (let k = 0; k < 50; k++) {
      const permits = await Promise.all(Array.from({ length: 20 }, (_, key) => ours.consume(`key ${key}`)))
      await Promise.all(permits.map((permit) => permit.release()))
    }
  })

  test('are released by as many commands among 900 as among 60, but for the search by halves', async () => {
    const sender = countingSender(client)
    const seen: Record<string, number>[] = []
    for (const count of [60, 900]) {
      // A lease of a day: none is renewed in between, which makes some of them the last to run out.
      const limiter = createLimiter(places(1_000, 86_400_000), { name: `limiter-${names++}`, store: redisStore(sender), ...PATIENT })
      const held = await Promise.all(Array.from({ length: count }, () => limiter.consume('key')))
      await held[count / 3]?.release()
      seen.push({ ...sender.counts })
      await limiter.reset('key')
    }
    const [{ getrange: few = 0, ...others }, { getrange: many = 0, ...same }] = seen as [Record<string, number>, Record<string, number>]
    expect(same).toEqual(others)
    expect(many - few).toBeLessThanOrEqual(4)
  })

  test('of 1,000 calls fill a key, however many permits there are', async () => {
    const [ours] = two(100_000, 30_000)
    const held = await Promise.all(Array.from({ length: 1_000 }, () => ours.consume('key', 2)))
    expect(held.every(({ allowed }) => allowed)).toBe(true)
    const refused = await ours.consume('key')
    expect(refused).toMatchObject({ outcome: 'limited', remaining: 98_000 })
    expect(refused.retryAfterMs).toBeGreaterThan(0)
    await held[500]?.release()
    expect((await ours.consume('key', 5)).allowed).toBe(true)
    await ours.reset('key')
    await Promise.all(held.map((permit) => permit.release()))
  })
})

describe('through a network that fails', () => {
  let proxy: FaultProxy

  beforeAll(async () => {
    proxy = await startProxy(server.port)
  })

  afterAll(() => proxy.close())

  test('a release is sent again until Redis has heard of it', async () => {
    const shaky = createClient({ socket: { host: '127.0.0.1', port: proxy.port, reconnectStrategy: 10 }, disableOfflineQueue: true })
    shaky.on('error', () => undefined)
    await shaky.connect()
    const name = `limiter-${names++}`
    const lease = 20_000
    const holder = createLimiter(places(1, lease), { name, store: redisStore(shaky), ...PATIENT })
    const heir = createLimiter(places(1, lease), { name, store: redisStore(client), ...PATIENT })
    const permit = await holder.consume('key')
    proxy.refuse()
    await permit.release()
    expect((await heir.consume('key')).allowed).toBe(false)
    proxy.heal()
    const next = await heir.acquire('key')
    expect(next.token).toBeLessThan(permit.token + lease * 1000)
    await next.release()
    shaky.destroy()
  })
})

describe('waiters', () => {
  test('stands in line in the order that Redis saw, and no newcomer overtakes', async () => {
    const [ours, theirs] = two(1, 30_000)
    const held = await ours.consume('key')
    const order: string[] = []
    const waiting = async (limiter: typeof ours, name: string) => {
      const permit = await limiter.acquire('key')
      order.push(name)
      // A newcomer of either process is refused, also while the place is free for a moment.
      const newcomers = [permit.release(), ours.consume('key'), theirs.consume('key')] as const
      for (const { allowed } of (await Promise.all(newcomers)).slice(1) as { allowed: boolean }[]) {
        if (order.length < 3) expect(allowed).toBe(false)
      }
    }
    const inLine = async () =>
      Object.keys((await inspectKey(client, `sluice:${ours.name}:{key}`))[0]?.state ?? {}).filter((name) => name.endsWith('in line for'))
    const first = waiting(theirs, 'theirs')
    await until(async () => (await inLine()).length === 1)
    const second = waiting(ours, 'ours')
    await until(async () => (await inLine()).length === 2)
    const third = waiting(theirs, 'theirs again')
    await held.release()
    await Promise.all([first, second])
    await third
    expect(order).toEqual(['theirs', 'ours', 'theirs again'])
    expect(await inLine()).toEqual([])
  })

  test('of several callers of several processes is served long before a lease runs out', async () => {
    const lease = 30_000
    const connections = await Promise.all([1, 2, 3].map(() => connectRedis(server.port)))
    const name = `limiter-${names++}`
    const tokens: number[] = []
    const jobs = connections.flatMap((connection) => {
      const limiter = createLimiter(places(1, lease), { name, store: redisStore(connection), ...PATIENT })
      return Array.from({ length: 4 }, () => limiter.run('key', async ({ token }) => void tokens.push(token)))
    })
    await Promise.all(jobs)
    expect(tokens).toHaveLength(12)
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b))
    expect((tokens.at(-1) as number) - (tokens[0] as number)).toBeLessThan((lease * 1000) / 2)
    for (const connection of connections) connection.close()
  })

  test('and leaves gives up its place in line', async () => {
    const [ours, theirs] = two(1, 30_000)
    const held = await ours.consume('key')
    const controller = new AbortController()
    const leaving = theirs.acquire('key', { signal: controller.signal })
    const staying = ours.acquire('key')
    await until(
      async () =>
        Object.keys((await inspectKey(client, `sluice:${ours.name}:{key}`))[0]?.state ?? {}).filter((name) => name.endsWith('in line for'))
          .length === 2,
    )
    controller.abort()
    await expect(leaving).rejects.toBe(controller.signal.reason)
    await held.release()
    await (await staying).release()
    await until(async () => (await inspectKey(client, `sluice:${ours.name}:{key}`)).length === 0)
  })

  test('asks no more often than its process looks, however many wait', async () => {
    let scripts = 0
    const send = (args: readonly string[]) => {
      if (/^EVAL/.test(args[0] as string)) scripts++
      return client.send(args)
    }
    const limiter = createLimiter(places(1, 30_000), { name: `limiter-${names++}`, store: redisStore({ send }), ...PATIENT })
    const held = await limiter.consume('key')
    const startMs = await serverMs()
    const waits = Array.from({ length: 100 }, () => limiter.acquire('key'))
    await passed(startMs, 400)
    const tookMs = (await serverMs()) - startMs
    // Each asked once when it came; from then on the first asks every 25 ms.
    expect(scripts).toBeLessThanOrEqual(110 + tookMs / 25)
    await held.release()
    for (const wait of waits) await (await wait).release()
  })
})
