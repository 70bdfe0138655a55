/**
 * Where the states of a table lie, by row number: in pages, one row after the other. A row is [the
 * number of the rule that its state was written under, the state's words...]. States that are small
 * and of a fixed size lie 1,024 to a page, so that growing copies nothing and leaves no slack to
 * speak of; only the first page begins small and is doubled until it is as large as the others,
 * because most tables hold few keys. States that grow, or are large, have a page each.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import { Rules } from './rules.ts'

/** States up to this many doubles share pages. */
const MAX_SHARED_WORDS = 64
const SHARED_BITS = 10
/** How many rows the first page begins with. */
const FIRST_ROWS = 4

/** How many doubles a state may need after one more charge. */
export function wordsFor(rule: Rule, s: Float64Array, i: number): number {
  return rule.algorithm.neededWords?.(s, i) ?? rule.words
}

/** A state where it lies, and the rule that it is written under. */
export interface RowState {
  readonly rule: Rule
  readonly s: Float64Array
  readonly i: number
}

export class Rows {
  readonly #grow: boolean
  /** A page has 2 to the power of this many rows. */
  readonly #bits: number
  readonly #mask: number
  #stride: number
  #pages: (Float64Array | undefined)[] = []
  readonly #rules: Rules

  constructor(rule: Rule) {
    const { words } = rule
    this.#grow = rule.algorithm.neededWords !== undefined
    this.#bits = this.#grow || words > MAX_SHARED_WORDS ? 0 : SHARED_BITS
    this.#mask = (1 << this.#bits) - 1
    this.#stride = 1 + words
    this.#rules = new Rules(rule)
  }

  /**
   * Makes room for states under a rule: new numbers may want larger ones than the rows were made
   * for.
   */
  widen({ words }: Rule): void {
    const stride = 1 + words
    if (this.#grow || stride <= this.#stride) return
    const narrow = this.#stride
    this.#stride = stride
    this.#pages = this.#pages.map((page) => page && widened(page, narrow, stride))
  }

  /** Points a cell at a row's state, which has room for one more charge under the cell's rule. */
  pointAt(row: number, cell: Cell): true {
    const page = this.#grow ? this.#roomy(row, cell.rule) : (this.#pages[row >> this.#bits] as Float64Array)
    const at = (row & this.#mask) * this.#stride
    const own = this.#rules.of(page[at] as number)
    // Writing a reference takes longer than looking whether it is there already.
    if (cell.s !== page) cell.s = page
    if (cell.own !== own) cell.own = own
    cell.i = at + 1
    cell.isHeld = true
    return true
  }

  /** Makes `row`, which holds nothing, hold a state written under a rule. */
  put(row: number, state: Float64Array, rule: Rule): void {
    const words = this.#grow ? wordsFor(rule, state, 0) : this.#stride - 1
    const page = this.#pageFor(row, 1 + words)
    const at = (row & this.#mask) * this.#stride
    page[at] = this.#rules.add(rule)
    for (let k = 1; k <= words; k++) page[at + k] = state[k - 1] as number
  }

  /** Notes the rule that the state which a cell points at is now written under. */
  sign({ s, i, own }: Cell): void {
    const before = s[i - 1] as number
    if (this.#rules.of(before) === own) return
    s[i - 1] = this.#rules.add(own)
    this.#rules.drop(before)
  }

  /** Frees what a row holds. */
  clear(row: number): void {
    this.#rules.drop(this.#page(row)[(row & this.#mask) * this.#stride] as number)
    if (this.#bits === 0) this.#pages[row] = undefined
  }

  /** How long until a row is idle. */
  idleInUs(row: number, nowUs: number): number {
    const page = this.#page(row)
    const at = (row & this.#mask) * this.#stride
    const rule = this.#rules.of(page[at] as number)
    return rule.algorithm.resetUs(rule, page, at + 1, nowUs)
  }

  /** The state of a row, where it lies. */
  at(row: number): RowState {
    const s = this.#page(row)
    const at = (row & this.#mask) * this.#stride
    return { rule: this.#rules.of(s[at] as number), s, i: at + 1 }
  }

  #page(row: number): Float64Array {
    return this.#pages[row >> this.#bits] as Float64Array
  }

  /** The page that a new row is in. `doubles`: how many the row takes. */
  #pageFor(row: number, doubles: number): Float64Array {
    const number = row >> this.#bits
    const page = this.#pages[number]
    if (page !== undefined && ((row & this.#mask) + 1) * this.#stride <= page.length) return page
    const mostRows = 1 << this.#bits
    const rows = number > 0 ? mostRows : page === undefined ? Math.min(FIRST_ROWS, mostRows) : (2 * page.length) / doubles
    const larger = new Float64Array(rows * doubles)
    if (page !== undefined) larger.set(page)
    // An array of one takes less than one that was grown to one.
    if (this.#pages.length === 0) this.#pages = [larger]
    else this.#pages[number] = larger
    return larger
  }

  /**
   * The row's page, grown by half if it has no room for one more charge, so that a log that fills
   * up is copied a few times only.
   */
  #roomy(row: number, rule: Rule): Float64Array {
    const page = this.#pages[row] as Float64Array
    const words = 1 + wordsFor(rule, page, 1)
    if (page.length >= words) return page
    const larger = new Float64Array(Math.max(words, Math.min(Math.ceil(page.length * 1.5), 1 + rule.words)))
    larger.set(page)
    this.#pages[row] = larger
    return larger
  }
}

function widened(page: Float64Array, narrow: number, stride: number): Float64Array {
  const rows = page.length / narrow
  const wide = new Float64Array(rows * stride)
  for (let row = 0; row < rows; row++) wide.set(page.subarray(row * narrow, (row + 1) * narrow), row * stride)
  return wide
}
