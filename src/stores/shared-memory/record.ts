/**
 * The private copy of a record that a step works on. Each limit of the limiter has its place in it:
 * the figures of the rule that its state is written under, then its words. The first figure may be
 * 0, so one more than that is written. A limit without state has 0 there, and then how many words
 * follow.
 *
 * The words of some algorithms are more under some numbers than under others, so a record is read
 * by the figures in it: they say how many words follow. Nearly always a record lies as one of the
 * present numbers would, and is worked on where it was read to. Another one is spread out first, so
 * that each limit has room for its words under both numbers. Behind the limits lies the list of
 * holders, where there are any: holders.ts.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Cell } from '../../algorithms/decide.ts'
import { Part, type Scope } from '../step.ts'
import { fixedDoubles } from './bytes.ts'
import { dropReleased, holderWords, pairsIn } from './holders.ts'

export interface RecordCopy {
  readonly rules: readonly Rule[]
  /** Where the states begin, each behind its figures. */
  readonly starts: readonly number[]
  /**
   * The present figures as they are written, where they lie in `words`. Where all are there, every
   * limit has a state under them.
   */
  readonly figures: Float64Array
  /** Where a record is read to, and what is written: as long as one of the present numbers. */
  readonly words: Float64Array
  /**
   * One cell for each limit, in their order, for a step that has not a part for each: of those it
   * has none for, a cell of our own.
   */
  cellsFor(parts: readonly Part[]): readonly Cell[]
  /** Points the cells at a record without states. */
  clear(cells: readonly Cell[]): void
  /**
   * Points the cells at what was read to `words`. False if that lies otherwise: then the whole
   * record is needed.
   */
  load(cells: readonly Cell[]): boolean
  /** Points the cells at a copy of a whole record, spread out. */
  loadOther(cells: readonly Cell[], record: Float64Array): void
  /** Where the list of holders begins in the words that the cells point at. */
  holdersAt(cells: readonly Cell[]): number
  /**
   * How long until every limit is idle, if nothing else happens. `areTold`: whether the verdicts
   * say so already.
   */
  idleInUs(cells: readonly Cell[], nowUs: number, areTold: boolean): number
  /** What the cells hold, as a record, with its figures. */
  packed(cells: readonly Cell[]): Float64Array
}

/** A function that makes functions, as in chain.ts, and for the same reason. */
export function recordCopy(limits: Scope['limits']): RecordCopy {
  const rules = limits.map(({ rule }) => rule)
  const ownCells = limits.map(({ name, rule }) => new Part(name, rule, '', 0))
  const starts = startsOf(rules, (rule) => rule.words)
  const words = fixedDoubles(wordsOfAll(rules))
  const figures = fixedDoubles(words.length)
  for (const [k, rule] of rules.entries()) sign(rule, figures, starts[k] as number)
  const behindStates = (starts.at(-1) as number) + (rules.at(-1) as Rule).words
  const hasHolders = holderWords(rules) > 0
  /** Of what was spread out last. */
  let behindSpread = 0

  function cellsFor(parts: readonly Part[]): readonly Cell[] {
    return ownCells.map((own) => parts.find(({ limit }) => limit === own.limit) ?? own)
  }

  function clear(cells: readonly Cell[]): void {
    words.fill(0)
    load(cells)
  }

  function load(cells: readonly Cell[]): boolean {
    return cells.every((cell, k) => {
      cell.s = words
      cell.i = starts[k] as number
      return loadUnder(rules[k] as Rule, cell)
    })
  }

  function loadOther(cells: readonly Cell[], record: Float64Array): void {
    const from = startsOf(rules, (rule, _, i) => wordsAt(rule, record, i))
    const room = rules.map((rule, k) => Math.max(rule.words, wordsAt(rule, record, from[k] as number)))
    const to = startsOf(rules, (_, k) => room[k] as number)
    const end = (from.at(-1) as number) + wordsAt(rules.at(-1) as Rule, record, from.at(-1) as number)
    behindSpread = (to.at(-1) as number) + (room.at(-1) as number)
    const spread = new Float64Array(behindSpread + record.length - end + holderWords(rules))
    spread.set(record.subarray(end), behindSpread)
    rules.forEach((rule, k) => {
      const [cell, at, i] = [cells[k] as Cell, from[k] as number, to[k] as number]
      spread.set(record.subarray(at - rule.figures.length, at + wordsAt(rule, record, at)), i - rule.figures.length)
      cell.s = spread
      cell.i = i
      loadUnder(rule, cell)
    })
  }

  function holdersAt(cells: readonly Cell[]): number {
    return (cells[0] as Cell).s === words ? behindStates : behindSpread
  }

  function idleInUs(cells: readonly Cell[], nowUs: number, areTold: boolean): number {
    let us = 0
    for (let k = 0; k < cells.length; k++) {
      const { own, s, i, isHeld, changed, verdict } = cells[k] as Cell
      if (isHeld || changed) us = Math.max(us, areTold ? verdict.resetUs : own.algorithm.resetUs(own, s, i, nowUs))
    }
    return us
  }

  function packed(cells: readonly Cell[]): Float64Array {
    const [{ s }] = cells as [Cell]
    for (const { own, rule, i, isHeld, changed } of cells) {
      if (changed) sign(own, s, i)
      else if (!isHeld) s[i - rule.figures.length + 1] = rule.words
    }
    if (s === words) return s
    const states = cells.flatMap(({ rule, i }) => [...s.subarray(i - rule.figures.length, i + wordsAt(rule, s, i))])
    return Float64Array.from(hasHolders ? [...states, ...holders(cells), 0] : states)
  }

  /** What is kept of the list of holders, so that it fits whatever numbers come. */
  function holders(cells: readonly Cell[]): Float64Array {
    const [{ s }] = cells as [Cell]
    dropReleased(s, behindSpread, cells)
    return s.subarray(behindSpread, behindSpread + pairsIn(s, behindSpread) * 2)
  }

  return { rules, starts, figures, words, cellsFor, clear, load, loadOther, holdersAt, idleInUs, packed }
}

