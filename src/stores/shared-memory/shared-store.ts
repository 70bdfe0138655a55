/**
 * State in memory that worker threads share: an immutable record per key and one atomic reference to it (layout.ts).
 * A step reads the record, decides on a private copy, writes that to a spare record and compares and swaps the key's head.
 * Whoever loses the race starts again from what the winner wrote. No locks: a thread that dies anywhere holds nobody up.
 */
import { type Cell, decide, emptyVerdict, type Verdict } from '../../algorithms/decide.ts'
import { onlyKnown } from '../../algorithms/rate.ts'
import { SluiceError, shown } from '../../errors.ts'
import type { Part, Scope, Step, SyncStore } from '../store.ts'
import { fingerprintOf } from './fingerprint.ts'
import { headOf, isHandle, Layout, recordOf, type SharedHandle, versionOf } from './layout.ts'
import { RecordShape } from './record-shape.ts'

export interface SharedStoreOptions {
  /** How many keys the table holds at most. Whole, 1 to 16 million. */
  readonly maxKeys: number
  /** How many threads use it at most, over its whole life. Default 64. */
  readonly maxThreads?: number
  /**
   * How many doubles the limits of one key take, added up: gcra 5, token bucket 6, leaky bucket 6, fixed window 7, sliding window 7 and its slots,
   * sliding log 6 and twice its limit. Default 12.
   */
  readonly recordWords?: number
}

export interface SharedStore extends SyncStore {
  /** Give this to the other threads: `sharedStore(handle)` there is the same store. */
  readonly handle: SharedHandle
  /** How often this thread lost a race and started again. */
  readonly collisions: number
}

export function sharedStore(from: SharedStoreOptions | SharedHandle): SharedStore {
  onlyKnown(from, ['maxKeys', 'maxThreads', 'recordWords', 'buffer'], 'sharedStore')
  return new SharedMemory(isHandle(from) ? new Layout(from.buffer) : createLayout(from))
}

const MAX_KEYS = 16_000_000

function createLayout({ maxKeys, maxThreads = 64, recordWords = 12 }: SharedStoreOptions): Layout {
  whole('maxKeys', maxKeys, MAX_KEYS)
  whole('maxThreads', maxThreads, 10_000)
  whole('recordWords', recordWords, 10_000)
  const [seed] = crypto.getRandomValues(new Int32Array(1)) as unknown as [number]
  return Layout.create({ maxKeys, maxThreads, recordWords, seed })
}

function whole(name: string, value: number, most: number): void {
  if (Number.isInteger(value) && value >= 1 && value <= most) return
  throw new SluiceError('CONFIG', `sharedStore ${name} ${shown(value)} must be a whole number from 1 to ${most}`)
}

class SharedMemory implements SharedStore {
  readonly mode = 'sync'
  readonly shared = true
  readonly handle: SharedHandle
  collisions = 0
  readonly #layout: Layout
  readonly #shapes = new WeakMap<Scope, RecordShape>()
  /** Records of this thread's own that no head refers to. One is enough to go on for ever: each swap gives one back. */
  readonly #spares: number[] = []
  readonly #cells: Cell[] = []
  readonly #verdicts: Verdict[] = []

  constructor(layout: Layout) {
    this.#layout = layout
    this.handle = { buffer: layout.buffer }
    this.#spares.push(this.#newRecord())
  }

