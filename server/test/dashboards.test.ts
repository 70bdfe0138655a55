/**
 * The dashboard and the alerts: every metric and label that they ask for is among those of the
 * service after real traffic.
 */
import { readFileSync } from 'node:fs'
import { DataPointType, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics'
import { parser } from '@prometheus-io/lezer-promql'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { moves } from '../../src/limiter/moving.ts'
import { observe } from '../../src/otel/index.ts'
import { concurrency, createLimiter, type Listener, memoryStore, SluiceError } from '../src/sluice.ts'
import { call } from './support/client.ts'
import { CONFIG, expectNoFailure, serviceOn, type TestService, until } from './support/service.ts'

interface Panel {
  readonly id: number
  readonly type: string
  readonly title: string
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number }
  readonly datasource: object
  readonly targets: readonly { readonly refId: string; readonly expr: string; readonly datasource: object }[]
}

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: { readonly severity: string }
  readonly annotations: { readonly summary: string; readonly description: string }
}

const textOf = (path: string) => readFileSync(new URL(`../../deploy/${path}`, import.meta.url), 'utf8')
const dashboard = JSON.parse(textOf('grafana/sluice.json'))
const panels = dashboard.panels as Panel[]
const rules = parse(textOf('prometheus/alerts.yaml')).groups.flatMap((group: { rules: Rule[] }) => group.rules) as Rule[]

/** Every question, with what Grafana puts in before it asks. */
const questions = [
  ...panels.flatMap(({ title, targets }) => targets.map(({ refId, expr }) => ({ name: `panel ${title}, ${refId}`, expr }))),
  ...rules.map(({ alert, expr }) => ({ name: `alert ${alert}`, expr })),
].map(({ name, expr }) => ({ name, expr: expr.replaceAll('$__rate_interval', '1m') }))

/** What Prometheus itself knows of everything that it asks. */
const OF_PROMETHEUS = { metrics: ['up'], labels: ['job', 'instance'] }

const RATE = '{ type: gcra, rate: 1/s, burst: 1 }'
const FOLLOW = '{ signal: heap, min: 1/s, max: 1/s, from: 0, to: 1 }'

let service: TestService
/** The names of its series, and the labels of each. */
let told: Map<string, Set<string>>

beforeAll(async () => {
  service = await serviceOn(`${CONFIG}  followed:\n    limits: ${RATE}\n    follow: ${FOLLOW}\n`, memoryStore())
  service.metrics.addProcess('1.2.3')
  const ask = { limiter: 'api', key: 'u1' }
  await call(service.url, 'POST', '/v1/decide', { decisions: [...Array(4).fill(ask), { ...ask, cost: 9 }] })
  const waiting = call(service.url, 'POST', '/v1/acquire', ask)
  await until(() => service.limiters.get('api')?.waiting === 1)
  await waiting
  told = seriesIn((await call(service.url, 'GET', '/metrics')).body)
})

afterAll(async () => {
  await service.stop(0)
  expectNoFailure(service)
})

function seriesIn(text: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>()
  for (const [, name, labels = ''] of text.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)) {
    const known = series.get(name as string) ?? new Set()
    for (const [, label] of labels.matchAll(/(\w+)="/g)) known.add(label as string)
    series.set(name as string, known)
  }
  return series
}

interface Parsed {
  readonly mistakes: number
  readonly metrics: readonly string[]
  readonly labels: readonly string[]
}

function parsed(expr: string): Parsed {
  let mistakes = 0
  const metrics: string[] = []
  const labels: string[] = []
  parser.parse(expr).iterate({
    enter({ type, name, from, to }) {
      const text = expr.slice(from, to)
      if (type.isError) mistakes += 1
      if (name === 'Identifier') metrics.push(text)
      if (name === 'LabelName') labels.push(text)
    },
  })
  return { mistakes, metrics, labels }
}

test('the parser finds mistakes', () => {
  expect(parsed('sum(rate(a[5m)').mistakes).toBeGreaterThan(0)
  expect(parsed('sum by (x) (rate(a{y="z"}[5m]))')).toEqual({ mistakes: 0, metrics: ['a'], labels: ['x', 'y'] })
})

describe.each(questions)('$name', ({ expr }) => {
  const { mistakes, metrics, labels } = parsed(expr)

  test('is PromQL', () => {
    expect(mistakes).toBe(0)
    expect(metrics.length).toBeGreaterThan(0)
  })

  test('asks for metrics and labels that there are', () => {
    const known = [...OF_PROMETHEUS.labels, ...metrics.flatMap((name) => [...(told.get(name) ?? [])])]
    expect(metrics.filter((name) => !told.has(name) && !OF_PROMETHEUS.metrics.includes(name))).toEqual([])
    expect(labels.filter((label) => !known.includes(label))).toEqual([])
  })
})

test('every metric of the service is on the dashboard', () => {
  const shown = new Set(
    panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => parsed(expr.replaceAll('$__rate_interval', '1m')).metrics)),
  )
  const isOurs = (name: string) => name.startsWith('sluice_') && !/_(sum|count)$/.test(name)
  expect([...shown].filter(isOurs).sort()).toEqual([...told.keys()].filter(isOurs).sort())
})

