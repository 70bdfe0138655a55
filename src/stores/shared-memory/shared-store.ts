/**
 * State in memory that worker threads share: an immutable record per key and one atomic reference to it (table.ts).
 * A step reads the record, decides on a private copy, writes that to a spare record and compares and swaps the key's head.
 * Whoever loses the race starts again from what the winner wrote. No locks: a thread that dies anywhere holds nobody up.
 */
import type { StateFields } from '../../algorithms/algorithm.ts'
import { type Cell, decide, emptyVerdict, type Op, type Verdict } from '../../algorithms/decide.ts'
import { systemClock } from '../../clock/clock.ts'
import { SluiceError, shown } from '../../errors.ts'
import type { Lane, Part, Scope, Step, SyncStore } from '../store.ts'
import { scopeNumber } from './catalog.ts'
import { Cells } from './cells.ts'
import { ABSENT, type Address, LONGEST_KEY, LOST } from './chains.ts'
import { fingerprint } from './fingerprint.ts'
import { sharedLane } from './lane.ts'
import type { SharedHandle, SharedMemory } from './memory.ts'
import { memoryFrom, type SharedStoreOptions } from './options.ts'
import { RecordShape } from './record-shape.ts'
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

/** When to come again if the table is full and no key was seen that will be idle, because others have the records in hand. */
const NOBODY_SEEN_US = 1_000_000

/** A limiter, as this thread's steps need it. */
interface Desk {
  readonly address: Address
  readonly shape: RecordShape
  /** Reads the limiter's clock. */
  readonly nowUs: () => number
}

class Shared implements SharedStore {
  readonly mode = 'sync'
  readonly shared = true
  readonly handle: SharedHandle
  readonly nowUs: () => number
  collisions = 0
  readonly #memory: SharedMemory
  readonly #cellsOfThreads: Cells
  readonly #table: Table
  readonly #desks = new WeakMap<Scope, Desk>()
  readonly #scopes = new Map<string, Scope>()
  readonly #cells: Cell[] = []
  readonly #verdicts: Verdict[] = []

  constructor(memory: SharedMemory) {
    this.handle = memory.handle
    this.nowUs = timeFrom(memory.originUs) ?? systemClock.nowUs
    this.#memory = memory
    this.#cellsOfThreads = new Cells(memory)
    this.#table = new Table(memory, this.#cellsOfThreads)
  }

  get size(): number {
    return this.#table.size()
  }

  get bytes(): number {
    return this.#memory.ints.byteLength
  }

  /** Refuses what cannot be decided here, before anything is. */
  open(scope: Scope, nowUs?: () => number): void {
    this.#desk(scope, nowUs)
  }

