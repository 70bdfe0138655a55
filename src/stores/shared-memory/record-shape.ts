import type { Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import { SluiceError } from '../../errors.ts'
import { Part, type Scope } from '../step.ts'
import { fixedDoubles } from './chains.ts'

/**
 * Where each limit of a limiter lies in a record: its figures, then its words. A limit without state has 0 as its first figure, and as its
 * second how many words follow.
 *
 * The words of some algorithms are more under some numbers than under others, so a record is read by the figures in it: they say how many
 * words follow. Nearly always a record lies as one of the present numbers would, and is worked on where it was read to. Another one is spread out
 * first, so that each limit has room for its words under both numbers.
 */
export class RecordShape {
  /** Where a record is read to, and what is written: as long as one of the present numbers. */
  readonly record: Float64Array
  /** One for each limit, in their order: the parts of a step, and for limits that it has none for a cell of our own. */
  cells: readonly Cell[]
  readonly #limits: readonly string[]
  readonly #ownCells: readonly Cell[]
  readonly #rules: readonly Rule[]
  readonly #firsts: readonly number[]
  readonly #recordWords: number
  /** Where the limits begin in what was spread out; the present ones if nothing was. */
  #spreadFirsts: readonly number[]

  constructor(scope: Scope, recordWords: number) {
    this.#limits = scope.limits.map(({ name }) => name)
    this.#rules = scope.limits.map(({ rule }) => rule)
    const size = wordsOfAll(this.#rules)
    if (size > recordWords) throw tooLarge(`limiter '${scope.name}'`, size, recordWords)
    this.record = fixedDoubles(size)
    this.#firsts = firstsOf(this.#rules, (rule) => rule.words)
    this.#spreadFirsts = this.#firsts
    this.#recordWords = recordWords
    this.#ownCells = scope.limits.map(({ name, rule }) => new Part(name, rule, '', 0))
    this.cells = this.#ownCells
  }

  /** The parts of the next step. Their states are known after `clear`, `read` or `readOther`. */
  use(parts: readonly Part[]): void {
    this.cells =
      parts.length === this.#limits.length ? parts : this.#limits.map((name, k) => partNamed(parts, name) ?? (this.#ownCells[k] as Cell))
  }

  /** A record without states. */
  clear(): void {
    this.record.fill(0)
    this.read()
  }

  /** Points the cells at what was read to `record`. False if that lies otherwise: then the whole record is needed. */
  read(): boolean {
    this.#spreadFirsts = this.#firsts
    for (let k = 0; k < this.cells.length; k++) {
      const rule = this.#rules[k] as Rule
      const first = this.#firsts[k] as number
      this.#point(k, this.record, first)
      const { own, isHeld } = this.cells[k] as Cell
      const words = isHeld ? own.words : (this.record[first + 1] as number) || rule.words
      if (words !== rule.words) return false
    }
    return true
  }

  /** Points the cells at a copy of a whole record, spread out. */
  readOther(record: Float64Array): void {
    const from = firstsIn(record, this.#rules)
    const wordsAt = (rule: Rule, k: number) => writtenWords(rule, record, from[k] as number)
    const roomFor = (rule: Rule, k: number) => Math.max(rule.words, wordsAt(rule, k))
    this.#spreadFirsts = firstsOf(this.#rules, roomFor)
    const spread = new Float64Array(this.#rules.reduce((size, rule, k) => size + rule.figures.length + roomFor(rule, k), 0))
    this.#rules.forEach((rule, k) => {
      const first = from[k] as number
      spread.set(record.subarray(first, first + rule.figures.length + wordsAt(rule, k)), this.#spreadFirsts[k])
      this.#point(k, spread, this.#spreadFirsts[k] as number)
    })
  }

  /** What the cells hold, as a record. */
  packed(): Float64Array {
    const [{ s }] = this.cells as [Cell]
    for (let k = 0; k < this.cells.length; k++) this.#sign(this.cells[k] as Cell, s, this.#spreadFirsts[k] as number)
    if (s === this.record) return this.record
    const words = this.#rules.flatMap((rule, k) => {
      const first = this.#spreadFirsts[k] as number
      return [...s.subarray(first, first + rule.figures.length + writtenWords(rule, s, first))]
    })
    if (words.length > this.#recordWords) throw tooLarge('a key', words.length, this.#recordWords)
    return Float64Array.from(words)
  }

  /** When every limit is idle, if nothing else happens. */
  idleAtUs(nowUs: number): number {
    let idleInUs = 0
    for (let k = 0; k < this.cells.length; k++) {
      const { own, s, i, isHeld, changed } = this.cells[k] as Cell
      if (isHeld || changed) idleInUs = Math.max(idleInUs, own.algorithm.resetUs(own, s, i, nowUs))
    }
    return nowUs + idleInUs
  }

  #point(k: number, s: Float64Array, first: number): void {
    const rule = this.#rules[k] as Rule
    const cell = this.cells[k] as Cell
    cell.s = s
    cell.i = first + rule.figures.length
    cell.isHeld = s[first] !== 0
    cell.own = cell.isHeld ? ruleAt(rule, s, first) : rule
    cell.changed = false
  }

  /** Notes the rule that the state of a limit is written under, or how much room it has without one. */
  #sign({ own, rule, isHeld, changed }: Cell, s: Float64Array, first: number): void {
    if (changed) for (let k = 0; k < own.figures.length; k++) s[first + k] = own.figures[k] as number
    else if (!isHeld) s[first + 1] = rule.words
  }
}

function partNamed(parts: readonly Part[], name: string): Part | undefined {
  return parts.find(({ limit }) => limit === name)
}

function tooLarge(what: string, words: number, recordWords: number): SluiceError {
  return new SluiceError(
    'CONFIG',
    `${what} needs recordWords ${words}, the shared store was made with ${recordWords}: make it with sharedStore({ maxKeys, limits }), or with recordWords ${words}`,
  )
}

/** How many doubles the states of these limits take, with the numbers they were written under. */
export function wordsOfAll(rules: readonly Rule[]): number {
  return rules.reduce((words, rule) => words + rule.figures.length + rule.words, 0)
}

/** Where limits begin that lie one behind the other, each with as many words as `room` says. */
function firstsOf(rules: readonly Rule[], room: (rule: Rule, k: number) => number): number[] {
  let next = 0
  return rules.map((rule, k) => {
    const first = next
    next += rule.figures.length + room(rule, k)
    return first
  })
}

/** Where each limit begins in a record, read off the figures before it. */
function firstsIn(record: Float64Array, rules: readonly Rule[]): number[] {
  let next = 0
  return rules.map((rule) => {
    const first = next
    next += rule.figures.length + writtenWords(rule, record, first)
    return first
  })
}

/** How many words stand behind the figures that begin at `first`. */
function writtenWords(rule: Rule, words: Float64Array, first: number): number {
  return words[first] === 0 ? (words[first + 1] as number) : ruleAt(rule, words, first).words
}

/** The rules of other numbers that were met last: most keys that are written under others are written under the same ones. */
const others = new WeakMap<Rule, Rule>()

/** The rule that the figures stand for, which begin at `first`. */
function ruleAt(present: Rule, words: Float64Array, first: number): Rule {
  if (standsAt(present, words, first)) return present
  const known = others.get(present)
  if (known !== undefined && standsAt(known, words, first)) return known
  const other = present.algorithm.ruleOf([...words.subarray(first, first + present.figures.length)])
  others.set(present, other)
  return other
}

function standsAt({ figures }: Rule, words: Float64Array, first: number): boolean {
  for (let k = 0; k < figures.length; k++) if (figures[k] !== words[first + k]) return false
  return true
}
