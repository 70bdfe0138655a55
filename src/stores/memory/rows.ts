/**
 * Where the states of a table lie, by row number. Two ways: in pages, one row after the other, for states of a fixed and small size; in an
 * array per row for states that grow. Both also keep, for each row, the rule that its state was written under.
 */
import type { EncodedState, Rule } from '../../algorithms/algorithm.ts'
import { type Cell, emptyVerdict, takeOne } from '../../algorithms/decide.ts'
import type { Lane } from '../store.ts'

/** States up to this many doubles lie in pages. */
const MAX_PAGED_WORDS = 64

export interface Rows {
  /** Points a cell at a row's state, which has room for one more charge under the cell's rule. */
  pointAt(row: number, cell: Cell): void
  /** Makes `row` hold a state written under a rule. */
  put(row: number, state: Float64Array, rule: Rule): void
  /** Notes the rule that a row's state is now written under. */
  sign(row: number, rule: Rule): void
  /** Frees what a row holds. */
  clear(row: number): void
  /** How long until a row is idle. */
  idleInUs(row: number, nowUs: number): number
  /** Decisions of yes or no under a rule, for the keys that have rows. */
  lane(rule: Rule, rowOf: ReadonlyMap<unknown, number>): Lane
  encode(row: number): EncodedState
}

export function rowsFor(rule: Rule): Rows {
  const paged = rule.algorithm.neededWords === undefined && rule.algorithm.words(rule) <= MAX_PAGED_WORDS
  return paged ? new PagedRows(rule) : new ArrayRows()
}

/** How many doubles a state may need after one more charge. */
export function wordsFor(rule: Rule, s: Float64Array): number {
  return rule.algorithm.neededWords?.(rule, s, 0) ?? rule.algorithm.words(rule)
}

/** 1024 rows to a page: growing copies nothing and leaves no slack to speak of. */
const PAGE_BITS = 10
const PAGE_MASK = (1 << PAGE_BITS) - 1

/** A row is [the number of its rule, its state's words...]. */
class PagedRows implements Rows {
  #pages: Float64Array[] = []
  #stride: number
  readonly #rules: Rule[] = []
  readonly #numberOf = new Map<string, number>()
  #lastRule: Rule
  #lastNumber: number

  constructor(rule: Rule) {
    this.#stride = 1 + rule.algorithm.words(rule)
    this.#lastRule = rule
    this.#lastNumber = this.#newNumber(rule)
  }

  pointAt(row: number, cell: Cell): void {
    this.#number(cell.rule)
    const page = this.#pages[row >> PAGE_BITS] as Float64Array
    const at = (row & PAGE_MASK) * this.#stride
    cell.s = page
    cell.i = at + 1
    cell.written = this.#rules[page[at] as number]
  }

