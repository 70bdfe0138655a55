/**
 * State in memory that worker threads share: an immutable record per key and one atomic reference to it (table.ts).
 * A step reads the record, decides on a private copy, writes that to a spare record and compares and swaps the key's head.
 * Whoever loses the race starts again from what the winner wrote. No locks: a thread that dies anywhere holds nobody up.
 */
import type { StateFields } from '../../algorithms/algorithm.ts'
import { systemClock } from '../../clock/clock.ts'
import type { QueueClass } from '../queue/room.ts'
import { SharedQueue } from '../queue/shared-queue.ts'
import type { OpenStates, Scope, SyncStore } from '../store.ts'
import { scopeNumber } from './catalog.ts'
import { Cells } from './cells.ts'
import { fingerprint } from './fingerprint.ts'
import type { SharedHandle, SharedMemory } from './memory.ts'
import { memoryFrom, type SharedStoreOptions } from './options.ts'
import { RecordShape } from './record-shape.ts'
import { type SharedParts, SharedStates } from './shared-states.ts'
import { timeFrom } from './shared-time.ts'
import { spin } from './spin.ts'
import { Table } from './table.ts'
import { otherThread, type WatchedThread } from './thread-number.ts'

export interface SharedStore extends SyncStore {
  /** Give this to the other threads: `sharedStore(handle)` there is the same store. */
  readonly handle: SharedHandle
  /** How often this thread lost a race and started again. */
  readonly collisions: number
  /** How many keys are held, idle ones that nobody needed the room of included. Walks over the whole table. */
  readonly size: number
  /** How many bytes are shared. They are all there from the beginning. */
  readonly bytes: number
  /** The state held for a key of a limiter of this thread by the names of its numbers, or undefined. For tests and for looking. */
  inspect(limiter: string, limit: string, key: string): StateFields | undefined
  /**
   * Takes back what a thread held in the middle of a step, if it is terminated there, as soon as it has ended. For threads that this one started:
   * `store.watch(new Worker(...))`. Returns the worker. In Node only.
   */
  watch<Thread extends WatchedThread>(worker: Thread): Thread
  /** The same for a thread of which is known that it has ended, by its `threadId`. One that goes on would spoil what others hold. */
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
  readonly #cells: Cells
  readonly #table: Table
  readonly #parts: SharedParts
  /** Of the limiters of this thread, by name: those that were opened last. */
  readonly #opened = new Map<string, { readonly scope: Scope; readonly states: SharedStates }>()

  constructor(memory: SharedMemory) {
    this.handle = memory.handle
    this.nowUs = timeFrom(memory.originUs) ?? systemClock.nowUs
    this.#memory = memory
    this.#cells = new Cells(memory)
    this.#table = new Table(memory, this.#cells)
    const { recordWords, allowWhenFull } = memory
    this.#parts = { table: this.#table, cells: this.#cells, recordWords, allowWhenFull, onLost: (lost) => this.#yield(lost) }
  }

  get size(): number {
    return this.#table.size()
  }

  get bytes(): number {
    return this.#memory.ints.byteLength
  }

  /** Refuses what cannot be decided here, before anything is. */
  open(scope: Scope, nowUs: () => number): OpenStates {
    const memory = this.#memory
    // The shape first: it may refuse, and what was entered in the catalog stays there.
    const shape = new RecordShape(scope, memory.recordWords)
    const seeds = new Int32Array(2)
    fingerprint(scope.name, memory.seedLow, memory.seedHigh, seeds)
    const [seedLow, seedHigh] = seeds as unknown as [number, number]
    const address = { scope: scopeNumber(memory, scope), seedLow, seedHigh }
    const states: SharedStates = new SharedStates(this.#parts, shape, address, nowUs, () => {
      if (this.#opened.get(scope.name)?.states === states) this.#opened.delete(scope.name)
    })
    this.#opened.set(scope.name, { scope, states })
    return states
  }

  watch<Thread extends WatchedThread>(worker: Thread): Thread {
    // Read now: once it has ended it has no id.
    const thread = otherThread(worker.threadId)
    worker.once('exit', () => this.#cells.free(thread))
    return worker
  }

  ended(threadId: number): void {
    this.#cells.free(otherThread(threadId))
  }

  inspect(limiter: string, limit: string, key: string): StateFields | undefined {
    const opened = this.#opened.get(limiter)
    const k = opened?.scope.limits.findIndex(({ name }) => name === limit) ?? -1
    if (opened === undefined || k < 0 || !opened.states.find(key)) return undefined
    const cell = opened.states.shape.cells[k]
    return cell?.isHeld ? cell.own.algorithm.fields(cell.own, cell.s, cell.i) : undefined
  }

  #yield(lost: number): void {
    this.collisions += 1
    spin(lost)
  }
}