  apply(step: Step): readonly Verdict[] {
    const { parts } = step
    const key = onlyKey(parts)
    const shape = this.#shapeOf(step.scope)
    const fingerprint = fingerprintOf(step.scope.name, key, this.#layout.seed)
    while (!this.#attempt(step, shape, fingerprint)) this.collisions += 1
    return this.#verdicts
  }

  /** One try at the step. False if another thread was faster. */
  #attempt(step: Step, shape: RecordShape, fingerprint: bigint): boolean {
    const layout = this.#layout
    const slot = layout.find(fingerprint)
    const head = slot < 0 ? 0n : layout.head(slot)
    if (recordOf(head) < 0) shape.clear()
    else if (!this.#read(slot, head, shape)) return false
    if (step.op === 'forget') {
      this.#verdicts.length = 0
      return recordOf(head) < 0 || this.#drop(slot, head)
    }
    this.#load(step.parts, shape)
    decide(step.op, this.#cells, step.nowUs as number, step.aheadUs, step.ofUs, this.#verdicts)
    if (!this.#cells.some((cell) => cell.changed)) return true
    for (let k = 0; k < step.parts.length; k++) {
      const cell = this.#cells[k] as Cell
      if (cell.changed) shape.sign((step.parts[k] as Part).limit, cell.rule)
    }
    return this.#publish(slot < 0 ? this.#claim(fingerprint) : slot, head, shape)
  }

  /** Reads the record that the head refers to. False if the head has changed meanwhile: then what was read may be of two records. */
  #read(slot: number, head: bigint, shape: RecordShape): boolean {
    const layout = this.#layout
    layout.readRecord(recordOf(head), shape.halves)
    if (layout.head(slot) !== head) return false
    if (shape.readAsPresent()) return true
    const record = shape.wholeRecord()
    layout.readRecord(recordOf(head), new Int32Array(record.buffer))
    if (layout.head(slot) !== head) return false
    shape.unpack(record)
    return true
  }

  #load(parts: readonly Part[], shape: RecordShape): void {
    this.#cells.length = parts.length
    this.#verdicts.length = parts.length
    for (let k = 0; k < parts.length; k++) {
      const { limit, rule, cost, ticket } = parts[k] as Part
      const i = shape.wordsAt(limit, rule)
      this.#cells[k] = { rule, cost, ticket, s: shape.words, i, written: shape.writtenRule(limit, rule), changed: false }
      this.#verdicts[k] ??= emptyVerdict()
    }
  }

  #publish(slot: number, head: bigint, shape: RecordShape): boolean {
    // First what may throw: a spare that was taken out must not be lost.
    const packed = shape.packed()
    const spare = this.#spares.pop() as number
    const replaced = recordOf(head)
    // A new key keeps the record it is given, so this thread needs another before it gives its spare away.
    const next = replaced < 0 ? this.#newRecordOr(spare) : replaced
    this.#layout.writeRecord(spare, packed)
    if (this.#layout.swapHead(slot, head, headOf(versionOf(head) + 1n, spare))) {
      this.#spares.push(next)
      return true
    }
    this.#spares.push(spare)
    if (replaced < 0) this.#spares.push(next)
    return false
  }

  #drop(slot: number, head: bigint): boolean {
    if (!this.#layout.swapHead(slot, head, headOf(versionOf(head) + 1n, -1))) return false
    this.#spares.push(recordOf(head))
    return true
  }

  #claim(fingerprint: bigint): number {
    const slot = this.#layout.claim(fingerprint)
    if (slot < 0) throw full()
    return slot
  }

  /** Another record for this thread; if there is none, puts back the spare that was taken for the new key, and refuses. */
  #newRecordOr(spare: number): number {
    const another = this.#spares.pop() ?? this.#layout.newRecord()
    if (another >= 0) return another
    this.#spares.push(spare)
    throw full()
  }

  #newRecord(): number {
    const record = this.#layout.newRecord()
    if (record < 0) throw full()
    return record
  }

  #shapeOf(scope: Scope): RecordShape {
    let shape = this.#shapes.get(scope)
    if (shape === undefined) {
      shape = new RecordShape(scope, this.#layout.recordWords)
      this.#shapes.set(scope, shape)
    }
    return shape
  }
}

function onlyKey(parts: readonly Part[]): string {
  const key = (parts[0] as Part).key
  if (parts.every((part) => part.key === key)) return key
  throw new SluiceError('UNSUPPORTED', 'shared memory decides several limits at once on one key only: give one key for all limits')
}

function full(): SluiceError {
  return new SluiceError('STORE', 'the shared memory is full: make it with a larger maxKeys')
}
