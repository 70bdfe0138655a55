/** The live stream over real sockets. Time is the test's. */

import { connect } from 'node:net'
import { credentials } from '@grpc/grpc-js'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { readConfig } from '../src/config/read.ts'
import { rateLimitService } from '../src/grpc/server.ts'
import { MAX_LISTENERS, MAX_MISSED, SURE_OF_PLACE_US } from '../src/live/hub.ts'
import { HALVED_EVERY_US } from '../src/live/top-refused.ts'
import { memoryStore, redisStore } from '../src/sluice.ts'
import { Tokens } from '../src/tokens.ts'
import { call, checked, expectAllSeen, expectHostGuarded, LIVE_PATHS } from './support/client.ts'
import { connected, shouldRateLimit } from './support/grpc.ts'
import { type LiveClient, type LiveEvent, watching } from './support/live-client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

const RULES = `
domains:
  edge:
    descriptors:
      - { key: ip, limit: { type: gcra, rate: 1/s, burst: 2 } }
      - { key: verb, value: write, descriptors: [{ key: path, limit: { type: gcra, rate: 1/s, burst: 2 } }] }
`

let service: TestService

beforeEach(async () => {
  service = await serviceOn(CONFIG + RULES)
})

afterEach(async () => {
  await service.stop(0)
  expectNoFailure(service)
})

const decide = (body: object) => call(service.url, 'POST', '/v1/decide', body)
const named = ({ limiters }: LiveEvent, name: string) => limiters.find((limiter) => limiter.name === name)
const ask = { limiter: 'api', key: 'u1' }

/** One second, and what is told then. */
async function second(client: LiveClient): Promise<LiveEvent> {
  const next = client.events.length
  service.clock.advanceMs(1000)
  return client.event(next)
}

describe('events', () => {
  test('come at once and every second, with what every limiter has done', async () => {
    await decide({ decisions: [...Array(5).fill(ask), { ...ask, cost: 4 }, { ...ask, verb: 'peek' }] })
    await decide({ decisions: Array(3).fill({ limiter: 'quiet', key: 'u1' }) })
    const client = await watching(service.url)
    checked('GET', '/v1/live', client.response.statusCode as number, new Headers(client.response.headers as Record<string, string>), '')
    const first = await client.event(0)
    expect(client.head).toBe('retry: 2000')
    expect(first).toMatchObject({ atMs: 1_000_000, startedAtMs: 1_000_000, topRefused: null })
    expect(first.limiters.map(({ name }) => name)).toEqual([
      'api',
      'two',
      'shaped',
      'quiet',
      'held',
      'edge: ip',
      'edge: verb = write, path',
    ])
    expect(named(first, 'api')).toEqual({
      name: 'api',
      rule: null,
      allowed: 3,
      denied: 3,
      shadowed: 0,
      errors: 0,
      waiting: 0,
      waits: { count: 0, sumMs: 0, maxMs: 0 },
      store: 'up',
      keys: 1,
    })
    expect(named(first, 'quiet')).toMatchObject({ allowed: 1, denied: 0, shadowed: 2 })
    await decide({ limiter: 'two', key: 'u1' })
    expect(named(await second(client), 'two')).toMatchObject({ allowed: 1, denied: 0 })
    expect(client.events[1]?.atMs).toBe(1_001_000)
    client.leave()
  })

  test('tell how many wait, and the longest wait since the event before', async () => {
    await decide({ ...ask, cost: 3 })
    const client = await watching(service.url)
    await client.event(0)
    const waits = [1, 2].map(() => call(service.url, 'POST', '/v1/acquire', ask))
    await until(() => service.limiters.get('api')?.waiting === 2)
    service.clock.advanceMs(2000)
    expect(named(await client.event(1), 'api')).toMatchObject({ waiting: 2, waits: { count: 0, maxMs: 0 } })
    await Promise.all(waits)
    service.clock.advanceMs(1000)
    expect(named(await client.event(3), 'api')).toMatchObject({ waiting: 0, waits: { count: 2, sumMs: 3000, maxMs: 2000 } })
    expect(named(await second(client), 'api')?.waits).toEqual({ count: 2, sumMs: 3000, maxMs: 0 })
    client.leave()
  })

  test('count what came over gRPC, by rules and by limits that callers bring along', async () => {
    const client = new (rateLimitService())(`127.0.0.1:${service.grpcPort}`, credentials.createInsecure())
    const asked = (descriptor: object) =>
      new Promise((resolve, reject) => {
        const request = { domain: 'edge', descriptors: [{ entries: [{ key: 'ip', value: '1.1.1.1' }], ...descriptor }] }
        client.ShouldRateLimit?.(request, (error: Error | null, answer: object) => (error ? reject(error) : resolve(answer)))
      })
    for (const descriptor of [{}, {}, {}, { limit: { requests_per_unit: 1, unit: 'HOUR' } }]) await asked(descriptor)
    const watcher = await watching(service.url)
    const { limiters } = await watcher.event(0)
    expect(limiters.filter(({ rule }) => rule !== null)).toMatchObject([
      { rule: 'edge: ip', allowed: 2, denied: 1 },
      { rule: 'edge: verb = write, path', allowed: 0, denied: 0 },
      { rule: 'edge: limits in requests', allowed: 1, denied: 0 },
    ])
    service.limiters.use(readConfig(CONFIG, 'test.yaml'))
    expect((await second(watcher)).limiters.map(({ name }) => name)).toEqual(['api', 'two', 'shaped', 'quiet', 'held'])
    client.close()
    watcher.leave()
  })

  test('go on through a new configuration: who stays keeps its counts, also if it was made anew', async () => {
    await decide({ decisions: [ask, { limiter: 'quiet', key: 'u1' }, { limiter: 'quiet', key: 'u1' }] })
    const client = await watching(service.url)
    await client.event(0)
    const text = `limiters:
  api: { maxQueue: 9, limits: { type: gcra, rate: 1/s, burst: 3 } }
  quiet: { limits: { type: fixedWindow, limit: 1, window: 1h } }
`
    service.limiters.use(readConfig(text, 'test.yaml'))
    await decide({ decisions: [ask, { limiter: 'quiet', key: 'u1' }] })
    expect((await second(client)).limiters).toMatchObject([
      { name: 'api', allowed: 2 },
      // What was let through in shadow stays that.
      { name: 'quiet', allowed: 1, denied: 1, shadowed: 1 },
    ])
    client.leave()
  })

  test('tell errors, and that the store is down; keys in Redis are not counted', async () => {
    // A port of our own that nobody listens on.
    const client = new Redis({ host: '127.0.0.1', port: 1, maxRetriesPerRequest: 0, retryStrategy: () => 1000 })
    client.on('error', () => undefined)
    const outage = await serviceOn(CONFIG, redisStore(client))
    await call(outage.url, 'POST', '/v1/decide', ask)
    const watcher = await watching(outage.url)
    expect(named(await watcher.event(0), 'api')).toMatchObject({ allowed: 0, denied: 0, errors: 1, store: 'down', keys: null })
    await outage.stop(0)
    client.disconnect()
  })
})

