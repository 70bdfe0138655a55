import type { Rule, StateFields } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import { clearWords } from '../../algorithms/words.ts'
import { SluiceError } from '../../errors.ts'
import type { Part } from '../store.ts'
import { type RowState, Rows, wordsFor } from './rows.ts'

/**
 * How many keys are looked at when a new key arrives: more than one, so that the table shrinks
 * towards what is in use.
 */
const SWEEP = 2
/**
 * Idle keys may come back: they leave only after they have been idle for this long, unless the
 * table is full.
 */
const GRACE_US = 1_000_000
/** How many keys are looked at before a table is called full. */
const SEARCH = 1_000
/** For how long it is called full then without another look. */
const FULL_US = 2_000
/**
 * How many bytes the keys of a table may take: so many for each of `maxKeys`, and in a small table
 * so many together.
 */
const BYTES_OF_KEY = 64
const LEAST_BYTES = 65_536
/** Keys of so many characters take no more than that, whatever they are. */
const SHORT_KEY = 32

/**
 * Where the state of a key that is not held is worked out, by its place in the step. It becomes a
 * row only if something is charged.
 */
const scratches: Float64Array[] = []

/**
 * The states of one limit by key: a Map from key to row, and the rows. Idle keys leave a few at a
 * time, whenever a new key arrives: no timer, no pause, and never many more keys than are in use.
 */
export class Table {
  readonly limit: string
  readonly #algorithm: Rule['algorithm']
  readonly #maxKeys: number
  readonly #rowOf = new Map<string, number>()
  readonly #rows: Rows
  #freeRows: number[] = []
  #rowCount = 0
  readonly #maxBytes: number
  /** How many bytes the characters of all keys take. */
  #bytes = 0
  /** Where the sweep goes on: a Map's iterator stays valid while entries come and go. */
  #hand = this.#rowOf.entries()
  /** How long until one of the keys that were looked at is idle. */
  #soonestInUs = 0
  /** When keys were looked at in vain, and when the first of them is idle. */
  #searchedUs = Number.NEGATIVE_INFINITY
  #soonestUs = 0

  constructor(limit: string, rule: Rule, maxKeys: number) {
    this.limit = limit
    this.#algorithm = rule.algorithm
    this.#maxKeys = maxKeys
    this.#maxBytes = Math.max(maxKeys * BYTES_OF_KEY, LEAST_BYTES)
    this.#rows = new Rows(rule)
  }

  get size(): number {
    return this.#rowOf.size
  }

  /** States under this rule may be loaded from now on: they may be larger than those before. */
  makeRoomFor(rule: Rule): void {
    this.#rows.widen(rule)
  }

  /**
   * Points a part at its key's state, or at the scratch for its `place` in the step. Tells whether
   * the key is held.
   */
  load(part: Part, place: number): boolean {
    const row = this.#rowOf.get(part.key)
    return row === undefined ? pointAtScratch(part, place) : this.#rows.pointAt(row, part)
  }

  /** Notes the rule that a state is now written under. */
  sign(part: Part): void {
    this.#rows.sign(part)
  }

  remove(key: string): void {
    const row = this.#rowOf.get(key)
    if (row === undefined) return
    this.#rowOf.delete(key)
    this.#bytes -= bytesOf(key)
    this.#rows.clear(row)
    this.#freeRows.push(row)
  }

  inspect(key: string): StateFields | undefined {
    const row = this.#rowOf.get(key)
    if (row === undefined) return undefined
    const { rule, s, i } = this.#rows.at(row)
    return rule.algorithm.fields(rule, s, i)
  }

  /** Calls `fn` with every key and its state. */
  each(fn: (key: string, state: RowState) => void): void {
    for (const [key, row] of this.#rowOf) fn(key, this.#rows.at(row))
  }

  /** Lets keys go that have been idle for so long, a few at a time. */
  sweep(nowUs: number, graceUs: number): void {
    for (let k = 0; k < SWEEP; k++) this.#sweepOne(nowUs, graceUs)
  }

  /**
   * How long a new key has to wait for room, if need be after letting idle ones go: 0 if there is
   * room for it.
   */
  fullForUs(key: string, nowUs: number): number {
    if (this.#fits(key)) return 0
    // Many who come at once are not worth a search each.
    if (nowUs >= this.#searchedUs && nowUs < Math.min(this.#soonestUs, this.#searchedUs + FULL_US)) return this.#soonestUs - nowUs
    const { size } = this
    this.#soonestInUs = Number.POSITIVE_INFINITY
    for (let k = 0; k < SEARCH; k++) {
      this.#sweepOne(nowUs, 0)
      if (this.#fits(key)) return 0
    }
    // A long key may want the room of more than have left: the next search goes on.
    if (this.size < size) return FULL_US
    this.#searchedUs = nowUs
    this.#soonestUs = nowUs + this.#soonestInUs
    return this.#soonestInUs
  }

  #fits(key: string): boolean {
    return this.#rowOf.size < this.#maxKeys && this.#bytes + bytesOf(key) <= this.#maxBytes
  }

  /** Keeps a new key, if there is room for it: tells whether there was. */
  insert({ key, s, own }: Part, nowUs: number): boolean {
    this.sweep(nowUs, GRACE_US)
    if (this.fullForUs(key, nowUs) > 0) return false
    const row = this.#freeRows.pop() ?? this.#rowCount++
    this.#rows.put(row, s, own)
    this.#rowOf.set(key, row)
    this.#bytes += bytesOf(key)
    return true
  }

  /** Looks at one key and lets it go if it has been idle for so long. */
  #sweepOne(nowUs: number, graceUs: number): void {
    const next = this.#hand.next()
    if (next.done) {
      this.#hand = this.#rowOf.entries()
      return
    }
    const idleInUs = this.#rows.idleInUs(next.value[1], nowUs - graceUs)
    if (idleInUs === 0) this.remove(next.value[0])
    else if (idleInUs < this.#soonestInUs) this.#soonestInUs = idleInUs
  }

  /** Refuses a rule of another algorithm. */
  check({ algorithm }: Rule): void {
    if (algorithm.type === this.#algorithm.type) return
    throw new SluiceError(
      'CONFIG',
      `limit '${this.limit}' is a ${this.#algorithm.type} in this store, it cannot be a ${algorithm.type} too`,
    )
  }
}

/**
 * Strings take two bytes for each character if one of them is outside Latin-1. Of short keys it
 * does not matter.
 */
function bytesOf(key: string): number {
  return key.length > SHORT_KEY && /[\u0100-\uffff]/.test(key) ? 2 * key.length : key.length
}

function pointAtScratch(cell: Cell, place: number): false {
  let scratch = scratches[place]
  if (scratch === undefined) scratch = scratches[place] = new Float64Array(64)
  clearWords(scratch, 0, Math.min(cell.rule.freshWords, scratch.length))
  const words = wordsFor(cell.rule, scratch, 0)
  if (scratch.length < words) scratch = scratches[place] = new Float64Array(words)
  cell.s = scratch
  cell.i = 0
  cell.own = cell.rule
  cell.isHeld = false
  return false
}
