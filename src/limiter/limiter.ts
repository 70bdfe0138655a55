/// <reference lib="esnext.disposable" preserve="true" />
/**
 * What a user holds: the verbs. On a synchronous store they answer at once, on any other with
 * promises; they are the same functions.
 */

import type { Limit, ReleasedLimit } from '../algorithms/algorithm.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import type { FailurePolicy } from '../stores/remote/fallback.ts'
import type { Health } from '../stores/remote/health.ts'
import type { Scope, Store, SyncStore } from '../stores/store.ts'
import { AsyncLimiter } from './async-limiter.ts'
import type { Decision } from './decision.ts'
import type { Listener } from './events.ts'
import type { Abortable, Cost, Key } from './input.ts'
import { noticeMade } from './misuse.ts'
import { checkOptions, type LimiterOptions, type LimitName, type Limits, permitClassOf, type SameLimits } from './options.ts'
import type { AnyFunction, PaceOptions, Wrapped } from './pacing.ts'
import type { ReleaseOptions, Signal } from './permit.ts'
import type { PermitLimiter } from './permit-limiter.ts'
import type { TakenDecision } from './settling.ts'
import { StoreLimiter } from './store-limiter.ts'

/** A value at once, or a promise of it. */
export type Answer<S, T> = S extends AsyncStore ? Promise<T> : T

/** Options of every verb that decides, besides key and cost. */
export interface VerbOptions<P extends string = string> {
  /** Decide by the numbers of this plan. Permits taken under other plans stay in use. */
  readonly plan?: P | undefined
}

export interface ReserveOptions<P extends string = string> extends VerbOptions<P> {
  /**
   * Take nothing if acting would have to wait longer than this, in milliseconds. Default and most:
   * `maxAheadMs`. 0: only if the caller may act at once.
   */
  readonly maxWaitMs?: number | undefined
}

export interface SettleOptions<Name extends string = string, P extends string = string> extends VerbOptions<P> {
  /**
   * The decision that charged it, or its `atMs` and `parts`: it may have been made by another
   * process and have come as JSON.
   */
  readonly of: TakenDecision<Name>
  /** The cost that the decision charged. Default 1. */
  readonly cost?: Cost<Name> | undefined
}

/** A decision that charged what a call was expected to cost. */
export interface Settleable<Name extends string, S> {
  /**
   * Says what the call really cost, once: what was charged too much is given back, as far as it is
   * still in use; what was too little is charged, also beyond the limit. Does nothing if nothing
   * was charged, or a second time.
   */
  settle(actual: Cost<Name>): Answer<S, void>
  /**
   * `settle(0)`: the call did not happen. Of a reservation before its time the cost comes back,
   * less what was reserved after it. A permit is released along with it, as `ignored`.
   */
  cancel(): Answer<S, void>
}

export interface WaitOptions<P extends string = string> extends VerbOptions<P> {
  /**
   * Give up if the turn cannot come within this time, in milliseconds: at once where that is known.
   * Default: wait as long as it takes.
   */
  readonly timeoutMs?: number | undefined
  /** An `AbortSignal`. Give up when it is aborted: the wait rejects with its reason. */
  readonly signal?: Abortable | undefined
}

export interface AcquireOptions<Name extends string = string, P extends string = string> extends WaitOptions<P> {
  readonly cost?: Cost<Name> | undefined
}

/** The result of a wait: an allowed decision, at its time. */
export type Acquired<Name extends string = string, S = SyncStore> = Extract<Decision<Name>, { readonly allowed: true }> & {
  readonly waitedMs: number
} & Settleable<Name, S>

/**
 * A decision that holds its permits until they are released: `using permit = limiter.consume(key)`.
 * A refused one holds nothing.
 */