  put(row: number, state: Float64Array, rule: Rule): void {
    const number = this.#number(rule)
    this.#pages[row >> PAGE_BITS] ??= new Float64Array(this.#stride << PAGE_BITS)
    const page = this.#pages[row >> PAGE_BITS] as Float64Array
    const at = (row & PAGE_MASK) * this.#stride
    page[at] = number
    for (let k = 1; k < this.#stride; k++) page[at + k] = state[k - 1] as number
  }

  sign(row: number, rule: Rule): void {
    const page = this.#pages[row >> PAGE_BITS] as Float64Array
    page[(row & PAGE_MASK) * this.#stride] = this.#number(rule)
  }

  clear(): void {}

  idleInUs(row: number, nowUs: number): number {
    const page = this.#pages[row >> PAGE_BITS] as Float64Array
    const at = (row & PAGE_MASK) * this.#stride
    const rule = this.#rules[page[at] as number] as Rule
    return rule.algorithm.resetUs(rule, page, at + 1, nowUs)
  }

  lane(rule: Rule, rowOf: ReadonlyMap<unknown, number>): Lane {
    const { algorithm, capacity } = rule
    const number = this.#number(rule)
    const verdict = emptyVerdict()
    return {
      take: (key, cost, nowUs) => {
        const row = rowOf.get(key)
        if (row === undefined || cost < 1 || cost > capacity) return undefined
        const page = this.#pages[row >> PAGE_BITS] as Float64Array
        const at = (row & PAGE_MASK) * this.#stride
        if (page[at] !== number) return undefined
        takeOne(rule, page, at + 1, nowUs, cost, verdict)
        return verdict
      },
      tryTake: (key, cost, nowUs) => {
        const row = rowOf.get(key)
        // A question and what can never fit still repair the clock, and that is the long way's business.
        if (row === undefined || cost < 1 || cost > capacity) return undefined
        const page = this.#pages[row >> PAGE_BITS] as Float64Array
        const at = (row & PAGE_MASK) * this.#stride
        // Written under other numbers: that takes the long way once.
        if (page[at] !== number) return undefined
        return algorithm.tryTake(rule, page, at + 1, nowUs, cost)
      },
    }
  }

  encode(row: number): EncodedState {
    const page = this.#pages[row >> PAGE_BITS] as Float64Array
    const at = (row & PAGE_MASK) * this.#stride
    const rule = this.#rules[page[at] as number] as Rule
    return rule.algorithm.encode(rule, page, at + 1)
  }

  /** By which number rows refer to a rule. From here on there is room for its states. */
  #number(rule: Rule): number {
    if (rule === this.#lastRule) return this.#lastNumber
    this.#lastNumber = this.#numberOf.get(nameOf(rule)) ?? this.#newNumber(rule)
    this.#lastRule = rule
    return this.#lastNumber
  }

  /** Rules with equal numbers share a number, so that changing back and forth does not pile them up. */
  #newNumber(rule: Rule): number {
    this.#widen(1 + rule.algorithm.words(rule))
    const number = this.#rules.push(rule) - 1
    this.#numberOf.set(nameOf(rule), number)
    return number
  }

  /** New numbers may want a larger state than the rows were made for. */
  #widen(stride: number): void {
    if (stride <= this.#stride) return
    const narrow = this.#stride
    this.#stride = stride
    this.#pages = this.#pages.map((page) => widened(page, narrow, stride))
  }
}

function widened(page: Float64Array, narrow: number, stride: number): Float64Array {
  const wide = new Float64Array(stride << PAGE_BITS)
  for (let row = 0; row <= PAGE_MASK; row++) wide.set(page.subarray(row * narrow, (row + 1) * narrow), row * stride)
  return wide
}

function nameOf(rule: Rule): string {
  return `${rule.numbers} ${rule.maxAheadUs}`
}

const NOTHING = new Float64Array(0)

class ArrayRows implements Rows {
  readonly #states: Float64Array[] = []
  readonly #rules: Rule[] = []

  pointAt(row: number, cell: Cell): void {
    cell.s = this.#roomy(row, cell.rule)
    cell.i = 0
    cell.written = this.#rules[row]
  }

  put(row: number, state: Float64Array, rule: Rule): void {
    this.#states[row] = state.slice(0, wordsFor(rule, state))
    this.#rules[row] = rule
  }

  sign(row: number, rule: Rule): void {
    this.#rules[row] = rule
  }

  clear(row: number): void {
    this.#states[row] = NOTHING
  }

  idleInUs(row: number, nowUs: number): number {
    const rule = this.#rules[row] as Rule
    return rule.algorithm.resetUs(rule, this.#states[row] as Float64Array, 0, nowUs)
  }

  lane(rule: Rule, rowOf: ReadonlyMap<unknown, number>): Lane {
    const { algorithm, capacity } = rule
    const verdict = emptyVerdict()
    return {
      take: (key, cost, nowUs) => {
        const row = rowOf.get(key)
        if (row === undefined || this.#rules[row] !== rule || cost < 1 || cost > capacity) return undefined
        takeOne(rule, this.#roomy(row, rule), 0, nowUs, cost, verdict)
        return verdict
      },
      tryTake: (key, cost, nowUs) => {
        const row = rowOf.get(key)
        if (row === undefined || this.#rules[row] !== rule || cost < 1 || cost > capacity) return undefined
        return algorithm.tryTake(rule, this.#roomy(row, rule), 0, nowUs, cost)
      },
    }
  }

  encode(row: number): EncodedState {
    const rule = this.#rules[row] as Rule
    return rule.algorithm.encode(rule, this.#states[row] as Float64Array, 0)
  }

  /** The row's array, grown by half if it has no room for one more charge, so that a log that fills up is copied a few times only. */
  #roomy(row: number, rule: Rule): Float64Array {
    const s = this.#states[row] as Float64Array
    const words = wordsFor(rule, s)
    if (s.length >= words) return s
    const larger = new Float64Array(Math.max(words, Math.min(Math.ceil(s.length * 1.5), rule.algorithm.words(rule))))
    larger.set(s)
    this.#states[row] = larger
    return larger
  }
}
