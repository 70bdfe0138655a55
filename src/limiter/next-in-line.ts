/**
 * The callers that may be next when a permit is free: those that wait at this limiter, and at
 * others of the same name and memory.
 */
import type { WaitQueues } from '../stores/queue/wait-queues.ts'
import type { Store } from '../stores/store.ts'
import type { Key } from './input.ts'
import type { Plans } from './plans.ts'

/**
 * The limiters at which callers wait, by the memory they were given: another limiter of the same
 * name may hold what they wait for.
 */
const waitingAtStores = new WeakMap<Store, Set<NextInLine>>()

function waitingAtStore(store: Store): Set<NextInLine> {
  const known = waitingAtStores.get(store) ?? new Set()
  waitingAtStores.set(store, known)
  return known
}

export class NextInLine {
  readonly #name: string
  readonly #queues: WaitQueues
  readonly #plans: Plans<string>
  readonly #isShared: boolean
  /** Undefined where no other limiter has the same memory. */
  readonly #atStore: Set<NextInLine> | undefined
  /** Whether limits have had keys of their own: then a release may concern any queue. */
  #hasKeysByName = false

  /** `isGiven`: whether the caller passed the store, and may pass it to another limiter. */
  constructor(name: string, queues: WaitQueues, plans: Plans<string>, store: Store, isGiven: boolean) {
    this.#name = name
    this.#queues = queues
    this.#plans = plans
    this.#isShared = store.shared
    this.#atStore = isGiven && !store.shared ? waitingAtStore(store) : undefined
  }

  /** Told of every key that is taken. */
  uses(key: Key<string>): void {
    if (typeof key === 'object') this.#hasKeysByName = true
  }

  waits(key: Key<string>): void {
    this.uses(key)
    this.#atStore?.add(this)
  }

  /**
   * However a wait ends, its place in line does too: those behind it in other queues, of other
   * plans or keys by name, are next.
   */
  waitEnded(key: Key<string>): void {
    if (this.#queues.isEmpty) this.#atStore?.delete(this)
    this.tellOthers(key)
  }

  /** Something of a key is free: those that wait for it try again. */
  tell(key: Key<string>): void {
    if (!this.#queues.isEmpty) this.#tellOwn(key)
    if (this.#atStore !== undefined) this.#tellOtherLimiters(this.#atStore)
  }

  /** The same for those who wait in other queues than the one that has seen it. */
  tellOthers(key: Key<string>): void {
    if (this.#hasOtherQueues) this.tell(key)
  }

  #tellOwn(key: Key<string>): void {
    if (!this.#hasKeysByName && typeof key === 'string') this.#queues.tryAgain(key)
    else for (const queue of this.#queues.all()) queue.tryAgain()
  }

  /** A limiter that is made again waits for what the one before it holds. */
  #tellOtherLimiters(atStore: ReadonlySet<NextInLine>): void {
    for (const other of atStore) {
      if (other.#name === this.#name && other !== this) for (const queue of other.#queues.all()) queue.tryAgain()
    }
  }

  /**
   * Whether calls of one key may wait in several queues. Where others share the store, all of them
   * look again and again.
   */
  get #hasOtherQueues(): boolean {
    const { areSeveral, base } = this.#plans
    return !this.#isShared && (areSeveral || this.#atStore !== undefined || base.scope.limits.length > 1)
  }
}