export interface Permit<S = SyncStore> {
  /**
   * Gives the place back: at once in memory, else as soon as the store hears of it, and that is
   * tried again until the lease is over. It never fails, and calling it again does nothing.
   */
  release(options?: ReleaseOptions): Answer<S, void>
  /**
   * Whether it is still held, by the clock of now: false once it was released, or its lease may
   * have run out.
   */
  readonly held: boolean
  /**
   * An `AbortSignal`, aborted with `LOST` when the permit is lost: its lease ran out before it
   * could be renewed.
   */
  readonly signal: Signal
  /**
   * Increases with each permit of a key: for writes that shall be refused once a later holder has
   * written. -1 where nothing was taken.
   */
  readonly token: number
  /** `release()`, for `using`. */
  [Symbol.dispose](): void
  /** `release()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** A limiter with a limit that is in use until it is released: its decisions are permits. */
export interface HoldingLimiter<L extends Limits = Limits, S extends Store = SyncStore, P extends string = string>
  extends Omit<Limiter<L, S, P>, 'pace'> {
  /** Takes if allowed, and tells all about it. The permits are held until they are released. */
  consume(
    key: Key<LimitName<L>>,
    cost?: Cost<LimitName<L>>,
    options?: VerbOptions<P>,
  ): Answer<S, Decision<LimitName<L>> & Settleable<LimitName<L>, S> & Permit<S>>
  /** The same: such permits cannot be booked ahead. */
  reserve(
    key: Key<LimitName<L>>,
    cost?: Cost<LimitName<L>>,
    options?: ReserveOptions<P>,
  ): Answer<S, Decision<LimitName<L>> & Settleable<LimitName<L>, S> & Permit<S>>
  /**
   * Waits its turn, first come, first served, and takes. Rejects with `TIMEOUT`, `IMPOSSIBLE`,
   * `QUEUE_FULL`, or the signal's reason.
   */
  acquire(key: Key<LimitName<L>>, options?: AcquireOptions<LimitName<L>, P>): Promise<Acquired<LimitName<L>, S> & Permit<S>>
  /** Waits its turn, runs a function, and releases when its promise has settled. */
  run<T>(
    key: Key<LimitName<L>>,
    fn: (permit: Acquired<LimitName<L>, S> & Permit<S>) => T,
    options?: AcquireOptions<LimitName<L>, P>,
  ): Promise<Awaited<T>>
  /**
   * How many permits this limiter holds in this process: for a key, or at all. `peek` counts those
   * of all processes.
   */
  inflight(key?: Key<LimitName<L>>): number
}

/** Whether one of the limits is in use until it is released. */
export type Holds<L extends Limits> = L extends Limit
  ? IsReleased<L>
  : true extends { [Name in keyof L]: IsReleased<L[Name]> }[keyof L]
    ? true
    : false
type IsReleased<T> = T extends ReleasedLimit ? true : false

export interface Limiter<L extends Limits = Limits, S extends Store = SyncStore, P extends string = string> {
  /** The name under which the store keeps its states. */
  readonly name: string
  /** Where its states live. */
  readonly store: Store
  /** The policy for a store that fails: undefined if none was given, which is `'throw'`. */
  readonly onStoreError: FailurePolicy | undefined
  /** Takes if allowed, and tells all about it. */
  consume(
    key: Key<LimitName<L>>,
    cost?: Cost<LimitName<L>>,
    options?: VerbOptions<P>,
  ): Answer<S, Decision<LimitName<L>> & Settleable<LimitName<L>, S>>
  /** Answers as `consume` would, and takes nothing: `remaining` is the number before the call. */
  peek(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: VerbOptions<P>): Answer<S, Decision<LimitName<L>>>
  /**
   * Takes, maybe ahead of time: act after `delayMs`. Windows and logs cannot be booked ahead: there
   * it is `consume`.
   */
  reserve(
    key: Key<LimitName<L>>,
    cost?: Cost<LimitName<L>>,
    options?: ReserveOptions<P>,
  ): Answer<S, Decision<LimitName<L>> & Settleable<LimitName<L>, S>>
  /**
   * Waits its turn, first come, first served, and takes. Rejects with `TIMEOUT`, `IMPOSSIBLE`,
   * `QUEUE_FULL`, or the signal's reason.
   */
  acquire(key: Key<LimitName<L>>, options?: AcquireOptions<LimitName<L>, P>): Promise<Acquired<LimitName<L>, S>>
  /**
   * A function that waits its turn before it runs. Key and cost may be found from its arguments.
   */
  wrap<Fn extends AnyFunction>(
    key: Key<LimitName<L>> | ((...args: Parameters<Fn>) => Key<LimitName<L>>),
    fn: Fn,
    options?: PaceOptions<LimitName<L>, P, Parameters<Fn>>,
  ): Wrapped<Fn>
  /**
   * The same items at the limiter's pace: `for await (const url of limiter.pace('crawler', urls))`.
   */
  pace<Item>(
    key: Key<LimitName<L>> | ((item: Item) => Key<LimitName<L>>),
    source: Iterable<Item> | AsyncIterable<Item>,
    options?: PaceOptions<LimitName<L>, P, [item: Item]>,
  ): AsyncGenerator<Item, void, undefined>
  /**
   * The limits with their numbers, or those of a plan: the same object until `update` changes them.
   */
  scope(plan?: P): Scope
  /** How many wait: for a key, or at all. */
  waiting(key?: Key<LimitName<L>>): number
  /**
   * Writes a cost down whether it fits or not. Permits in use beyond the limit are debt: the
   * decision is `limited` then, and so is every call until enough of it has drained.
   */
  charge(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: VerbOptions<P>): Answer<S, Decision<LimitName<L>>>
  /**
   * Corrects the cost of a decision that another process made, or of which only the figures are
   * left: see `settle` of a decision.
   */
  settle(key: Key<LimitName<L>>, actual: Cost<LimitName<L>>, options: SettleOptions<LimitName<L>, P>): Answer<S, void>
  /**
   * Gives permits back as of now, never above idle: for what a customer is owed. A call is given
   * back by its decision.
   */
  refund(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: VerbOptions<P>): Answer<S, void>
  /** Forgets the key. */
  reset(key: Key<LimitName<L>>): Answer<S, void>
  /** How the store is: up, down, or full. */
  health(): Health
  /**
   * Tells a listener of every decision and failure from now on, as `onDecision` and `onHealth` do;
   * returns what ends it.
   */
  listen(listener: Listener): () => void
  /**
   * Changes the numbers of the live limiter, and of its plans if given; what was used stays used.
   */
  update(limits: SameLimits<L>, plans?: Readonly<Record<P, SameLimits<L>>>): void
  /**
   * Ends the limiter: callers that wait are rejected with `CLOSED`, as is every verb from now on.
   * The store, and the client it may use, stay open.
   */
  close(): void
  [Symbol.dispose](): void
}

/** A limiter on a store that answers at once. */
export interface SyncLimiter<L extends Limits = Limits, P extends string = string> extends Limiter<L, SyncStore, P> {
  /** Takes if allowed: `consume` that answers only whether it was. */
  tryAcquire(key: Key<LimitName<L>>, cost?: Cost<LimitName<L>>, options?: VerbOptions<P>): boolean
}

export function createLimiter<const L extends Limits, S extends Store = SyncStore, P extends string = never>(
  limits: L & (Holds<L> extends true ? unknown : never),
  options?: LimiterOptions<L, S, P>,
): HoldingLimiter<L, S, P>
export function createLimiter<const L extends Limits, S extends SyncStore = SyncStore, P extends string = never>(
  limits: L,
  options?: LimiterOptions<L, S, P>,
): SyncLimiter<L, P>
export function createLimiter<const L extends Limits, S extends Store = SyncStore, P extends string = never>(
  limits: L,
  options?: LimiterOptions<L, S, P>,
): Limiter<L, S, P>
export function createLimiter<const L extends Limits, S extends Store = SyncStore, P extends string = never>(
  limits: L,
  options: LimiterOptions<L, S, P> = {},
): unknown {
  const limiter = opened(limits, options)
  noticeMade(limiter as StoreLimiter<L, S, P>, options)
  return limiter
}

/** The limiter, whatever else there is on its store. */
export function opened<L extends Limits, S extends Store, P extends string>(limits: L, options: LimiterOptions<L, S, P>): unknown {
  checkOptions(options)
  const Permitting = permitClassOf<typeof PermitLimiter>(limits)
  if (Permitting !== undefined) return new Permitting<L, S, P>(limits, options)
  const isAsync = options.store?.mode === 'async'
  return isAsync ? new AsyncLimiter<L, P>(limits, options as never) : new StoreLimiter<L, S, P>(limits, options)
}