  apply(step: Step): readonly Verdict[] {
    const desk = this.#desk(step.scope)
    const key = onlyKey(step.parts)
    for (let lost = 0; !this.#attempt(step, key, desk); lost++) this.#yield(lost)
    if (step.op === 'forget' || step.op === 'give') this.#table.searchAgain()
    return this.#verdicts
  }

  lane(scope: Scope, nowUs: () => number): Lane {
    const [{ rule }] = scope.limits as [Scope['limits'][number]]
    const { address } = this.#desk(scope, nowUs)
    return sharedLane(this.#table.chains, this.#cellsOfThreads, address, rule, nowUs, (lost) => this.#yield(lost))
  }

  watch<Thread extends WatchedThread>(worker: Thread): Thread {
    // Read now: once it has ended it has no id.
    const thread = otherThread(worker.threadId)
    worker.once('exit', () => this.#cellsOfThreads.free(thread))
    return worker
  }

  ended(threadId: number): void {
    this.#cellsOfThreads.free(otherThread(threadId))
  }

  inspect(limiter: string, limit: string, key: string): StateFields | undefined {
    const scope = this.#scopes.get(limiter)
    const known = scope?.limits.find(({ name }) => name === limit)
    if (scope === undefined || known === undefined) return undefined
    const { shape, address } = this.#desk(scope)
    let place = LOST
    while (place === LOST) place = this.#table.chains.find(key, address, shape.record)
    if (place === ABSENT) return undefined
    shape.take()
    const written = shape.writtenRule(limit, known.rule)
    return written?.algorithm.fields(written, shape.words, shape.wordsAt(limit, known.rule))
  }

  /** One try at the step. False if another thread was faster. */
  #attempt(step: Step, key: string, { address, shape, nowUs: clock }: Desk): boolean {
    const place = this.#table.chains.find(key, address, shape.record)
    if (place === LOST) return false
    if (step.op === 'forget') return this.#forget(place, shape.record)
    if (place === ABSENT) shape.clear()
    else shape.take()
    // Not before the record was seen, and anew in each try: a thread that is held up in between would take a newer record for one from the future.
    const nowUs = step.nowUs ?? clock()
    if (nowUs >= (this.#cellsOfThreads.nextLookUs[0] as number)) this.#cellsOfThreads.look(nowUs)
    this.#decide(step, shape, nowUs, step.op)
    if (this.#cells.some((cell) => cell.changed)) return this.#publish(step, address.scope, shape, place, nowUs)
    // A question about a key for which there is no room is answered as the call would be.
    if (place === ABSENT && this.#mayBeRefused(step) && !this.#table.hasRoom(nowUs)) this.#limit()
    return true
  }

  #decide({ parts, aheadUs, ofUs }: Step, shape: RecordShape, nowUs: number, op: Op): void {
    this.#load(parts, shape)
    decide(op, this.#cells, nowUs, aheadUs, ofUs, this.#verdicts)
  }

  #mayBeRefused({ op, parts }: Step): boolean {
    return op !== 'give' && !this.#memory.allowWhenFull && parts.some(({ cost }) => cost > 0)
  }

  /** Says of all limits that they limit until there is room. */
  #limit(): void {
    const { soonestIdleUs } = this.#table
    const us = soonestIdleUs === Number.POSITIVE_INFINITY ? NOBODY_SEEN_US : soonestIdleUs
    for (const verdict of this.#verdicts) limitedFor(verdict, us)
  }

  #forget(place: number, words: Float64Array): boolean {
    this.#verdicts.length = 0
    return place === ABSENT || this.#table.chains.replace(place, 0, words)
  }

  #publish(step: Step, scope: number, shape: RecordShape, place: number, nowUs: number): boolean {
    const { parts } = step
    for (let k = 0; k < parts.length; k++) {
      const cell = this.#cells[k] as Cell
      if (cell.changed) shape.sign((parts[k] as Part).limit, cell.own)
    }
    this.#table.chains.idleAtUs[0] = shape.idleAtUs(nowUs)
    if (place !== ABSENT) return this.#table.chains.replace(place, scope, shape.packed())
    const inserted = this.#table.insert(scope, shape.packed(), nowUs)
    if (inserted === undefined && !this.#memory.allowWhenFull) {
      // Nothing is charged: it is decided again as a question, and refused.
      shape.clear()
      this.#decide(step, shape, nowUs, 'ask')
      this.#limit()
    }
    return inserted ?? true
  }

  #load(parts: readonly Part[], shape: RecordShape): void {
    this.#cells.length = parts.length
    this.#verdicts.length = parts.length
    for (let k = 0; k < parts.length; k++) {
      const { limit, rule, cost, ticket } = parts[k] as Part
      const i = shape.wordsAt(limit, rule)
      const own = shape.writtenRule(limit, rule)
      this.#cells[k] = { rule, cost, ticket, s: shape.words, i, own: own ?? rule, isHeld: own !== undefined, changed: false }
      this.#verdicts[k] ??= emptyVerdict()
    }
  }

  #yield(lost: number): void {
    this.collisions += 1
    spin(lost)
  }

  #desk(scope: Scope, nowUs: () => number = this.nowUs): Desk {
    const known = this.#desks.get(scope)
    if (known !== undefined) return known
    const memory = this.#memory
    // The shape first: it may refuse, and what was entered in the catalog stays there.
    const shape = new RecordShape(scope, memory.recordWords)
    const seeds = new Int32Array(2)
    fingerprint(scope.name, memory.seedLow, memory.seedHigh, seeds)
    const [seedLow, seedHigh] = seeds as unknown as [number, number]
    const desk = { shape, address: { scope: scopeNumber(memory, scope), seedLow, seedHigh }, nowUs }
    this.#desks.set(scope, desk)
    this.#scopes.set(scope.name, scope)
    return desk
  }
}

function onlyKey(parts: readonly Part[]): string {
  const key = (parts[0] as Part).key
  if (key.length > LONGEST_KEY) throw new SluiceError('KEY', `key ${shown(key)} must have at most ${LONGEST_KEY} characters`)
  if (parts.every((part) => part.key === key)) return key
  throw new SluiceError('UNSUPPORTED', 'shared memory decides several limits at once on one key only: give one key for all limits')
}

function limitedFor(verdict: Verdict, us: number): void {
  if (verdict.outcome === 'impossible') return
  verdict.outcome = 'limited'
  verdict.retryUs = Math.max(verdict.retryUs, us)
  verdict.delayUs = 0
}
