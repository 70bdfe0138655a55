/**
 * The contract of a store: state lives there, and one step on it is atomic. The layers above decide
 * about failures, waiting and which limits belong together. The arithmetic of a step is `decide`
 * (or its Lua twin), which every store must use.
 *
 * A store keeps, for each (limiter, limit name, key), one state and the numbers it was written
 * under. For one step it must
 *  1. load the states of all parts,
 *  2. run `decide` on them with one reading of the time, which is no older than the states,
 *  3. write every state that changed, and nothing else, such that no other step reads or writes in
 *     between.
 * Then the laws hold on it, because they hold for `decide`. `storeCases` in `sluice/testing` checks
 * a store from the outside.
 *
 * - A key without a state is fresh; `decide` never creates one by asking, by refusing or by giving
 *   back.
 * - A state may be forgotten once it is idle (`resetUs` has passed), never before: forgetting frees
 *   memory and changes no answer.
 * - Parts of one step that share a key are always atomic together. Parts with different keys are,
 *   unless the store's page says otherwise.
 */
import type { Verdict } from '../algorithms/decide.ts'
import type { Clock } from '../clock/clock.ts'
import type { OnFull } from './full.ts'
import type { QueueClass } from './queue/room.ts'
import type { AsyncStore } from './remote/async-store.ts'
import type { Part, Scope, Step } from './step.ts'

export type { Part, Scope, Step } from './step.ts'

/** A store that answers at once. */
export interface SyncStore {
  readonly mode: 'sync'
  /**
   * Whether others than the limiters of this thread may hold the same states. Then limiters must be
   * named.
   */
  readonly shared: boolean
  /**
   * The store's own time in whole microseconds, where it has one: limiters go by it unless they are
   * given a clock.
   */
  readonly nowUs?: (() => number) | undefined
  /**
   * What a limiter goes by in place of its clock, where others that share the store have clocks of
   * their own. `of`: the clock as its user has it, the same for all limiters that have it.
   */
  commonClock?(clock: Clock, of: object): Clock
  /**
   * How callers wait in line at it: `SharedQueue`, if it is shared. Without it they wait as if
   * nobody else used it.
   */
  readonly queue?: QueueClass | undefined
  /**
   * Opens the states of a limiter, for each plan and update anew. Throws what its first step would.
   * `nowUs` reads the limiter's clock. `onFull` is told of every new key for which there was no
   * room.
   */
  open(scope: Scope, nowUs: () => number, onFull?: OnFull): OpenStates
}

/** The states of one limiter under one set of numbers. */
export interface OpenStates {
  /**
   * Whether it looks for lone surrogates in the keys that it does not hold, as memory does.
   * Otherwise the limiter does so, in every key.
   */
  readonly checksKeys?: boolean
  /**
   * Decides a step. Tells whether every limit agreed. The time is read here, where other threads
   * write not before the states were seen: an earlier reading may be older than what is seen, and a
   * state from the future looks like a clock that stepped back. `isTold`: whether the verdicts of
   * the parts are wanted. Without it they are not filled in.
   */
  apply(step: Step, isTold: boolean): boolean
  /**
   * Frees data that was kept for the limiter alone: it is closed, or has other numbers. States are
   * kept until they are idle: a limiter that is made again under the name finds them.
   */
  close(): void
}

/**
 * The part of a store that answers later which differs from store to store. `asyncStore(driver)` is
 * the store, and all else stands above the driver, written once: the decisions of one turn of the
 * event loop are one call, refusals that still hold are repeated without one, and timeouts, circuit
 * breakers and fallbacks see to outages.
 */
export interface StoreDriver {
  /** Whether others than the limiters of this process may hold the same states. */
  readonly shared: boolean
  /**
   * Decides steps, which may be of several limiters, one after the other and each by itself, and
   * writes the verdicts into their parts, as `decide` does. By the store's own clock, or by `nowUs`
   * of a step that has it. Resolves with the failures of single steps at their places, or with
   * nothing. Rejects if the store failed. A failure is anything but undefined; a `SluiceError` with
   * `isolated` says that only this decision failed and the store is well.
   */
  // biome-ignore lint/suspicious/noConfusingVoidType: an async function that returns nothing is a driver too
  apply(steps: readonly Step[]): Promise<Failures | void>
  /**
   * Steps of different groups cannot be decided in one call, as keys in different slots of a
   * cluster. Undefined: all steps can.
   */
  groupOf?(scope: Scope, part: Part): Group
  /** Called around the `apply` of several batches, so that they are written together. */
  together?(applyAll: () => void): void
  /**
   * The name of the part of the store that holds this, where parts fail one by one, as the nodes of
   * a cluster do; undefined where that is not known. Each part has a circuit breaker of its own.
   * Only asked while some part is down.
   */
  shardOf?(scope: Scope, part: Part): string | undefined
  /**
   * Changes nothing, and rejects as long as taking this step would fail; its scope may have been
   * released. Without it the breaker probes with a question, which a read-only replica would also
   * answer.
   */
  probe?(step: Step): Promise<void>
  /**
   * Called for every limiter, plan and update before its first step: throws the error that the step
   * would.
   */
  open?(scope: Scope): void
  /**
   * Called once for everything that was opened, when its limiter is closed or has other numbers.
   */
  release?(scope: Scope): void
}

export type Failures = readonly unknown[]
export type Group = string | number | undefined

/** The stores that a limiter takes. */
export type Store = SyncStore | AsyncStore

/** Whether every limit agreed: then all were charged, or would be. */
export function allAllowed(verdicts: readonly Verdict[]): boolean {
  for (const { outcome } of verdicts) if (outcome !== 'allowed') return false
  return true
}
