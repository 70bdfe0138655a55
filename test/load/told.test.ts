/** A limit that the load moves, seen from outside: by refused clients and in metrics. */

import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { expect, test } from 'vitest'
import { rateLimit } from '../../src/adapters/fetch.ts'
import { govern, knee } from '../../src/govern/index.ts'
import type { Decision } from '../../src/index.ts'
import { createLimiter, gcra } from '../../src/index.ts'
import { isReduced } from '../../src/limiter/moving.ts'
import { followLoad } from '../../src/load/index.ts'
import { observe } from '../../src/otel/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { HandMadeLimiter } from '../govern/hand-made-limiter.ts'

function followed() {
  const clock = fakeClock()
  const limiter = createLimiter({ rate: gcra({ rate: '10/s', burst: 1 }) }, { clock, name: 'api' })
  const load = { level: 0 }
  const following = followLoad(limiter, { min: '1/s', max: '10/s', signal: () => load.level, from: 1, to: 2, clock })
  return { clock, limiter, load, following }
}

test('a refusal under reduced capacity is 503 with its problem type, and 429 otherwise', async () => {
  const { clock, limiter, load, following } = followed()
  const handler = rateLimit({ limiter, key: () => 'all' })(() => new Response('ok'))
  const refused = async () => {
    const request = () => handler(new Request('https://api.example/', { headers: { accept: 'application/json' } }))
    await request()
    const response = await request()
    return [response.status, response.headers.get('retry-after'), ((await response.json()) as { type: string }).type.split('#')[1]]
  }
  expect(await refused()).toEqual([429, '1', 'quota-exceeded'])
  load.level = 5
  clock.advanceMs(60_000)
  expect(await refused()).toEqual([503, '1', 'temporary-reduced-capacity'])
  load.level = 0
  clock.advanceMs(60_000)
  expect(await refused()).toEqual([429, '1', 'quota-exceeded'])
  load.level = 5
  clock.advanceMs(60_000)
  following.close()
  expect(await refused()).toEqual([429, '1', 'quota-exceeded'])
})

test('a refusal by a governed limit is one of reduced capacity, until it is closed', () => {
  const limiter = new HandMadeLimiter(10)
  const by = (policy: string) => isReduced(limiter, { policy } as Decision)
  const governed = govern(limiter, { by: knee({ min: 1, max: 9 }) })
  expect([by('inflight'), by('other')]).toEqual([true, false])
  governed.close()
  expect(by('inflight')).toBe(false)
})

test('the limit now and its changes are measured', async () => {
  const { clock, limiter, load } = followed()
  const reader = new (class extends MetricReader {
    protected async onForceFlush() {}
    protected async onShutdown() {}
  })()
  const stop = observe(limiter, { meter: new MeterProvider({ readers: [reader] }).getMeter('test') })
  load.level = 1.5
  clock.advanceMs(60_000)
  const { resourceMetrics } = await reader.collect()
  const metrics = resourceMetrics.scopeMetrics.flatMap((scope) => scope.metrics)
  const points = (name: string) => metrics.find(({ descriptor }) => descriptor.name === name)?.dataPoints ?? []
  expect(points('sluice.limit.now').map(({ attributes, value }) => [attributes, Math.round(value as number)])).toEqual([
    [{ limiter: 'api', limit: 'rate' }, 6],
  ])
  const [changed] = points('sluice.limit.changes')
  expect(changed?.attributes).toEqual({ limiter: 'api', limit: 'rate', reason: 'more load' })
  expect(changed?.value).toBeGreaterThan(3)
  stop()
})