describe('listeners', () => {
  test('share one timer, which runs only while a client listens', async () => {
    expect(service.clock.timers).toBe(0)
    const clients = [await watching(service.url), await watching(service.url)]
    for (const client of clients) await client.event(0)
    expect({ timers: service.clock.timers, listeners: service.hub.listeners }).toEqual({ timers: 1, listeners: 2 })
    for (const client of clients) client.leave()
    await until(() => service.hub.listeners === 0)
    expect(service.clock.timers).toBe(0)
  })

  test('hear the same; who comes later is told at once what was told last', async () => {
    const early = await watching(service.url)
    await early.event(0)
    service.clock.advanceMs(500)
    const late = await watching(service.url)
    expect(await late.event(0)).toEqual(early.events[0])
    service.clock.advanceMs(500)
    expect(await late.event(1)).toEqual(await early.event(1))
    early.leave()
    late.leave()
  })

  test('are bounded', async () => {
    const clients = await Promise.all(Array.from({ length: MAX_LISTENERS }, () => watching(service.url)))
    expect(service.hub.listeners).toBe(MAX_LISTENERS)
    service.clock.advanceMs(SURE_OF_PLACE_US / 1000 - 1)
    const refused = await call(service.url, 'GET', '/v1/live')
    expect(refused).toMatchObject({ status: 503, body: { code: 'LISTENERS' } })
    expect(refused.headers.get('retry-after')).toBe('10')
    clients[0]?.leave()
    await until(() => service.hub.listeners < MAX_LISTENERS)
    const another = await watching(service.url)
    for (const client of [...clients, another]) client.leave()
  })

  test('make room for others after a while: the oldest of the address that has most', async () => {
    const first = await watching(service.url, '127.0.0.2')
    await first.event(0)
    const clients: LiveClient[] = []
    for (let k = 1; k < MAX_LISTENERS; k++) clients.push(await watching(service.url))
    service.clock.advanceMs(SURE_OF_PLACE_US / 1000)
    const another = await watching(service.url)
    expect(await clients[0]?.ended).toBe('end')
    expect(service.hub.listeners).toBe(MAX_LISTENERS)
    const told = first.events.length
    service.clock.advanceMs(1000)
    expect(await another.event(1)).toEqual(await first.event(told))
    for (const client of [first, ...clients, another]) client.leave()
  })

  test('that take nothing miss events and are cut off, and others hear all', async () => {
    const quick = await watching(service.url)
    await quick.event(0)
    const stuck = connect(service.httpPort, '127.0.0.1')
    stuck.on('error', () => undefined)
    stuck.write('GET /v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await until(() => service.hub.listeners === 2)
    // Nothing is read from it, so in the end the buffers between us are full.
    stuck.pause()
    let seconds = 0
    while (service.hub.listeners === 2) {
      await second(quick)
      seconds += 1
    }
    expect(service.hub.listeners).toBe(1)
    expect(seconds).toBeGreaterThan(MAX_MISSED)
    expect(quick.events).toHaveLength(seconds + 1)
    stuck.destroy()
    quick.leave()
  })

  test('are let go at once by a stop', async () => {
    const client = await watching(service.url)
    await client.event(0)
    const stopped = service.stop(0, 1_000)
    expect(await client.ended).toBe('end')
    expect(await call(service.url, 'GET', '/v1/live')).toMatchObject({ status: 503, body: { code: 'STOPPING' } })
    await stopped
  })

  test('do not hold a stop up, even if they take nothing', async () => {
    // Events of megabytes, of which the buffers between us hold few.
    const value = 'x'.repeat(500_000)
    const rules = Array.from({ length: 10 }, (_, k) => `{ key: k${k}, value: ${value}, limit: { type: gcra, rate: 1/s, burst: 2 } }`)
    const loud = await serviceOn(`domains: { edge: { descriptors: [${rules.join()}] } }`)
    const stuck = connect(loud.httpPort, '127.0.0.1')
    stuck.on('error', () => undefined)
    stuck.write('GET /v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n')
    await until(() => loud.hub.listeners === 1)
    stuck.pause()
    for (let k = 0; k < MAX_MISSED; k++) {
      loud.clock.advanceMs(1000)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(loud.hub.listeners).toBe(1)
    await loud.stop(0)
    expect(loud.hub.listeners).toBe(0)
    stuck.destroy()
  })

  test('that stand behind another request of their connection hold their place no longer than others who take nothing', async () => {
    await decide({ ...ask, cost: 3 })
    const socket = connect(service.httpPort, '127.0.0.1')
    const body = JSON.stringify(ask)
    const head = `host: localhost\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
    socket.write(`POST /v1/acquire HTTP/1.1\r\n${head}\r\n\r\n${body}GET /v1/live HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    await until(() => service.hub.listeners === 1)
    socket.destroy()
    await until(() => service.limiters.get('api')?.waiting === 0)
    for (let k = 0; k < 100 && service.hub.listeners > 0; k++) service.clock.advanceMs(1000)
    expect(service.hub.listeners).toBe(0)
  })

  test('a HEAD request opens no stream', async () => {
    const { status, headers } = await fetch(`${service.url}/v1/live`, { method: 'HEAD' })
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 200, type: 'text/event-stream' })
    expect(service.hub.listeners).toBe(0)
  })
})