test('by OpenTelemetry there are the same metrics with the same labels, under the names that its collector makes of them', async () => {
  class Reader extends MetricReader {
    protected override async onForceFlush(): Promise<void> {}
    protected override async onShutdown(): Promise<void> {}
  }
  const reader = new Reader()
  const provider = new MeterProvider({ readers: [reader] })
  const limiter = {
    name: 'api',
    store: memoryStore(),
    waiting: () => 0,
    inflight: () => 1,
    scope: () => createLimiter({ held: concurrency({ max: 1 }) }).scope(),
    health: () => ({ state: 'up', sinceMs: 0, error: undefined }) as const,
  }
  const observed = { ...limiter, listen: everything }
  moves(observed, { limit: 'rate', now: 1, isReduced: true, changes: new Map([['more load', 1]]) })
  observe(observed, { meter: provider.getMeter('test') })
  const { resourceMetrics } = await reader.collect()
  const collected = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics)
  const names = collected.map((metric) => {
    const { name, unit } = metric.descriptor
    const isCounter = metric.dataPointType === DataPointType.SUM && metric.isMonotonic
    return name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '') + (isCounter ? '_total' : '')
  })
  const ofTheService = /_(sum|count)$|config_reloads|build_info|shadowed|near_limit|^(?!sluice_)/
  const families = [...told.keys()].filter((name) => !ofTheService.test(name)).map((name) => name.replace(/_bucket$/, ''))
  expect(names.sort()).toEqual(families.sort())
  const labels = new Set(collected.flatMap(({ dataPoints }) => dataPoints.flatMap(({ attributes }) => Object.keys(attributes))))
  expect([...labels].sort()).toEqual(['limit', 'limiter', 'reason', 'result'])
  await provider.shutdown()
})

/** A limiter to which everything happens at once. */
function everything(listener: Listener): () => void {
  const decision = { outcome: 'allowed', allowed: true, degraded: true }
  for (const verb of ['acquire', 'consume']) listener.onDecision?.({ verb, decision, tookMs: 1 } as never)
  listener.onDecision?.({ verb: 'charge', decision, tookMs: 1 } as never)
  listener.onFailure?.({ limiter: 'api', error: new SluiceError('STORE', 'gone') })
  listener.onHealth?.({ limiter: 'api', state: 'down', sinceMs: 0, error: undefined })
  return () => undefined
}

describe('the dashboard', () => {
  test('is one that Grafana loads: a title, a version of the schema, and panels with ids of their own', () => {
    expect(dashboard).toMatchObject({
      title: 'Sluice',
      uid: 'sluice',
      schemaVersion: expect.any(Number),
      templating: { list: expect.any(Array) },
    })
    // Grafana gives it an id of its own.
    expect(dashboard).not.toHaveProperty('id')
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    for (const { type, title, targets } of panels) {
      expect(['stat', 'timeseries']).toContain(type)
      expect(title).not.toBe('')
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
    }
  })

  test('its panels lie beside each other on a grid of 24 columns', () => {
    const taken = new Map<string, string>()
    for (const { title, gridPos } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.get(`${x} ${y}`), title).toBeUndefined()
          taken.set(`${x} ${y}`, title)
        }
      }
    }
  })

  test('asks whichever Prometheus is chosen, about the limiters that are chosen', () => {
    const [source, limiter] = dashboard.templating.list
    expect(source).toMatchObject({ name: 'datasource', type: 'datasource', query: 'prometheus' })
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is Grafana that puts something in.
    const uses = { type: 'prometheus', uid: '${datasource}' }
    expect(limiter).toMatchObject({ name: 'limiter', type: 'query', datasource: uses, multi: true, includeAll: true })
    const [, metric, label] = /^label_values\((\w+), (\w+)\)$/.exec(limiter.query.query) ?? []
    expect(told.get(metric as string)).toContain(label)
    for (const { datasource, targets } of panels) for (const each of [{ datasource }, ...targets]) expect(each.datasource).toEqual(uses)
    const variables = panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => expr.match(/\$\w+/g) ?? []))
    expect([...new Set(variables)].sort()).toEqual(['$__rate_interval', '$limiter'])
  })
})

describe('the alerts', () => {
  test.each(rules)('$alert says how bad it is and what has happened', ({ labels, annotations }) => {
    expect(['info', 'warning', 'critical']).toContain(labels.severity)
    expect(annotations.summary).not.toBe('')
    expect(annotations.description).toMatch(/\.$/)
  })

  test.each(rules)('$alert names only labels that are left in its answer', ({ expr, annotations }) => {
    const used = [...JSON.stringify(annotations).matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label as string)
    const grouped = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(', ')
    for (const label of used) expect(grouped ?? OF_PROMETHEUS.labels).toContain(label)
  })
})
