/**
 * Limiters seen by OpenTelemetry: `observe(limiter)`. Counters and histograms are told as things
 * happen; how many wait, how the store is and how many keys there are is looked at when figures are
 * collected. A limiter that is not observed pays nothing for it.
 */
import {
  type BatchObservableCallback,
  type BatchObservableResult,
  type Meter,
  metrics,
  type Observable,
  type Tracer,
} from '@opentelemetry/api'
import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import type { Listener } from '../limiter/events.ts'
import { movingLimits } from '../limiter/moving.ts'
import type { Health } from '../stores/remote/health.ts'
import type { Scope, Store } from '../stores/store.ts'
import {
  BREAKER_OPEN,
  CHARGES,
  DECISIONS,
  DEGRADED,
  DURATION,
  DURATION_BOUNDS_S,
  INFLIGHT,
  LIMIT_CHANGES,
  LIMIT_INFLIGHT,
  LIMIT_NOW,
  LIVE_KEYS,
  limitsNow,
  liveKeys,
  type Measure,
  OUTAGES,
  QUEUE_SIZE,
  type Recorder,
  recording,
  STORE_ERRORS,
  STORE_FULL,
  WAIT,
  WAIT_BOUNDS_S,
} from './measures.ts'
import { tracing } from './tracing.ts'

/** The parts of a limiter that are needed. */
export interface ObservedLimiter {
  readonly name: string
  readonly store: Store
  waiting(): number
  /** Only of limits that are in use until they are released. */
  inflight?(): number
  scope?(): Scope
  health(): Health
  listen(listener: Listener): () => void
}

export interface ObserveOptions {
  /** Default: the meter `sluice` of the global provider, which must be registered before. */
  readonly meter?: Meter
  /** Makes a span of each decision within a trace: `trace.getTracer('my-app')`. Default: none. */
  readonly tracer?: Tracer
}

/**
 * Measures a limiter, or several, until the function that is returned is called. Limiters of one
 * name are one in the figures.
 */
export function observe(limiters: ObservedLimiter | readonly ObservedLimiter[], options: ObserveOptions = {}): () => void {
  onlyKnown(options, ['meter', 'tracer'], 'observe')
  const { meter, tracer } = options
  if (tracer !== undefined && typeof tracer?.startSpan !== 'function') {
    throw new SluiceError('CONFIG', `tracer ${shown(tracer)} must be a tracer, such as trace.getTracer('my-app')`)
  }
  const all = new Set([limiters].flat())
  const metered = meteredBy(meter ?? metrics.getMeter('sluice'))
  for (const limiter of all) metered.check(limiter)
  const stops = [...all].map((limiter) => metered.add(limiter))
  if (tracer !== undefined) for (const limiter of all) stops.push(limiter.listen(tracing(tracer)))
  return () => {
    // Once: a limiter may be observed anew.
    for (const stop of stops.splice(0)) stop()
  }
}

const known = new WeakMap<Meter, Metered>()

/** One for each meter, because what two of them observe of the same name would not be added up. */
function meteredBy(meter: Meter): Metered {
  const found = known.get(meter) ?? new Metered(meter)
  known.set(meter, found)
  return found
}

class Metered {
  readonly #meter: Meter
  readonly #recorderOf: (limiter: string) => Recorder
  readonly #queueSize: Observable
  readonly #inflight: Observable
  readonly #breakerOpen: Observable
  readonly #storeFull: Observable
  readonly #liveKeys: Observable
  readonly #limitNow: Observable
  readonly #limitInflight: Observable
  readonly #limitChanges: Observable
  readonly #limiters = new Set<ObservedLimiter>()
  readonly #look: BatchObservableCallback = (result) => this.#observe(result)

  constructor(meter: Meter) {
    this.#meter = meter
    this.#recorderOf = recordersOf(meter)
    this.#queueSize = meter.createObservableUpDownCounter(...named(QUEUE_SIZE))
    this.#inflight = meter.createObservableUpDownCounter(...named(INFLIGHT))
    this.#breakerOpen = meter.createObservableGauge(...named(BREAKER_OPEN))
    this.#storeFull = meter.createObservableGauge(...named(STORE_FULL))
    this.#liveKeys = meter.createObservableUpDownCounter(...named(LIVE_KEYS))
    this.#limitNow = meter.createObservableGauge(...named(LIMIT_NOW))
    this.#limitInflight = meter.createObservableGauge(...named(LIMIT_INFLIGHT))
    this.#limitChanges = meter.createObservableCounter(...named(LIMIT_CHANGES))
  }

