/**
 * The measures of limiters, for every listener: OpenTelemetry here, Prometheus by the service.
 * Names are those of OpenTelemetry; what its collector makes of them for Prometheus (dots to `_`,
 * the unit, `_total`) is what the service calls them, so one dashboard shows both. Nothing is ever
 * measured by key: there are as many keys as there are callers.
 */
import type { Outcome } from '../algorithms/decide.ts'
import { SluiceError } from '../errors.ts'
import type { Listener } from '../limiter/events.ts'
import { movingLimits } from '../limiter/moving.ts'
import { WaitError } from '../limiter/wait-error.ts'
import type { Scope, Store } from '../stores/store.ts'

export interface Measure {
  readonly name: string
  /** In braces: what is counted. */
  readonly unit: string
  readonly description: string
}

export const DECISIONS: Measure = { name: 'sluice.decisions', unit: '{decision}', description: 'Decisions by limiter and result.' }
export const CHARGES: Measure = {
  name: 'sluice.charges',
  unit: '{charge}',
  description: 'Charges by limiter and result: allowed is within the limits, limited is debt, which was charged all the same.',
}
export const DEGRADED: Measure = {
  name: 'sluice.degraded_decisions',
  unit: '{decision}',
  description: 'Decisions by the failure policy, because the store did not answer.',
}
export const DURATION: Measure = {
  name: 'sluice.decision.duration',
  unit: 's',
  description: 'How long decisions took, without calls that wait (acquire).',
}
export const WAIT: Measure = { name: 'sluice.wait', unit: 's', description: 'How long calls of acquire waited for their turn.' }
export const STORE_ERRORS: Measure = {
  name: 'sluice.store.errors',
  unit: '{error}',
  description: 'Calls that failed because the store did.',
}
export const OUTAGES: Measure = {
  name: 'sluice.store.outages',
  unit: '{outage}',
  description: 'How often the breaker of a limiter opened.',
}
export const QUEUE_SIZE: Measure = { name: 'sluice.queue.size', unit: '{waiter}', description: 'How many wait for their turn.' }
export const INFLIGHT: Measure = {
  name: 'sluice.inflight',
  unit: '{permit}',
  description: 'Permits that are held, of those that this process has lent.',
}
export const BREAKER_OPEN: Measure = {
  name: 'sluice.breaker.open',
  unit: '',
  description: '1 while the store is down and the failure policy decides.',
}
export const STORE_FULL: Measure = {
  name: 'sluice.store.full',
  unit: '',
  description: '1 while the store had no room for a new key within the last minute or two: it refused it, or let it pass uncounted.',
}
export const LIVE_KEYS: Measure = {
  name: 'sluice.live_keys',
  unit: '{key}',
  description: 'Keys held in the memory of this process, idle ones that have not left yet included.',
}

/**
 * Of limits that follow the load; the first also of limits that are held until they are released.
 */
export const LIMIT_NOW: Measure = {
  name: 'sluice.limit.now',
  unit: '',
  description: 'What a limit is now that follows the load, or is held until it is released: calls in flight, or permits per second.',
}
export const LIMIT_INFLIGHT: Measure = {
  name: 'sluice.limit.inflight',
  unit: '{call}',
  description: 'The most calls in flight in the last window of a governed limit.',
}
export const LIMIT_CHANGES: Measure = {
  name: 'sluice.limit.changes',
  unit: '{change}',
  description: 'Changes of limits that follow the load, by reason.',
}

export const DURATION_BOUNDS_S = [0.00001, 0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1]
export const WAIT_BOUNDS_S = [0.001, 0.01, 0.1, 0.5, 1, 5, 10, 30, 60]

/** The counters and histograms of one limiter. */
export interface Recorder {
  decided(result: Outcome): void
  /** Never `impossible`. */
  charged(result: Outcome): void
  degraded(): void
  took(seconds: number): void
  waited(seconds: number): void
  storeFailed(): void
  storeWentDown(): void
}

/** The counters for the events of a limiter. */
export function recording(recorder: Recorder): Listener {
  return {
    onDecision({ verb, decision, tookMs }) {
      // A charge has happened already: a debt is no refusal.
      if (verb === 'charge') recorder.charged(decision.outcome)
      else recorder.decided(decision.outcome)
      if (decision.degraded) recorder.degraded()
      if (verb !== 'acquire') recorder.took(tookMs / 1000)
      else if (decision.allowed) recorder.waited(tookMs / 1000)
    },
    onFailure({ error }) {
      // A full queue refuses without a decision. A caller that left was neither refused nor failed.
      if (error instanceof WaitError) recorder.decided('limited')
      else if (error instanceof SluiceError && error.code === 'STORE') recorder.storeFailed()
    },
    onHealth({ state }) {
      if (state === 'down') recorder.storeWentDown()
    },
  }
}

/** What limits are now that are held until they are released, or that follow the load, by name. */
export function limitsNow(limiter: { scope?(): Scope }): Map<string, number> {
  const figures = new Map<string, number>()
  for (const { name, rule } of limiter.scope?.().limits ?? []) if (rule.algorithm.untilReleased) figures.set(name, rule.capacity)
  for (const { limit, now } of movingLimits(limiter)) figures.set(limit, now)
  return figures
}

/** How many keys a store holds; undefined where they are not in the memory of this process. */
export function liveKeys(store: Store): number | undefined {
  return 'size' in store ? (store as { readonly size: number }).size : undefined
}
