/**
 * Limiters seen by the real OpenTelemetry SDK: in memory on a clock of the test's, on a real Redis,
 * and while it is away.
 */
import { metrics } from '@opentelemetry/api'
import {
  AggregationTemporality,
  DataPointType,
  InMemoryMetricExporter,
  MeterProvider,
  type MetricData,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type AsyncStore, createLimiter, fixedWindow, gcra, type Limiter, type Limits, leakyBucket, memoryStore } from '../../src/index.ts'
import { observe } from '../../src/otel/index.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { freePort, type RedisServer, startServer } from '../support/redis-servers.ts'

let exporter: InMemoryMetricExporter
let provider: MeterProvider

beforeEach(() => {
  exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
  // Collected when the test says so, not after a time.
  provider = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 2 ** 30 })] })
})

afterEach(async () => {
  metrics.disable()
  await provider.shutdown()
})

const meter = () => provider.getMeter('test')

async function collected(): Promise<MetricData[]> {
  exporter.reset()
  await provider.forceFlush()
  return exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
}

/**
 * A line for each series: `sluice.decisions limiter=api result=allowed: 2`. Of a histogram: how
 * many, and the sum.
 */
async function series(): Promise<string[]> {
  const lines = (await collected()).flatMap(({ descriptor, dataPointType, dataPoints }) =>
    dataPoints.map(({ attributes, value }) => {
      const labels = Object.entries(attributes).map(([name, label]) => ` ${name}=${label}`)
      const { count, sum } = value as { count: number; sum: number }
      return `${descriptor.name}${labels.join('')}: ${dataPointType === DataPointType.HISTOGRAM ? `${count} of ${sum}` : value}`
    }),
  )
  return lines.sort()
}

/** Its series without how long they took, which a real clock says otherwise each time. */
const counted = async () => (await series()).filter((line) => !/duration|wait/.test(line))