/**
 * Tells a cell under which rule its state is written. False if that takes another number of words
 * than the present one's.
 */
function loadUnder(rule: Rule, cell: Cell): boolean {
  const own = ruleAt(rule, cell.s, cell.i)
  cell.isHeld = own !== undefined
  cell.own = own ?? rule
  return wordsAt(rule, cell.s, cell.i) === rule.words
}

/**
 * How many doubles the states of these limits take, with the numbers they were written under and
 * who holds them.
 */
export function wordsOfAll(rules: readonly Rule[]): number {
  return rules.reduce((words, rule) => words + rule.figures.length + rule.words, holderWords(rules))
}

/**
 * Where the states of limits begin that lie one behind the other, each with as many words as
 * `wordsOf` says of the one that begins at `i`.
 */
function startsOf(rules: readonly Rule[], wordsOf: (rule: Rule, k: number, i: number) => number): number[] {
  let next = 0
  return rules.map((rule, k) => {
    const i = next + rule.figures.length
    next = i + wordsOf(rule, k, i)
    return i
  })
}

/** Notes the rule that the state which begins at `i` is written under. */
function sign({ figures }: Rule, s: Float64Array, i: number): void {
  for (let k = 0; k < figures.length; k++) s[i - figures.length + k] = figures[k] as number
  s[i - figures.length] = (figures[0] as number) + 1
}

/**
 * How many words the state that begins at `i` has, or the place that is kept for it. In a record
 * that was never written all figures are 0.
 */
function wordsAt(rule: Rule, s: Float64Array, i: number): number {
  const own = ruleAt(rule, s, i)
  return own === undefined ? (s[i - rule.figures.length + 1] as number) || rule.words : wordsOf(own, s, i)
}

/** How many words a state takes: a log keeps its entries under a smaller limit. */
export function wordsOf({ algorithm, words }: Rule, s: Float64Array, i: number): number {
  return algorithm.heldWords === undefined ? words : Math.max(words, algorithm.heldWords(s, i))
}

/**
 * The rules of other numbers that were met last: most keys that are written under others are
 * written under the same ones.
 */
const others = new WeakMap<Rule, Rule>()

/** The rule that the state which begins at `i` is written under, or undefined if there is none. */
function ruleAt(present: Rule, s: Float64Array, i: number): Rule | undefined {
  const { length } = present.figures
  const first = s[i - length] as number
  if (first === 0) return undefined
  if (isSigned(present, s, i)) return present
  const known = others.get(present)
  if (known !== undefined && isSigned(known, s, i)) return known
  const other = present.algorithm.ruleOf([first - 1, ...s.subarray(i - length + 1, i)])
  others.set(present, other)
  return other
}

function isSigned({ figures }: Rule, s: Float64Array, i: number): boolean {
  if ((figures[0] as number) + 1 !== s[i - figures.length]) return false
  for (let k = 1; k < figures.length; k++) if (figures[k] !== s[i - figures.length + k]) return false
  return true
}
