/**
 * Which limiter decides about a request: one for all, or one for the numbers that the request has.
 */
import { SluiceError, shown } from '../errors.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Cost, Key } from '../limiter/input.ts'
import { createLimiter, opened } from '../limiter/limiter.ts'
import { noticeMemory } from '../limiter/misuse.ts'
import type { LimiterOptions, Limits } from '../limiter/options.ts'
import { memoryStore } from '../stores/memory/memory-store.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { Scope, Store } from '../stores/store.ts'
import type { HttpOptions } from './options.ts'
import { checkPolicy, withoutDelays } from './options-check.ts'
import { type MaybePromise, whenKnown } from './request.ts'
import type { HttpDecision } from './settling.ts'

/** The parts of a limiter that a gate needs, whatever its limits and its store. */
export interface AnyLimiter {
  readonly name: string
  readonly store: Store
  readonly onStoreError: FailurePolicy | undefined
  scope(plan?: string): Scope
  consume(key: AnyKey, cost?: AnyCost, options?: { plan: string }): MaybePromise<HttpDecision>
  peek(key: AnyKey, cost: AnyCost, options?: { plan: string }): MaybePromise<Decision>
  acquire(key: AnyKey, options: object): Promise<Decision>
  waiting(key?: AnyKey): number
  /** Only of limits that are in use until they are released. */
  inflight?(key?: AnyKey): number
  close(): void
}

export type AnyKey = Key<string>
export type AnyCost = Cost<string>

/** The limiter of a request. */
export type LimiterSource<Native> = AnyLimiter | ((native: Native) => MaybePromise<AnyLimiter>)

/**
 * How many sets of numbers have a limiter ready. One that had to go is made again when it is
 * needed: the states are the store's.
 */
const MAX_LIMITERS = 1_000

let unnamed = 0

export function limiterSource<Native>({ limit, limiter, limiterOptions }: HttpOptions<Native>): LimiterSource<Native> {
  if (limiter !== undefined) {
    checkPolicy(limiter as unknown as AnyLimiter, 'createLimiter(limit, { ... })')
    return limiter as unknown as AnyLimiter
  }
  checkPolicy(limiterOptions ?? {}, 'limiterOptions: { ... }')
  if (typeof limit !== 'function') return createLimiter(limit as Limits, limiterOptions as LimiterOptions) as unknown as AnyLimiter
  return byNumbers(limit as (native: Native) => MaybePromise<Limits>, limiterOptions ?? {})
}

/** Checks its limiters, each when it is known. */
export function checkingDelays<Native>(source: LimiterSource<Native>, maxWaitMs: number): LimiterSource<Native> {
  if (maxWaitMs > 0) return source
  if (typeof source === 'function') return (native) => whenKnown(source(native), withoutDelays)
  return withoutDelays(source)
}

/** All of one name in one store: a key whose numbers change keeps what it has used. */
function byNumbers<Native>(
  limitOf: (native: Native) => MaybePromise<Limits>,
  options: object,
): (native: Native) => MaybePromise<AnyLimiter> {
  unnamed += 1
  const shared = { name: `by-request-${unnamed}`, store: memoryStore(), ...options }
  noticeMemory(shared.store, options)
  const ready = new Map<string, AnyLimiter>()
  const limiterOf = (limits: Limits): AnyLimiter => {
    // A limit as JSON is its type and its numbers.
    const numbers = JSON.stringify(limits)
    if (typeof limits !== 'object' || limits === null) throw noLimits(limits)
    const limiter = ready.get(numbers) ?? (opened(limits, shared) as AnyLimiter)
    if (ready.size >= MAX_LIMITERS) makeRoom(ready, numbers)
    ready.set(numbers, limiter)
    return limiter
  }
  return (native) => whenKnown(limitOf(native), limiterOf)
}

function noLimits(returned: unknown): SluiceError {
  return new SluiceError('CONFIG', `limit returned ${shown(returned)}: it must return a limit such as gcra({ ... }), or several by name`)
}

/**
 * Marks the limiter of these numbers as used last, and drops the least recently used one, unless
 * callers wait at it or hold its permits.
 */
function makeRoom(ready: Map<string, AnyLimiter>, numbers: string): void {
  if (ready.delete(numbers)) return
  for (const [oldest, limiter] of ready) {
    if (limiter.waiting() > 0 || (limiter.inflight?.() ?? 0) > 0) continue
    ready.delete(oldest)
    limiter.close()
    return
  }
}
