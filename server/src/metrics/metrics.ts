/**
 * What Prometheus is told: what the library measures, under the names that Prometheus has for it,
 * and what only the service has.
 */
import { type Metric, Registry } from 'prom-client'
import { type LimiterConfig, titleOf } from '../config/config.ts'
import {
  BREAKER_OPEN,
  CHARGES,
  DECISIONS,
  DEGRADED,
  DURATION,
  type Health,
  INFLIGHT,
  LIMIT_CHANGES,
  LIMIT_NOW,
  LIVE_KEYS,
  type Listener,
  liveKeys,
  type Measure,
  OUTAGES,
  type Outcome,
  QUEUE_SIZE,
  recording,
  STORE_ERRORS,
  STORE_FULL,
  type Store,
  WAIT,
} from '../sluice.ts'
import { processMetrics } from './process.ts'
import { type Buckets, Tally } from './tally.ts'

/** What one limiter tells, and what was counted of it. */
export interface LimiterMetrics {
  readonly tally: Tally
  readonly listener: Listener
}

interface WatchedLimiter {
  readonly config: Pick<LimiterConfig, 'name' | 'rule'>
  readonly waiting: number
  /** Undefined where nothing is held. */
  readonly inflight: number | undefined
  /** Those that are held, or follow the load. */
  readonly limitsNow: ReadonlyMap<string, number>
  readonly health: Health
}

/** The limiters, looked at when the metrics are asked for. */
export interface Watched {
  all(): Iterable<WatchedLimiter>
}

/** One line of what is told. `metricName` is for the parts of a histogram. */
interface Value {
  readonly labels: Readonly<Record<string, string | number>>
  readonly value: number
  readonly metricName?: string
}

const SHADOWED = 'Decisions that would have been refusals, had the limiter not been in shadow.'
const NEAR_LIMIT = 'Allowed decisions that left less than a fifth of the limit.'

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']
const CHARGED: readonly Outcome[] = ['allowed', 'limited']

export class Metrics {
  readonly registry = new Registry()
  /**
   * By the title of the limiter. All that ever was stays: a counter that starts again would be read
   * as a restart.
   */
  readonly #ofLimiters = new Map<string, LimiterMetrics>()
  readonly #reloads = { ok: 0, refused: 0 }