describe('the keys that are refused most', () => {
  let counting: TestService

  beforeEach(async () => {
    counting = await serviceOn(CONFIG + RULES, undefined, undefined, { topRefused: 3 })
  })

  afterEach(async () => {
    await counting.stop(0)
    expectNoFailure(counting)
  })

  /** What is told of the keys after these decisions. */
  async function told(decisions: object[]): Promise<LiveEvent['topRefused']> {
    await call(counting.url, 'POST', '/v1/decide', { decisions })
    const client = await watching(counting.url)
    const { topRefused } = await client.event(0)
    client.leave()
    await until(() => counting.hub.listeners === 0)
    return topRefused
  }

  const refusals = (key: unknown, times: number, limiter = 'api') => Array(times).fill({ limiter, key, cost: 1_000 })

  test('are told in order, as many as was asked for', async () => {
    const decisions = [...refusals('a', 2), ...refusals('b', 5), ...refusals('c', 3), ...refusals('d', 4)]
    expect(await told([...decisions, { limiter: 'api', key: 'allowed' }, { limiter: 'api', key: 'e', verb: 'peek', cost: 9 }])).toEqual([
      { limiter: 'api', key: 'b', count: 5, atMost: false },
      { limiter: 'api', key: 'd', count: 4, atMost: false },
      { limiter: 'api', key: 'c', count: 3, atMost: false },
    ])
  })

  test('are those of the limit that refused, and nobody is refused in shadow', async () => {
    const key = { requests: 'user', tokens: 'team' }
    const decisions = [{ limiter: 'two', key, cost: { requests: 1, tokens: 101 } }, ...refusals('u1', 3, 'quiet')]
    expect(await told(decisions)).toEqual([{ limiter: 'two', key: 'team', count: 1, atMost: false }])
  })

  test('of rules are shown as people write them', async () => {
    const client = connected(counting)
    const entries = [
      { key: 'verb', value: 'write' },
      { key: 'path', value: '/a' },
    ]
    await shouldRateLimit(client, { domain: 'edge', descriptors: [{ entries }], hits_addend: 1_000 })
    client.close()
    expect(await told([ask])).toEqual([{ limiter: 'edge: verb = write, path', key: 'verb = write, path = /a', count: 1, atMost: false }])
  })

  test('have waited in vain too', async () => {
    await call(counting.url, 'POST', '/v1/acquire', { ...ask, cost: 4 })
    expect(await told([ask])).toEqual([{ limiter: 'api', key: 'u1', count: 1, atMost: false }])
  })

  test('are cut where they are long', async () => {
    expect((await told(refusals('x'.repeat(1024), 1)))?.[0]?.key).toBe(`${'x'.repeat(100)}…`)
  })

  test('are forgotten as time passes, and with their limiter', async () => {
    await told([...refusals('a', 5), ...refusals('b', 1)])
    counting.clock.advanceMs(HALVED_EVERY_US / 1000)
    expect(await told([ask])).toEqual([{ limiter: 'api', key: 'a', count: 2, atMost: false }])
    counting.limiters.use(readConfig('limiters: { new: { limits: { type: slidingLog, limit: 1, window: 1s } } }', 'test.yaml'))
    expect(await told([{ limiter: 'new', key: 'x' }])).toEqual([])
  })
})

