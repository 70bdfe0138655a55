import type { EncodedState, Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'

/** How many rows are looked at for idle keys when a new key arrives: more than one, so that the table shrinks towards what is in use. */
const SWEEP = 2
const FIRST_ROWS = 64

/** The states of one limit, by key. */
export class Table {
  readonly #words: number
  readonly #rows = new Map<string, number>()
  /** By row: the key (undefined when free), the rule its state was written under, and the state itself. */
  readonly #keys: (string | undefined)[] = []
  readonly #rules: Rule[] = []
  readonly #free: number[] = []
  #states: Float64Array
  /** Where the state of a key that is not held is worked out; it becomes a row only if something was charged. */
  readonly #scratch: Float64Array
  #hand = 0

  constructor(words: number) {
    this.#words = words
    this.#states = new Float64Array(words * FIRST_ROWS)
    this.#scratch = new Float64Array(words)
  }

  get size(): number {
    return this.#rows.size
  }

  load(part: Part, cell: Cell): void {
    const row = this.#rows.get(part.key)
    cell.rule = part.rule
    cell.cost = part.cost
    cell.ticket = part.ticket
    cell.s = row === undefined ? this.#scratch : this.#states
    cell.i = row === undefined ? 0 : row * this.#words
    cell.written = row === undefined ? undefined : this.#rules[row]
  }

  save(part: Part, cell: Cell, nowUs: number): void {
    if (!cell.changed) return
    if (cell.written === undefined) this.#insert(part, cell.s, nowUs)
    else this.#rules[cell.i / this.#words] = cell.rule
  }

  remove(key: string): void {
    const row = this.#rows.get(key)
    if (row !== undefined) this.#release(row, key)
  }

  inspect(key: string): EncodedState | undefined {
    const row = this.#rows.get(key)
    if (row === undefined) return undefined
    const rule = this.#rules[row] as Rule
    return rule.algorithm.encode(rule, this.#states, row * this.#words)
  }

  #insert(part: Part, state: Float64Array, nowUs: number): void {
    for (let k = 0; k < SWEEP; k++) this.#sweepOne(nowUs)
    const row = this.#free.pop() ?? this.#keys.length
    if ((row + 1) * this.#words > this.#states.length) this.#grow()
    this.#rows.set(part.key, row)
    this.#keys[row] = part.key
    this.#rules[row] = part.rule
    this.#states.set(state, row * this.#words)
  }

  #grow(): void {
    const larger = new Float64Array(this.#states.length * 2)
    larger.set(this.#states)
    this.#states = larger
  }

  #sweepOne(nowUs: number): void {
    if (this.#keys.length === 0) return
    this.#hand = (this.#hand + 1) % this.#keys.length
    const key = this.#keys[this.#hand]
    const rule = this.#rules[this.#hand] as Rule
    if (key !== undefined && rule.algorithm.resetUs(rule, this.#states, this.#hand * this.#words, nowUs) === 0) {
      this.#release(this.#hand, key)
    }
  }

  #release(row: number, key: string): void {
    this.#rows.delete(key)
    this.#keys[row] = undefined
    this.#free.push(row)
  }
}
