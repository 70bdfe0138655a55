/**
 * State in memory that worker threads share: an immutable record per key and one atomic reference
 * to it.
 * A step (states.ts) reads the record, decides on a private copy, writes that to a spare record and
 * swaps the reference. No locks: a thread that dies anywhere holds no other up.
 */
import type { StateFields } from '../../algorithms/algorithm.ts'
import type { Clock } from '../../clock/clock.ts'
import { systemClock } from '../../clock/clock.ts'
import { FullStore, type OnFull } from '../full.ts'
import type { QueueClass } from '../queue/room.ts'
import { SharedQueue } from '../queue/shared-queue.ts'
import { checkLeases } from '../step.ts'
import type { OpenStates, Scope, SyncStore } from '../store.ts'
import { Catalog } from './catalog.ts'
import { commonTime, timeFrom } from './clock.ts'
import { fingerprint } from './fingerprint.ts'
import { releaseHeld } from './held.ts'
import { Journals } from './journals.ts'
import { HAS_WARNED, type SharedHandle, type SharedMemory } from './layout.ts'
import { memoryFrom, type SharedStoreOptions } from './options.ts'
import { SharedTable } from './shared-table.ts'
import { type SharedParts, type SharedStates, sharedStates } from './states.ts'
import { otherThread, spin, type WatchedThread } from './thread.ts'

export interface SharedStore extends SyncStore {
  /** Give this to the other threads: `sharedStore(handle)` there is the same store. */
  readonly handle: SharedHandle
  /** How often this thread lost a race and started again. */
  readonly collisions: number
  /**
   * How many keys are held, idle ones that nobody needed the room of included. Walks over the whole
   * table.
   */
  readonly size: number
  /** How many bytes are shared. They are all there from the beginning. */
  readonly bytes: number
  /**
   * The state held for a key of a limiter of this thread by the names of its numbers, or undefined.
   * For tests and for looking.
   */
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
  /**
   * Takes back what a thread held, as soon as it has ended: the permits that it did not release and
   * its places in line, and what it had in hand if it was terminated in the middle of a step. For
   * threads that this one started: `store.watch(new Worker(...))`. Returns the worker. In Node
   * only.
   */
  watch<Thread extends WatchedThread>(worker: Thread): Thread
  /**
   * The same for a thread of which is known that it has ended, by its `threadId`. One that goes on
   * would spoil what others hold.
   */
  ended(threadId: number): void
}

/** In one thread with options; in the others with the `handle` of that store. */
export function sharedStore(from: SharedStoreOptions | SharedHandle): SharedStore {
  return new Shared(memoryFrom(from))
}

class Shared implements SharedStore {
  readonly mode = 'sync'
  readonly shared = true
  readonly queue: QueueClass = SharedQueue
  readonly handle: SharedHandle
  readonly nowUs: () => number
  collisions = 0
  readonly #memory: SharedMemory
  readonly #journals: Journals
  readonly #table: SharedTable
  readonly #parts: SharedParts
  readonly #catalog: Catalog
  readonly #full: FullStore
  /** The clocks that limiters of this thread were given, brought in line with those of others. */
  readonly #clocks = new WeakMap<object, Clock>()
  /** Of the limiters of this thread, by name: what was opened last. */
  readonly #opened = new Map<string, SharedStates>()

  constructor(memory: SharedMemory) {
    this.handle = memory.handle
    const oneForAll = timeFrom(memory.originUs)
    this.nowUs = commonTime(memory, oneForAll ?? systemClock.nowUs, oneForAll !== undefined)
    this.#memory = memory
    this.#journals = new Journals(memory)
    this.#table = new SharedTable(memory, this.#journals)
    this.#catalog = new Catalog(memory, this.#journals.thread)
    const { recordWords, allowWhenFull, maxKeys } = memory
    this.#full = new FullStore(`sharedStore({ maxKeys: ${maxKeys} })`, !allowWhenFull)
    this.#parts = { table: this.#table, journals: this.#journals, recordWords, allowWhenFull, onLost: (lost) => this.#yield(lost) }
  }

  get size(): number {
    return this.#table.size()
  }

  get bytes(): number {
    return this.#memory.ints.byteLength
  }

  commonClock(clock: Clock, of: object): Clock {
    const known = this.#clocks.get(of)
    if (known !== undefined) return known
    const setTimer: Clock['setTimer'] = (fn, us, keepAlive) => clock.setTimer(fn, us, keepAlive)
    const common = { nowUs: commonTime(this.#memory, () => clock.nowUs(), false), setTimer }
    this.#clocks.set(of, common)
    return common
  }

  /** Refuses what cannot be decided here, before anything is. */
  open(scope: Scope, nowUs: () => number, onFull?: OnFull): OpenStates {
    // Elsewhere threads have no names, so nobody can tell whose places are those of a thread that
    // has ended.
    if (this.#journals.thread === 0) checkLeases(scope, 'in shared memory outside of Node')
    const memory = this.#memory
    const seeds = new Int32Array(2)
    fingerprint(scope.name, memory.seedLow, memory.seedHigh, seeds)
    const [seedLow, seedHigh] = seeds as unknown as [number, number]
    const number = this.#catalog.open(scope, (numbers) => this.#table.dropIdle(numbers, nowUs()))
    const keyScope = { scope: number, seedLow, seedHigh }
    const states = sharedStates(this.#parts, scope, keyScope, {
      nowUs,
      onFull: () => this.#full.tell(onFull, scope.name, () => Atomics.compareExchange(memory.ints, HAS_WARNED, 0, 1) === 0),
      onClose: () => {
        this.#catalog.close(scope.name)
        if (this.#opened.get(scope.name) === states) this.#opened.delete(scope.name)
      },
      openAgain: () => this.open(scope, nowUs, onFull),
    })
    this.#opened.set(scope.name, states)
    return states
  }

  watch<Thread extends WatchedThread>(worker: Thread): Thread {
    // Read now: once it has ended it has no id.
    const thread = otherThread(worker.threadId)
    worker.once('exit', () => this.#free(thread))
    return worker
  }

  ended(threadId: number): void {
    this.#free(otherThread(threadId))
  }

  inspect(limiter: string, limit: string, key: string): StateFields | undefined {
    return this.#opened.get(limiter)?.inspect(limit, key)
  }

  #free(thread: number): void {
    this.#journals.free(thread)
    this.#catalog.free(thread)
    this.#table.searchAgain()
    releaseHeld(this.#memory, this.#table.chain, thread, (limiter) => this.#opened.get(limiter)?.nowUs() ?? this.nowUs())
  }

  #yield(lost: number): void {
    this.collisions += 1
    spin(lost)
  }
}
