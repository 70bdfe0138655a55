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
  readonly #decisions = this.#counter(DECISIONS, ['limiter', 'result'])
  readonly #degraded = this.#counter(DEGRADED, ['limiter'])
  readonly #durations = this.#histogram(DURATION, DURATION_BOUNDS_S)
  readonly #waits = this.#histogram(WAIT, WAIT_BOUNDS_S)
  readonly #storeErrors = this.#counter(STORE_ERRORS, ['limiter'])
  readonly #outages = this.#counter(OUTAGES, ['limiter'])
  readonly #reloads = new Counter({
    name: 'sluice_config_reloads_total',
    help: 'Reloads of the configuration by result.',
    labelNames: ['result'],
    registers: [this.registry],
  })
  readonly #listeners = new Map<string, Listener>()

  constructor(store: Store) {
    for (const result of RELOADS) this.#reloads.inc({ result }, 0)
    if (liveKeys(store) === undefined) return
    this.#gauge(LIVE_KEYS, [], (gauge) => gauge.set(liveKeys(store) ?? 0))
  }

  /** The same for the same name, however often its limiter is made anew. Labels are looked up once, because this runs at every decision. */
  of(limiter: string): Listener {
    const known = this.#listeners.get(limiter)
    if (known !== undefined) return known
    const results = {
      allowed: fromZero(this.#decisions, limiter, 'allowed'),
      limited: fromZero(this.#decisions, limiter, 'limited'),
      impossible: fromZero(this.#decisions, limiter, 'impossible'),
    }
    const degraded = fromZero(this.#degraded, limiter)
    const errors = fromZero(this.#storeErrors, limiter)
    const outages = fromZero(this.#outages, limiter)
    const duration = this.#durations.labels(limiter)
    const wait = this.#waits.labels(limiter)
    const made = recording({
      decided: (result) => results[result].inc(),
      degraded: () => degraded.inc(),
      took: (seconds) => duration.observe(seconds),
      waited: (seconds) => wait.observe(seconds),
      storeFailed: () => errors.inc(),
      storeWentDown: () => outages.inc(),
    })
    this.#listeners.set(limiter, made)
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

  #counter(measure: Measure, labelNames: string[]): Counter {
    return new Counter({ name: `${nameOf(measure)}_total`, help: measure.description, labelNames, registers: [this.registry] })
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

/** There from the beginning: the step from nothing to one is no increase to Prometheus. */
function fromZero(counter: Counter, ...labels: string[]): Counter.Internal {
  const labelled = counter.labels(...labels)
  labelled.inc(0)
  return labelled
}

/** As OpenTelemetry's collector would call it. */
function nameOf({ name, unit }: Measure): string {
  return name.replaceAll('.', '_') + (unit === 's' ? '_seconds' : '')
}
