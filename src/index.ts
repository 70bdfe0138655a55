export type { Limit, StateFields } from './algorithms/algorithm.ts'
export * from './algorithms/all.ts'
export type { Outcome } from './algorithms/decide.ts'
export type { Duration, Rate } from './algorithms/rate.ts'
export { type Clock, type StopTimer, systemClock } from './clock/clock.ts'
export { turnClock } from './clock/turn-clock.ts'
export { SluiceError, type SluiceErrorCode, type SluiceErrorOptions } from './errors.ts'
export { type AcquireSyncOptions, acquireSync } from './limiter/acquire-sync.ts'
// In place of the one of algorithms/all.ts: it brings the limiter that makes permits.
export { concurrency } from './limiter/concurrency.ts'
export type { Decision, DecisionPart, RefusalReason } from './limiter/decision.ts'
export type { DecisionEvent, FailureEvent, Listener, ReleaseEvent, ReleaseOutcome } from './limiter/events.ts'
export type { Abortable } from './limiter/input.ts'
export {
  type Acquired,
  type AcquireOptions,
  createLimiter,
  type HoldingLimiter,
  type Limiter,
  type Permit,
  type ReserveOptions,
  type Settleable,
  type SettleOptions,
  type SyncLimiter,
  type VerbOptions,
  type WaitOptions,
} from './limiter/limiter.ts'
export type { LimiterOptions, LimitName, Limits } from './limiter/options.ts'
export type { PaceOptions, Wrapped } from './limiter/pacing.ts'
export type { ReleaseOptions } from './limiter/permit.ts'
export type { TakenDecision } from './limiter/settling.ts'
export { WaitError } from './limiter/wait-error.ts'
export { type HeldLimiter, type MemoryStore, type MemoryStoreOptions, memoryStore } from './stores/memory/memory-store.ts'
export type { AsyncStore } from './stores/remote/async-store.ts'
export type { FailurePolicy } from './stores/remote/fallback.ts'
export type { Health, HealthEvent } from './stores/remote/health.ts'
export type { OpenStates, Part, Scope, Step, Store, StoreDriver, SyncStore } from './stores/store.ts'
