/**
 * A store in memory that is full says so: by the reason of each refusal, by one warning, by the
 * health of the limiter and by a figure.
 */
import { AggregationTemporality, InMemoryMetricExporter, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { rateLimit } from '../../src/adapters/fetch.ts'
import { concurrency, createLimiter, gcra, type HealthEvent, memoryStore, type SyncStore, slidingLog } from '../../src/index.ts'
import { observe } from '../../src/otel/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const START_MS = 1_700_000_000_000
const ONE = gcra({ rate: '1/s', burst: 1 })
type OnFull = 'deny' | 'allow'

afterEach(() => vi.restoreAllMocks())

const turn = () => new Promise<void>((resolve) => queueMicrotask(resolve))

describe.each<[string, (onFull: OnFull) => SyncStore]>([
  ['memoryStore', (onFull) => memoryStore({ maxKeys: 2, onFull })],
  ['sharedStore', (onFull) => sharedStore({ maxKeys: 2, onFull })],
])('a full %s', (name, made) => {
  function full(onFull: OnFull = 'deny') {
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
    const clock = fakeClock(START_MS)
    const told: HealthEvent[] = []
    const limiter = createLimiter(ONE, { name: 'api', store: made(onFull), clock, onHealth: (event) => told.push(event) })
    for (const key of ['a', 'b']) expect(limiter.consume(key).allowed).toBe(true)
    const warnings = () => {
      const calls = [...warned.mock.calls] as unknown as [string, { code: string }][]
      return calls.map(([text, { code }]) => `${code}: ${text}`)
    }
    return { clock, limiter, told, warnings }
  }

  test('refuses a new key for another reason than its limit', () => {
    const { limiter } = full()
    expect(limiter.consume('new')).toMatchObject({ outcome: 'limited', reason: 'full', retryAfterMs: 1_000, remaining: 1 })
    expect(limiter.peek('new')).toMatchObject({ outcome: 'limited', reason: 'full' })
    expect(limiter.consume('new', 5)).toMatchObject({ outcome: 'impossible', reason: 'limit' })
    expect(limiter.consume('a')).toMatchObject({ outcome: 'limited', reason: 'limit' })
    limiter.reset('a')
    const allowed = limiter.consume('new')
    expect([allowed.allowed, 'reason' in allowed]).toEqual([true, false])
    expect(JSON.parse(JSON.stringify(limiter.consume('newer')))).toMatchObject({
      allowed: false,
      reason: 'full',
      parts: { default: { outcome: 'limited' } },
    })
  })

  test.each<[OnFull, string]>([
    ['deny', "is refused until one of them is idle (onFull: 'deny')"],
    ['allow', "passes uncounted (onFull: 'allow')"],
  ])('warns once: %s', (onFull, outcome) => {
    const { limiter, warnings } = full(onFull)
    expect(warnings()).toEqual([])
    for (let k = 0; k < 100; k++) expect(limiter.tryAcquire(`new:${k}`)).toBe(onFull === 'allow')
    expect(warnings()).toEqual([
      `SLUICE_FULL: ${name}({ maxKeys: 2 }) is full: all keys that it looked at are in use, and a new key ${outcome}; make it with a larger maxKeys (limiter 'api')`,
    ])
  })

  test.each<OnFull>(['deny', 'allow'])(
    'is told as the health of the limiter, until a whole minute found room for every key: %s',
    async (onFull) => {
      const { clock, limiter, told } = full(onFull)
      expect(limiter.health().state).toBe('up')
      limiter.tryAcquire('new')
      expect(limiter.health()).toMatchObject({ state: 'full', sinceMs: START_MS, error: { code: 'STORE' } })
      await turn()
      for (let second = 1; second <= 100; second++) {
        clock.advanceMs(999)
        // Two keys fit, the third does not.
        for (const key of ['a', 'b', 'new']) limiter.tryAcquire(`${key}:${second}`)
        clock.advanceMs(1)
      }
      await turn()
      expect(told.map(({ state }) => state)).toEqual(['full'])
      clock.advanceMs(121_000)
      await turn()
      expect(told.map(({ limiter: name, state, error }) => [name, state, error?.code])).toEqual([
        ['api', 'full', 'STORE'],
        ['api', 'up', undefined],
      ])
      expect(limiter.health().state).toBe('up')
    },
  )

  test('may be asked by the listener that is told of it, in the middle of nothing', async () => {
    const { limiter } = full()
    const answers: boolean[] = []
    limiter.listen({ onHealth: () => answers.push(limiter.tryAcquire('a'), limiter.consume('newer').allowed) })
    expect(limiter.consume('new')).toMatchObject({ reason: 'full' })
    await turn()
    expect(answers).toEqual([false, false])
  })

  test('is a figure: 1 while it is full', async () => {
    const { limiter, clock } = full()
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 })
    const stop = observe(limiter, { meter: new MeterProvider({ readers: [reader] }).getMeter('sluice') })
    const figure = async () => {
      exporter.reset()
      await reader.forceFlush()
      const metrics = exporter.getMetrics().flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      return metrics.find(({ descriptor }) => descriptor.name === 'sluice.store.full')?.dataPoints.map(({ value }) => value)
    }
    expect(await figure()).toEqual([0])
    limiter.tryAcquire('new')
    expect(await figure()).toEqual([1])
    clock.advanceMs(121_000)
    expect(await figure()).toEqual([0])
    stop()
  })

  test('over HTTP is not what the client did: 503, and when to come again', async () => {
    const { limiter } = full()
    const handler = rateLimit({ limiter, key: (request: Request) => request.headers.get('x-key') as string })(() => new Response('ok'))
    const answer = async (key: string) => {
      const response = await handler(new Request('http://localhost/', { headers: { 'x-key': key } }))
      return [response.status, response.headers.get('retry-after')]
    }
    expect(await answer('new')).toEqual([503, '1'])
    expect(await answer('a')).toEqual([429, '1'])
  })

  test('closes without a timer left behind', () => {
    const { limiter, clock, told } = full()
    limiter.tryAcquire('new')
    limiter.close()
    clock.advanceMs(600_000)
    expect(told).toEqual([])
  })
})

test('of several limits in memory the one that is full is told of, unless another one waits longer', () => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const clock = fakeClock(START_MS)
  const limits = { user: ONE, all: slidingLog({ limit: 3, window: '1min' }) }
  const limiter = createLimiter(limits, { store: memoryStore({ maxKeys: 2 }), clock })
  const keyed = (user: string) => limiter.consume({ user, all: 'all' })
  for (const user of ['a', 'b']) keyed(user)
  expect(keyed('c')).toMatchObject({ reason: 'full', retryAfterMs: 1_000 })
  clock.advanceMs(1_000)
  expect(keyed('c').allowed).toBe(true)
  expect(keyed('d')).toMatchObject({ reason: 'limit', policy: 'all', retryAfterMs: 59_000 })
})

test('a permit that was refused says why, too', () => {
  vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const limiter = createLimiter(concurrency({ max: 1 }), { store: memoryStore({ maxKeys: 1 }) })
  const held = limiter.consume('a')
  expect(limiter.consume('a')).toMatchObject({ allowed: false, reason: 'limit' })
  expect(limiter.consume('b')).toMatchObject({ allowed: false, reason: 'full' })
  held.release()
})
