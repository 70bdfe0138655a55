/** What Prometheus is told. Labels are names from the configuration, never keys: there are as many keys as there are callers. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Health, MemoryStore, Outcome, Store } from '../sluice.ts'
import { type Counts, noCounts } from './counts.ts'

/** What one limiter reports. */
export interface LimiterMetrics {
  readonly counts: Counts
  decided(outcome: Outcome, shadow: boolean, durationMs: number): void
  waited(ms: number): void
  storeFailed(): void
  storeIs(state: Health['state']): void
}

/** What is looked at when somebody asks. */
export interface Watched {
  all(): Iterable<{ readonly config: { readonly name: string }; readonly waiting: number; readonly health: Health }>
}

const OUTCOMES: readonly Outcome[] = ['allowed', 'limited', 'impossible']
const DECISION_SECONDS = [0.00001, 0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1]
const WAIT_SECONDS = [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60]

export class Metrics {
  readonly registry = new Registry()
  readonly #durations = new Histogram({
    name: 'sluice_decision_duration_seconds',
    help: 'How long a decision took, waits included.',
    labelNames: ['limiter'],
    buckets: DECISION_SECONDS,
    registers: [this.registry],
  })
  readonly #waits = new Histogram({
    name: 'sluice_wait_seconds',
    help: 'How long those who acquired had waited for their turn.',
    labelNames: ['limiter'],
    buckets: WAIT_SECONDS,
    registers: [this.registry],
  })
  readonly #reloads = new Counter({
    name: 'sluice_config_reloads_total',
    help: 'Reloads of the configuration by result.',
    labelNames: ['result'],
    registers: [this.registry],
  })
  readonly #ofLimiters = new Map<string, LimiterMetrics>()

  constructor(store: Store) {
    this.#total('sluice_decisions_total', 'Decisions by limiter and result.', OUTCOMES)
    this.#total('sluice_store_errors_total', 'Decisions that failed because the store did.', ['storeErrors'])
    this.#total('sluice_store_outages_total', 'How often the breaker of a limiter opened.', ['outages'])
    if (!isMemory(store)) return
    new Gauge({
      name: 'sluice_live_keys',
      help: 'Keys held in the memory of this process, idle ones that have not left yet included.',
      registers: [this.registry],
      collect() {
        this.set(store.size)
      },
    })
  }

  /** The same for the same name, however often its limiter is made anew. Labels are looked up once, because this runs at every decision. */
  of(limiter: string): LimiterMetrics {
    const known = this.#ofLimiters.get(limiter)
    if (known !== undefined) return known
    const counts = noCounts()
    const [duration, wait] = [this.#durations.labels(limiter), this.#waits.labels(limiter)]
    const made: LimiterMetrics = {
      counts,
      decided(outcome, shadow, durationMs) {
        counts[outcome] += 1
        if (shadow && outcome !== 'allowed') counts.shadowed += 1
        duration.observe(durationMs / 1000)
      },
      waited(ms) {
        counts.waits.count += 1
        counts.waits.sumMs += ms
        counts.waits.maxMs = Math.max(counts.waits.maxMs, ms)
        wait.observe(ms / 1000)
      },
      storeFailed() {
        counts.storeErrors += 1
      },
      storeIs(state) {
        if (state === 'down') counts.outages += 1
      },
    }
    this.#ofLimiters.set(limiter, made)
    return made
  }

  /** What was counted, written down when somebody asks. Of several, each is a `result`. */
  #total(name: string, help: string, figures: readonly (Outcome | 'storeErrors' | 'outages')[]): void {
    const ofLimiters = this.#ofLimiters
    const labelNames = figures.length === 1 ? ['limiter'] : ['limiter', 'result']
    new Counter({
      name,
      help,
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

  reloaded(result: 'ok' | 'refused'): void {
    this.#reloads.labels(result).inc()
  }

  watch(limiters: Watched): void {
    const gauge = (name: string, help: string, figureOf: (limiter: { waiting: number; health: Health }) => number) =>
      new Gauge({
        name,
        help,
        labelNames: ['limiter'],
        registers: [this.registry],
        collect() {
          // Limiters that left the configuration leave here too.
          this.reset()
          for (const limiter of limiters.all()) this.set({ limiter: limiter.config.name }, figureOf(limiter))
        },
      })
    gauge('sluice_queue_size', 'How many wait for their turn.', ({ waiting }) => waiting)
    gauge('sluice_breaker_open', '1 while the store is down and the failure policy decides.', ({ health }) =>
      health.state === 'down' ? 1 : 0,
    )
  }
}

export function isMemory(store: Store): store is MemoryStore {
  return 'sizeOf' in store
}