test('hours of it grow nothing', async () => {
  const store = memoryStore({ maxKeys: 100 })
  const long = await serviceOn(CONFIG, store, undefined, { clock: service.clock, topRefused: 10 })
  const client = await watching(long.url)
  await client.event(0)
  const size = (event: LiveEvent | undefined) => JSON.stringify(event).length
  for (let hour = 0; hour < 6; hour++) {
    for (let k = 0; k < 3600; k++) {
      for (let n = 0; n < 3; n++) await long.limiters.get('api')?.decide({ ...QUESTION, key: `key-${hour}-${k}-${n}` })
      const next = client.events.length
      service.clock.advanceMs(1000)
      await client.event(next)
    }
    expect({ timers: service.clock.timers, listeners: long.hub.listeners }).toEqual({ timers: 1, listeners: 1 })
  }
  expect(client.events).toHaveLength(6 * 3600 + 1)
  expect(named(client.events.at(-1) as LiveEvent, 'api')).toMatchObject({ denied: 6 * 3600 * 3 })
  // A few digits more, and no key that is not among the ten.
  expect(size(client.events.at(-1))).toBeLessThan(size(client.events[100]) + 100)
  client.leave()
  await long.stop(0)
  expectNoFailure(long)
})

const QUESTION = { verb: 'consume', cost: 1_000, plan: undefined, maxWaitMs: undefined } as const

// The last one: the others have to be run before.
test('where there are tokens for reading, the stream wants one', async () => {
  const [writes, reads] = ['a-token-that-is-long-enough', 'a-token-that-may-only-read']
  const guarded = await serviceOn(CONFIG, undefined, new Tokens([writes]), { readTokens: new Tokens([reads]) })
  try {
    expect((await call(guarded.url, 'GET', '/v1/live')).status).toBe(401)
    const leaving = new AbortController()
    const stream = await fetch(`${guarded.url}/v1/live`, { headers: { authorization: `Bearer ${reads}` }, signal: leaving.signal })
    expect(stream.status).toBe(200)
    leaving.abort()
  } finally {
    await guarded.stop(0)
  }
})

test('everything in the document was seen', async () => {
  await expectHostGuarded(service.url, LIVE_PATHS)
  expectAllSeen(LIVE_PATHS)
})