describe('in memory', () => {
  const clock = fakeClock(1_000_000)
  const inMemory = (options = {}) => createLimiter(gcra({ rate: '1/s', burst: 2 }), { name: 'api', clock, ...options })

  test('decisions are counted by limiter and result, and timed', async () => {
    const limiter = inMemory()
    observe(limiter, { meter: meter() })
    limiter.consume('u1')
    limiter.tryAcquire('u1')
    limiter.tryAcquire('u1')
    limiter.consume('u1', 3)
    limiter.reserve('u2')
    limiter.peek('u3')
    limiter.refund('u2')
    expect(await series()).toEqual([
      'sluice.breaker.open limiter=api: 0',
      'sluice.decision.duration limiter=api: 5 of 0',
      'sluice.decisions limiter=api result=allowed: 3',
      'sluice.decisions limiter=api result=impossible: 1',
      'sluice.decisions limiter=api result=limited: 1',
      'sluice.live_keys: 2',
      'sluice.queue.size limiter=api: 0',
      'sluice.store.full limiter=api: 0',
    ])
  })

  test('a wait is measured when it ends, and waiters are counted meanwhile', async () => {
    const limiter = inMemory()
    observe(limiter, { meter: meter() })
    limiter.consume('u1', 2)
    const [first, second] = [limiter.acquire('u1'), limiter.acquire('u1', { timeoutMs: 10_000 })]
    expect(await series()).toContain('sluice.queue.size limiter=api: 2')
    clock.advanceMs(2_000)
    await Promise.all([first, second])
    const lines = await series()
    // One of a second and one of two.
    expect(lines).toContain('sluice.wait limiter=api: 2 of 3')
    expect(lines).toContain('sluice.decisions limiter=api result=allowed: 3')
    expect(lines).toContain('sluice.decision.duration limiter=api: 1 of 0')
    expect(lines).toContain('sluice.queue.size limiter=api: 0')
  })

  test('a wait that is refused is a refusal, with or without a decision; one that is left is nothing', async () => {
    const limiter = createLimiter(leakyBucket({ capacity: 1, leak: '1/s' }), { name: 'api', clock, maxQueue: 1 })
    observe(limiter, { meter: meter() })
    limiter.consume('u1')
    const leaving = new AbortController()
    const left = expect(limiter.acquire('u1', { signal: leaving.signal })).rejects.toThrow('left')
    await expect(limiter.acquire('u1', { timeoutMs: 0 })).rejects.toMatchObject({ code: 'TIMEOUT' })
    await expect(limiter.acquire('u1')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await expect(limiter.acquire('u1', { cost: 2 })).rejects.toMatchObject({ code: 'IMPOSSIBLE' })
    leaving.abort(new Error('left'))
    await left
    expect(await counted()).toEqual([
      'sluice.breaker.open limiter=api: 0',
      'sluice.decisions limiter=api result=allowed: 1',
      'sluice.decisions limiter=api result=impossible: 1',
      'sluice.decisions limiter=api result=limited: 2',
      'sluice.live_keys: 1',
      'sluice.queue.size limiter=api: 0',
      'sluice.store.full limiter=api: 0',
    ])
  })

  test('limiters of one name are one in the figures, and a store that they share is counted once', async () => {
    const store = memoryStore()
    const [one, two] = [inMemory({ store }), inMemory({ store })]
    const other = createLimiter(fixedWindow({ limit: 1, window: '1h' }), { name: 'other', clock })
    observe([one, other], { meter: meter() })
    observe(two, { meter: meter() })
    one.consume('u1')
    two.consume('u1')
    other.consume('u1')
    const waits = [one.acquire('u1'), two.acquire('u1')]
    expect(await counted()).toEqual([
      'sluice.breaker.open limiter=api: 0',
      'sluice.breaker.open limiter=other: 0',
      'sluice.decisions limiter=api result=allowed: 2',
      'sluice.decisions limiter=other result=allowed: 1',
      'sluice.live_keys: 2',
      'sluice.queue.size limiter=api: 2',
      'sluice.queue.size limiter=other: 0',
      'sluice.store.full limiter=api: 0',
      'sluice.store.full limiter=other: 0',
    ])
    clock.advanceMs(2_000)
    await Promise.all(waits)
  })

  test('stopping again does not end what was begun since', async () => {
    const limiter = inMemory()
    const stop = observe(limiter, { meter: meter() })
    stop()
    observe(limiter, { meter: meter() })
    stop()
    expect(await series()).toContain('sluice.queue.size limiter=api: 0')
    expect(() => observe(limiter, { meter: meter() })).toThrow(/observed already/)
  })

  test('after stop nothing is told any more, and the limiter can be observed anew', async () => {
    const limiter = inMemory()
    const stop = observe(limiter, { meter: meter() })
    limiter.consume('u1')
    stop()
    limiter.consume('u1')
    expect(await counted()).toEqual(['sluice.decisions limiter=api result=allowed: 1'])
    observe(limiter, { meter: meter() })
    expect(await counted()).toContain('sluice.queue.size limiter=api: 0')
  })

  test('without a meter it is the one of the global provider', async () => {
    metrics.setGlobalMeterProvider(provider)
    const limiter = inMemory()
    observe(limiter)
    limiter.consume('u1')
    expect(await counted()).toContain('sluice.decisions limiter=api result=allowed: 1')
    expect(exporter.getMetrics()[0]?.scopeMetrics[0]?.scope.name).toBe('sluice')
  })

  test('no attribute is ever a key, and every metric says what it is', async () => {
    const limiter = inMemory()
    observe(limiter, { meter: meter() })
    limiter.consume('a key')
    const all = await collected()
    expect(JSON.stringify(all)).not.toContain('a key')
    for (const { descriptor } of all) expect(descriptor.description).toMatch(/\.$/)
  })

  test.each([[undefined], [null], [{}], ['api'], [[{}]]])('%j is no limiter', (given) => {
    expect(() => observe(given as never, { meter: meter() })).toThrow(/must be a limiter/)
  })

  test('one that is observed already is refused, and the others with it', async () => {
    const [first, second] = [inMemory(), inMemory()]
    observe(first, { meter: meter() })
    expect(() => observe([second, first], { meter: meter() })).toThrow("limiter 'api' is observed already by this meter")
    second.consume('u1')
    expect(await counted()).not.toContain('sluice.decisions limiter=api result=allowed: 1')
  })
})

describe('on Redis', () => {
  let port: number
  let redis: RedisServer
  let client: Redis

  beforeEach(async () => {
    port = await freePort()
    redis = await startServer([], port)
    client = new Redis(port, '127.0.0.1', { maxRetriesPerRequest: 0, retryStrategy: () => 50 })
    client.on('error', () => undefined)
  })

  afterEach(async () => {
    client.disconnect()
    await redis.kill()
  })

  test('an outage is seen: what failed, what the policy decided, and the breaker', async () => {
    const [strict, mild] = (['throw', 'deny'] as const).map((onStoreError) =>
      createLimiter(fixedWindow({ limit: 2, window: '366d', anchor: 'first' }), {
        name: onStoreError,
        store: redisStore(client),
        onStoreError,
      }),
    ) as [RemoteLimiter, RemoteLimiter]
    observe([strict, mild], { meter: meter() })
    for (const limiter of [strict, mild]) for (let k = 0; k < 3; k++) await limiter.consume('u1')
    expect(await counted()).toEqual([
      'sluice.breaker.open limiter=deny: 0',
      'sluice.breaker.open limiter=throw: 0',
      'sluice.decisions limiter=deny result=allowed: 2',
      'sluice.decisions limiter=deny result=limited: 1',
      'sluice.decisions limiter=throw result=allowed: 2',
      'sluice.decisions limiter=throw result=limited: 1',
      'sluice.queue.size limiter=deny: 0',
      'sluice.queue.size limiter=throw: 0',
      'sluice.store.full limiter=deny: 0',
      'sluice.store.full limiter=throw: 0',
    ])

    await redis.kill()
    for (let k = 0; k < 2; k++) {
      await expect(strict.consume('u2')).rejects.toMatchObject({ code: 'STORE' })
      expect(await mild.consume('u2')).toMatchObject({ outcome: 'limited', degraded: true })
    }
    await expect(strict.acquire('u2')).rejects.toMatchObject({ code: 'STORE' })
    expect(await counted()).toEqual([
      'sluice.breaker.open limiter=deny: 1',
      'sluice.breaker.open limiter=throw: 1',
      'sluice.decisions limiter=deny result=allowed: 2',
      'sluice.decisions limiter=deny result=limited: 3',
      'sluice.decisions limiter=throw result=allowed: 2',
      'sluice.decisions limiter=throw result=limited: 1',
      'sluice.degraded_decisions limiter=deny: 2',
      'sluice.queue.size limiter=deny: 0',
      'sluice.queue.size limiter=throw: 0',
      'sluice.store.errors limiter=throw: 3',
      'sluice.store.full limiter=deny: 0',
      'sluice.store.full limiter=throw: 0',
      'sluice.store.outages limiter=deny: 1',
      'sluice.store.outages limiter=throw: 1',
    ])

    const areUp = Promise.all([strict, mild].map(isUp))
    redis = await startServer([], port)
    await areUp
    expect((await counted()).filter((line) => line.includes('breaker'))).toEqual([
      'sluice.breaker.open limiter=deny: 0',
      'sluice.breaker.open limiter=throw: 0',
    ])
    for (const limiter of [strict, mild]) limiter.close()
  })
})

type RemoteLimiter = Limiter<Limits, AsyncStore>

/** Resolves when the breaker closes. */
function isUp(limiter: RemoteLimiter): Promise<void> {
  return new Promise((resolve) => {
    limiter.listen({ onHealth: ({ state }) => state === 'up' && resolve() })
  })
}