  check(limiter: ObservedLimiter): void {
    if (typeof limiter?.listen !== 'function')
      throw new SluiceError('CONFIG', `what observe is given, ${shown(limiter)}, must be a limiter`)
    if (this.#limiters.has(limiter)) throw new SluiceError('CONFIG', `limiter '${limiter.name}' is observed already by this meter`)
  }

  add(limiter: ObservedLimiter): () => void {
    if (this.#limiters.size === 0) this.#meter.addBatchObservableCallback(this.#look, this.#observables)
    this.#limiters.add(limiter)
    const deaf = limiter.listen(recording(this.#recorderOf(limiter.name)))
    return () => {
      deaf()
      this.#limiters.delete(limiter)
      if (this.#limiters.size === 0) this.#meter.removeBatchObservableCallback(this.#look, this.#observables)
    }
  }

  get #observables(): Observable[] {
    return [
      this.#queueSize,
      this.#inflight,
      this.#breakerOpen,
      this.#storeFull,
      this.#liveKeys,
      this.#limitNow,
      this.#limitInflight,
      this.#limitChanges,
    ]
  }

  #observe(result: BatchObservableResult): void {
    const waiting = new Map<string, number>()
    const inflight = new Map<string, number>()
    const open = new Map<string, number>()
    const full = new Map<string, number>()
    const stores = new Set<Store>()
    for (const limiter of this.#limiters) {
      const { name } = limiter
      waiting.set(name, (waiting.get(name) ?? 0) + limiter.waiting())
      if (limiter.inflight !== undefined) inflight.set(name, (inflight.get(name) ?? 0) + limiter.inflight())
      const { state } = limiter.health()
      open.set(name, Math.max(open.get(name) ?? 0, state === 'down' ? 1 : 0))
      full.set(name, Math.max(full.get(name) ?? 0, state === 'full' ? 1 : 0))
      stores.add(limiter.store)
      this.#observeMoving(result, limiter)
    }
    for (const [limiter, count] of waiting) result.observe(this.#queueSize, count, { limiter })
    for (const [limiter, count] of inflight) result.observe(this.#inflight, count, { limiter })
    for (const [limiter, isOpen] of open) result.observe(this.#breakerOpen, isOpen, { limiter })
    for (const [limiter, isFull] of full) result.observe(this.#storeFull, isFull, { limiter })
    const held = [...stores].map(liveKeys).filter((count) => count !== undefined)
    if (held.length > 0)
      result.observe(
        this.#liveKeys,
        held.reduce((sum, count) => sum + count),
      )
  }

  /** Limits that follow the load, and those that are held. */
  #observeMoving(result: BatchObservableResult, limiter: ObservedLimiter): void {
    for (const [limit, now] of limitsNow(limiter)) result.observe(this.#limitNow, now, { limiter: limiter.name, limit })
    for (const { limit, inflight, changes } of movingLimits(limiter)) {
      const of = { limiter: limiter.name, limit }
      if (inflight !== undefined) result.observe(this.#limitInflight, inflight, of)
      for (const [reason, count] of changes) result.observe(this.#limitChanges, count, { ...of, reason })
    }
  }
}

/** Attributes are made once for each limiter, because this runs at every decision. */
function recordersOf(meter: Meter): (limiter: string) => Recorder {
  const decisions = meter.createCounter(...named(DECISIONS))
  const charges = meter.createCounter(...named(CHARGES))
  const degraded = meter.createCounter(...named(DEGRADED))
  const duration = meter.createHistogram(...named(DURATION, DURATION_BOUNDS_S))
  const wait = meter.createHistogram(...named(WAIT, WAIT_BOUNDS_S))
  const errors = meter.createCounter(...named(STORE_ERRORS))
  const outages = meter.createCounter(...named(OUTAGES))
  return (limiter) => {
    const of = { limiter }
    const results = {
      allowed: { limiter, result: 'allowed' },
      limited: { limiter, result: 'limited' },
      impossible: { limiter, result: 'impossible' },
    }
    return {
      decided: (result) => decisions.add(1, results[result]),
      charged: (result) => charges.add(1, results[result]),
      degraded: () => degraded.add(1, of),
      took: (seconds) => duration.record(seconds, of),
      waited: (seconds) => wait.record(seconds, of),
      storeFailed: () => errors.add(1, of),
      storeWentDown: () => outages.add(1, of),
    }
  }
}

function named({ name, ...options }: Measure, boundsS?: number[]): [string, object] {
  return [name, boundsS === undefined ? options : { ...options, advice: { explicitBucketBoundaries: boundsS } }]
}
