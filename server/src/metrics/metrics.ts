/** What Prometheus is told: what the library measures, under the names that Prometheus has for it, and what only the service has. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import {
  BREAKER_OPEN,
  DECISIONS,
  DEGRADED,
  DURATION,
  DURATION_BOUNDS_S,
  type Health,
  LIVE_KEYS,
  type Listener,
  liveKeys,
  type Measure,
  OUTAGES,
  QUEUE_SIZE,
  recording,
  STORE_ERRORS,
  type Store,
  WAIT,
  WAIT_BOUNDS_S,
} from '../sluice.ts'
import { type Counted, type Counts, countWait, noCounts } from './counts.ts'

/** What one limiter tells, and what was counted of it. */
export interface LimiterMetrics {
  readonly counts: Counts
  readonly listener: Listener
}

interface WatchedLimiter {
  readonly config: { readonly name: string }
  readonly waiting: number
  readonly health: Health
}

/** What is looked at when somebody asks. */
export interface Watched {
  all(): Iterable<WatchedLimiter>
}

const RELOADS = ['ok', 'refused'] as const

export class Metrics {
  readonly registry = new Registry()
  readonly #durations = this.#histogram(DURATION, DURATION_BOUNDS_S)
  readonly #waits = this.#histogram(WAIT, WAIT_BOUNDS_S)
  readonly #reloads = new Counter({
    name: 'sluice_config_reloads_total',
    help: 'Reloads of the configuration by result.',
    labelNames: ['result'],
    registers: [this.registry],
  })
  readonly #ofLimiters = new Map<string, LimiterMetrics>()

  constructor(store: Store) {
    this.#total(DECISIONS, ['allowed', 'limited', 'impossible'])
    this.#total(DEGRADED, ['degraded'])
    this.#total(STORE_ERRORS, ['storeErrors'])
    this.#total(OUTAGES, ['outages'])
    for (const result of RELOADS) this.#reloads.inc({ result }, 0)
    if (liveKeys(store) === undefined) return
    this.#gauge(LIVE_KEYS, [], (gauge) => gauge.set(liveKeys(store) ?? 0))
  }

  /** The same for the same name, however often its limiter is made anew. Labels are looked up once, because this runs at every decision. */
  of(limiter: string): LimiterMetrics {
    const known = this.#ofLimiters.get(limiter)
    if (known !== undefined) return known
    const counts = noCounts()
    const duration = this.#durations.labels(limiter)
    const wait = this.#waits.labels(limiter)
    const listener = recording({
      decided(result) {
        counts[result] += 1
      },
      degraded() {
        counts.degraded += 1
      },
      took: (seconds) => duration.observe(seconds),
      waited(seconds) {
        countWait(counts, seconds * 1000)
        wait.observe(seconds)
      },
      storeFailed() {
        counts.storeErrors += 1
      },
      storeWentDown() {
        counts.outages += 1
      },
    })
    const made = { counts, listener }
    this.#ofLimiters.set(limiter, made)
    return made
  }

  reloaded(result: (typeof RELOADS)[number]): void {
    this.#reloads.labels(result).inc()
  }

  watch(limiters: Watched): void {
    const ofEach = (measure: Measure, figureOf: (limiter: WatchedLimiter) => number) =>
      this.#gauge(measure, ['limiter'], (gauge) => {
        // Limiters that left the configuration leave here too.
        gauge.reset()
        for (const limiter of limiters.all()) gauge.set({ limiter: limiter.config.name }, figureOf(limiter))
      })
    ofEach(QUEUE_SIZE, ({ waiting }) => waiting)
    ofEach(BREAKER_OPEN, ({ health }) => (health.state === 'down' ? 1 : 0))
  }

  /** What was counted, written down when somebody asks. Of several, each is a `result`. */
  #total(measure: Measure, figures: readonly Counted[]): void {
    const ofLimiters = this.#ofLimiters
    const labelNames = figures.length === 1 ? ['limiter'] : ['limiter', 'result']
    new Counter({
      name: `${nameOf(measure)}_total`,
      help: measure.description,
      labelNames,
      registers: [this.registry],
      collect() {
        this.reset()
        for (const [limiter, { counts }] of ofLimiters) {
          for (const result of figures) this.labels(...[limiter, result].slice(0, labelNames.length)).inc(counts[result])
        }
      },
    })
  }

  #histogram(measure: Measure, buckets: number[]): Histogram {
    return new Histogram({
      name: nameOf(measure),
      help: measure.description,
      labelNames: ['limiter'],
      buckets,
      registers: [this.registry],
    })
  }

  #gauge(measure: Measure, labelNames: string[], look: (gauge: Gauge) => void): void {
    const collect = function (this: Gauge) {
      look(this)
    }
    new Gauge({ name: nameOf(measure), help: measure.description, labelNames, registers: [this.registry], collect })
  }
}

/** As OpenTelemetry's collector would call it. */
function nameOf({ name, unit }: Measure): string {
  return name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '')
}
