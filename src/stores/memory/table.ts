import type { EncodedState, Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import { SluiceError } from '../../errors.ts'
import type { Lane } from '../store.ts'
import { Rows, wordsFor } from './rows.ts'

/** How many keys are looked at when a new key arrives: more than one, so that the table shrinks towards what is in use. */
const SWEEP = 2
/** Idle keys may come back: they leave only after they have been idle for this long, unless the table is full. */
const GRACE_US = 1_000_000
/** How many keys are looked at before a table is called full. */
const SEARCH = 1_000
/** For how long it is called full then without another look. */
const FULL_US = 2_000
/** How many characters the keys of a full table have on average at most, and how many those of a small table may have together. */
const MEAN_KEY_LENGTH = 64
const LEAST_CHARACTERS = 65_536

/** Where the state of a key that is not held is worked out, by its place in the step. It becomes a row only if something is charged. */
const scratches: Float64Array[] = []

/**
 * The states of one limit by key: a Map from key to row, and the rows. Idle keys leave a few at a time, whenever a new key arrives:
 * no timer, no pause, and never many more keys than are in use.
 */
export class Table {
  readonly limit: string
  readonly #algorithm: Rule['algorithm']
  readonly #maxKeys: number
  readonly #rowOf = new Map<string, number>()
  readonly #rows: Rows
  #freeRows: number[] = []
  #rowCount = 0
  /** How many characters all keys have. */
  #characters = 0
  /** Where the sweep goes on: a Map's iterator stays valid while entries come and go. */
  #hand = this.#rowOf.entries()
  /** When keys were looked at in vain, and when the first of them is idle. */
  #searchedUs = Number.NEGATIVE_INFINITY
  #soonestUs = 0

  constructor(limit: string, rule: Rule, maxKeys: number) {
    this.limit = limit
    this.#algorithm = rule.algorithm
    this.#maxKeys = maxKeys
    this.#rows = new Rows(rule)
  }

  get size(): number {
    return this.#rowOf.size
  }

  /** Points the cell at the key's state, or at the scratch for the cell's `place` in the step. */
  load(key: string, cell: Cell, place: number): void {
    this.check(cell.rule)
    const row = this.#rowOf.get(key)
    if (row === undefined) pointAtScratch(cell, place)
    else this.#rows.pointAt(row, cell)
  }

  /** Keeps what `decide` changed, and tells whether that was a new key. A new key for which there is no room is not kept. */
  save(key: string, cell: Cell, nowUs: number): boolean {
    if (!cell.changed) return false
    if (cell.written === undefined) return this.#insert(key, cell, nowUs)
    if (cell.written !== cell.rule) this.#rows.sign(this.#rowOf.get(key) as number, cell.rule)
    return false
  }

  /** Load, decide and save in one, for keys that are held and an answer of yes or no. */
  lane(rule: Rule, nowUs: () => number): Lane {
    this.check(rule)
    return this.#rows.lane(rule, this.#rowOf, nowUs)
  }

  remove(key: string): void {
    const row = this.#rowOf.get(key)
    if (row === undefined) return
    this.#rowOf.delete(key)
    this.#characters -= key.length
    this.#rows.clear(row)
    this.#freeRows.push(row)
  }

  inspect(key: string): EncodedState | undefined {
    const row = this.#rowOf.get(key)
    return row === undefined ? undefined : this.#rows.encode(row)
  }

  /** Lets idle keys go, a few at a time. */
  sweep(nowUs: number): void {
    for (let k = 0; k < SWEEP; k++) this.#sweepOne(nowUs)
  }

  /** How long a new key has to wait for room, if need be after letting idle ones go: 0 if there is room for it. */
  fullForUs(key: string, nowUs: number): number {
    if (this.#fits(key)) return 0
    // Many who come at once are not worth a search each.
    if (nowUs >= this.#searchedUs && nowUs < Math.min(this.#soonestUs, this.#searchedUs + FULL_US)) return this.#soonestUs - nowUs
    let soonestInUs = Number.POSITIVE_INFINITY
    for (let k = 0; k < SEARCH; k++) {
      const idleInUs = this.#sweepOne(nowUs)
      if (idleInUs > 0) soonestInUs = Math.min(soonestInUs, idleInUs)
      else if (this.#fits(key)) return 0
    }
    // Where all that were looked at have left, and a long key wants the room of more, the next search goes on at once.
    if (soonestInUs === Number.POSITIVE_INFINITY) return 1
    this.#searchedUs = nowUs
    this.#soonestUs = nowUs + soonestInUs
    return soonestInUs
  }

  #fits({ length }: string): boolean {
    const mostCharacters = Math.max(this.#maxKeys * MEAN_KEY_LENGTH, LEAST_CHARACTERS)
    return this.#rowOf.size < this.#maxKeys && this.#characters + length <= mostCharacters
  }

  #insert(key: string, cell: Cell, nowUs: number): boolean {
    this.sweep(nowUs - GRACE_US)
    if (this.fullForUs(key, nowUs) > 0) return false
    const row = this.#freeRows.pop() ?? this.#rowCount++
    this.#rows.put(row, cell.s, cell.rule)
    this.#rowOf.set(key, row)
    this.#characters += key.length
    return true
  }

  /** Looks at one key and lets it go if it is idle. Answers in how long it is; Infinity for the start of another round. */
  #sweepOne(nowUs: number): number {
    const next = this.#hand.next()
    if (next.done) {
      this.#hand = this.#rowOf.entries()
      return Number.POSITIVE_INFINITY
    }
    const idleInUs = this.#rows.idleInUs(next.value[1], nowUs)
    if (idleInUs === 0) this.remove(next.value[0])
    return idleInUs
  }

  /** Refuses a rule of another algorithm. */
  check({ algorithm }: Rule): void {
    if (algorithm === this.#algorithm) return
    throw new SluiceError(
      'CONFIG',
      `limit '${this.limit}' is a ${this.#algorithm.type} in this store, it cannot be a ${algorithm.type} too`,
    )
  }
}

function pointAtScratch(cell: Cell, place: number): void {
  let scratch = scratches[place]
  if (scratch === undefined) scratch = scratches[place] = new Float64Array(64)
  scratch.fill(0, 0, 8)
  const words = wordsFor(cell.rule, scratch, 0)
  if (scratch.length < words) scratch = scratches[place] = new Float64Array(words)
  cell.s = scratch
  cell.i = 0
  cell.written = undefined
}