  constructor(store: Store) {
    this.#counter(DECISIONS, ({ results }, limiter) => OUTCOMES.map((result) => ({ labels: { limiter, result }, value: results[result] })))
    this.#counter(CHARGES, ({ charges }, limiter) => CHARGED.map((result) => ({ labels: { limiter, result }, value: charges[result] })))
    this.#counter(DEGRADED, ({ degradedDecisions }, limiter) => [{ labels: { limiter }, value: degradedDecisions }])
    this.#counter(STORE_ERRORS, ({ storeErrors }, limiter) => [{ labels: { limiter }, value: storeErrors }])
    this.#counter(OUTAGES, ({ outages }, limiter) => [{ labels: { limiter }, value: outages }])
    this.#add('sluice_shadowed_decisions_total', SHADOWED, 'counter', () =>
      this.#ofTallies(({ shadowed }, limiter) => [{ labels: { limiter }, value: shadowed }]),
    )
    this.#add('sluice_near_limit_decisions_total', NEAR_LIMIT, 'counter', () =>
      this.#ofTallies(({ nearLimit }, limiter) => [{ labels: { limiter }, value: nearLimit }]),
    )
    this.#counter(LIMIT_CHANGES, ({ limitChanges }, limiter) =>
      [...limitChanges].flatMap(([limit, changes]) =>
        [...changes].map(([reason, value]) => ({ labels: { limiter, limit, reason }, value })),
      ),
    )
    this.#histogram(DURATION, ({ durations }) => durations)
    this.#histogram(WAIT, ({ waits }) => waits)
    this.#add('sluice_config_reloads_total', 'Reloads of the configuration by result.', 'counter', () =>
      Object.entries(this.#reloads).map(([result, value]) => ({ labels: { result }, value })),
    )
    if (liveKeys(store) === undefined) return
    this.#gauge(LIVE_KEYS, () => [{ labels: {}, value: liveKeys(store) ?? 0 }])
  }

  /** The same for the same name, however often its limiter is made anew. */
  of(limiter: string): LimiterMetrics {
    const known = this.#ofLimiters.get(limiter)
    if (known !== undefined) return known
    const tally = new Tally()
    const made = { tally, listener: recording(tally) }
    this.#ofLimiters.set(limiter, made)
    return made
  }

  /**
   * What Node and the system know of this process, and what it runs: for the process that is a
   * service, not for every service within one.
   */
  addProcess(version: string): void {
    for (const { name, help, type, value } of processMetrics()) this.#add(name, help, type, () => [{ labels: {}, value: value() }])
    this.#add('sluice_build_info', 'Always 1: the version of Sluice and of Node.', 'gauge', () => [
      { labels: { version, node: process.versions.node }, value: 1 },
    ])
  }

  reloaded(result: 'ok' | 'refused'): void {
    this.#reloads[result] += 1
  }

  /** Limiters that leave the configuration leave here too. */
  watch(limiters: Watched): void {
    const ofEach = (figureOf: (limiter: WatchedLimiter) => number | undefined) => () => {
      const figures = new Map<string, number | undefined>()
      for (const limiter of limiters.all()) figures.set(titleOf(limiter.config), figureOf(limiter))
      return [...figures].flatMap(([limiter, value]) => (value === undefined ? [] : [{ labels: { limiter }, value }]))
    }
    this.#gauge(
      QUEUE_SIZE,
      ofEach(({ waiting }) => waiting),
    )
    this.#gauge(
      INFLIGHT,
      ofEach(({ inflight }) => inflight),
    )
    this.#gauge(LIMIT_NOW, () =>
      [...limiters.all()].flatMap(({ config, limitsNow }) =>
        [...limitsNow].map(([limit, value]) => ({ labels: { limiter: titleOf(config), limit }, value })),
      ),
    )
    this.#gauge(
      BREAKER_OPEN,
      ofEach(({ health }) => (health.state === 'down' ? 1 : 0)),
    )
    this.#gauge(
      STORE_FULL,
      ofEach(({ health }) => (health.state === 'full' ? 1 : 0)),
    )
  }

  #counter(measure: Measure, valuesOf: (tally: Tally, limiter: string) => Value[]): void {
    this.#add(`${nameOf(measure)}_total`, measure.description, 'counter', () => this.#ofTallies(valuesOf))
  }

  #histogram(measure: Measure, bucketsOf: (tally: Tally) => Buckets): void {
    const name = nameOf(measure)
    this.#add(name, measure.description, 'histogram', () => this.#ofTallies((tally, limiter) => linesOf(name, limiter, bucketsOf(tally))))
  }

  #gauge(measure: Measure, values: () => Value[]): void {
    this.#add(nameOf(measure), measure.description, 'gauge', values)
  }

  #ofTallies(valuesOf: (tally: Tally, limiter: string) => Value[]): Value[] {
    return [...this.#ofLimiters].flatMap(([limiter, { tally }]) => valuesOf(tally, limiter))
  }

  /** All that a registry needs of a metric. */
  #add(name: string, help: string, type: 'counter' | 'gauge' | 'histogram', values: () => Value[]): void {
    const metric = { name, get: async () => ({ name, help, type, values: values() }) }
    this.registry.registerMetric(metric as unknown as Metric)
  }
}

/** As Prometheus has it: each bucket holds the ones before it too. */
function linesOf(name: string, limiter: string, { bounds, counts, sum }: Buckets): Value[] {
  let count = 0
  const buckets = counts.map((own, k) => {
    count += own
    return { metricName: `${name}_bucket`, labels: { le: bounds[k] ?? '+Inf', limiter }, value: count }
  })
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels: { limiter }, value: sum },
    { metricName: `${name}_count`, labels: { limiter }, value: count },
  ]
}

/** As OpenTelemetry's collector would call it. */
function nameOf({ name, unit }: Measure): string {
  return name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '')
}
