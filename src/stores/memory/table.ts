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

/**
 * The states of one limit by key: a Map from key to row, and the rows. Idle keys leave a few at a time, whenever a new key arrives:
 * no timer, no pause, and never many more keys than are in use.
 */
export class Table {
  readonly #limit: string
  readonly #algorithm: Rule['algorithm']
  readonly #maxKeys: number
  readonly #rowOf = new Map<string, number>()
  readonly #rows: Rows
  readonly #freeRows: number[] = []
  #rowCount = 0
  /** Where the state of a key that is not held is worked out. It becomes a row only if something is charged. */
  #scratch: Float64Array = new Float64Array(64)
  /** Where the sweep goes on: a Map's iterator stays valid while entries come and go. */
  #hand = this.#rowOf.entries()
  /** How long until one of the keys that were looked at in vain is idle: for whoever is refused because the table is full. */
  soonestIdleUs = 0

  constructor(limit: string, rule: Rule, maxKeys: number) {
    this.#limit = limit
    this.#algorithm = rule.algorithm
    this.#maxKeys = maxKeys
    this.#rows = new Rows(rule)
  }

  get size(): number {
    return this.#rowOf.size
  }

  /** Points the cell at the key's state, or at the scratch. */
  load(key: string, cell: Cell): void {
    this.#check(cell.rule)
    const row = this.#rowOf.get(key)
    if (row === undefined) this.#pointAtScratch(cell)
    else this.#rows.pointAt(row, cell)
  }

  /** Keeps what `decide` changed. A new key for which there is no room is not kept. */
  save(key: string, cell: Cell, nowUs: number): void {
    if (!cell.changed) return
    if (cell.written === undefined) this.#insert(key, cell, nowUs)
    else if (cell.written !== cell.rule) this.#rows.sign(this.#rowOf.get(key) as number, cell.rule)
  }

  /** Load, decide and save in one, for keys that are held and an answer of yes or no. */
  lane(rule: Rule, nowUs: () => number): Lane {
    this.#check(rule)
    return this.#rows.lane(rule, this.#rowOf, nowUs)
  }

  remove(key: string): void {
    const row = this.#rowOf.get(key)
    if (row === undefined) return
    this.#rowOf.delete(key)
    this.#rows.clear(row)
    this.#freeRows.push(row)
  }

  inspect(key: string): EncodedState | undefined {
    const row = this.#rowOf.get(key)
    return row === undefined ? undefined : this.#rows.encode(row)
  }

  /** Whether there is room for one more key, if need be by letting idle ones go. */
  hasRoom(nowUs: number): boolean {
    if (this.#rowOf.size < this.#maxKeys) return true
    this.soonestIdleUs = Number.POSITIVE_INFINITY
    for (let k = 0; k < SEARCH && this.#rowOf.size >= this.#maxKeys; k++) this.#sweepOne(nowUs, 0)
    return this.#rowOf.size < this.#maxKeys
  }

  #insert(key: string, cell: Cell, nowUs: number): void {
    for (let k = 0; k < SWEEP; k++) this.#sweepOne(nowUs, GRACE_US)
    if (!this.hasRoom(nowUs)) return
    const row = this.#freeRows.pop() ?? this.#rowCount++
    this.#rows.put(row, cell.s, cell.rule)
    this.#rowOf.set(key, row)
  }

  #pointAtScratch(cell: Cell): void {
    this.#scratch.fill(0, 0, 8)
    const words = wordsFor(cell.rule, this.#scratch, 0)
    if (this.#scratch.length < words) this.#scratch = new Float64Array(words)
    cell.s = this.#scratch
    cell.i = 0
    cell.written = undefined
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
    else if (idleInUs < this.soonestIdleUs) this.soonestIdleUs = idleInUs
  }

  #check({ algorithm }: Rule): void {
    if (algorithm === this.#algorithm) return
    throw new SluiceError(
      'CONFIG',
      `limit '${this.#limit}' is a ${this.#algorithm.type} in this store, it cannot be a ${algorithm.type} too`,
    )
  }
}
