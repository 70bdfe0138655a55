/**
 * The one decision. Every verb on every store is this function; its twin is decide.lua.
 *
 * It is given one cell for each limit that takes part, asks all of them, and charges all or none. It works in place on the cells' states
 * and says which of them it changed: the store writes those and nothing else.
 */
import type { Rule } from './algorithm.ts'

/**
 * - `take`: charge every cell if every cell agrees. A cell agrees if the cost fits now; in a reservation (`aheadUs` of 0 or more, -1 otherwise)
 *   if the caller may act within `aheadUs`.
 * - `ask`: the same answer, nothing charged.
 * - `give`: give back, or cancel where a cell has a ticket.
 */
export type Op = 'take' | 'ask' | 'give'

/** A reservation as the store answered it: the state it left behind, and the numbers that state is in. */
export interface Ticket {
  readonly numbers: string
  readonly words: Float64Array
}

/** One limit's share in a decision: what is asked, and where the state lies. Stores reuse cells, so everything in them is mutable. */
export interface Cell {
  rule: Rule
  cost: number
  /** For `give`: the reservation to cancel. */
  ticket: Ticket | undefined
  s: Float64Array
  i: number
  /** The rule the state was written under; undefined when the store holds no state for this key. */
  written: Rule | undefined
  /** Set by `decide`: the state differs from what was loaded and must be written. */
  changed: boolean
}

export type Outcome = 'allowed' | 'limited' | 'impossible'

/** What one limit says, in microseconds. `remaining` and `resetUs` describe the key after the decision. */
export interface Verdict {
  outcome: Outcome
  remaining: number
  /** How long until the same call would be allowed: 0 when allowed, Infinity when impossible. */
  retryUs: number
  resetUs: number
  /** How long until the caller may act: above 0 only for a reservation and from a leaky bucket. */
  delayUs: number
  /** The store's time of the decision. What is said in microseconds counts from it. */
  atUs: number
  /** When what was charged was entered, to give it back by: `atUs`, or later where the state was ahead of the clock. `atUs` if nothing was. */
  enteredUs: number
  /** The state after a reservation, to cancel it by. */
  ticket: Ticket | undefined
  /** Whether it was not the store that decided, because it failed. */
  degraded?: boolean
}

export function emptyVerdict(): Verdict {
  return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined }
}

/** Decides `op` for all cells. The answers are written over `verdicts`, one for each cell. Tells whether the step was granted. */
export function decide(
  op: Op,
  cells: readonly Cell[],
  nowUs: number,
  aheadUs: number,
  ofUs: number,
  verdicts: readonly Verdict[],
): boolean {
  for (const cell of cells) settle(cell, nowUs)
  const granted = op === 'give' ? giveAll(cells, nowUs, ofUs, verdicts) : askAll(cells, nowUs, aheadUs, verdicts)
  const taken = op === 'take' && granted
  if (taken) {
    for (const cell of cells) charge(cell, nowUs)
  }
  for (let k = 0; k < cells.length; k++) {
    const { rule, s, i, cost } = cells[k] as Cell
    const verdict = verdicts[k] as Verdict
    describe(rule, s, i, nowUs, verdict)
    const charged = taken && cost > 0
    verdict.enteredUs = charged ? rule.algorithm.enteredUs(s, i, nowUs) : nowUs
    // What cannot be booked ahead cannot be cancelled either, so it needs no ticket.
    const reserved = charged && aheadUs >= 0 && rule.algorithm.bookable
    verdict.ticket = reserved ? ticketOf(rule, s, i) : undefined
  }
  return granted
}

/** `take` for one limit whose state was written under the same numbers, by the short form. `cost` is from 1 to the capacity. */
export function takeOne(rule: Rule, s: Float64Array, i: number, nowUs: number, cost: number, verdict: Verdict): void {
  const { algorithm } = rule
  const delayUs = algorithm.delayUs === undefined ? 0 : settledDelayUs(rule, s, i, nowUs)
  const taken = algorithm.tryTake(rule, s, i, nowUs, cost)
  verdict.outcome = taken ? 'allowed' : 'limited'
  verdict.retryUs = taken ? 0 : algorithm.waitUs(rule, s, i, nowUs, cost)
  verdict.delayUs = taken ? delayUs : 0
  verdict.atUs = nowUs
  verdict.enteredUs = taken ? algorithm.enteredUs(s, i, nowUs) : nowUs
  verdict.remaining = algorithm.remaining(rule, s, i, nowUs)
  verdict.resetUs = algorithm.resetUs(rule, s, i, nowUs)
}

function settledDelayUs(rule: Rule, s: Float64Array, i: number, nowUs: number): number {
  rule.algorithm.settle(rule, rule, s, i, nowUs)
  return rule.algorithm.delayUs?.(rule, s, i, nowUs) ?? 0
}

function settle(cell: Cell, nowUs: number): void {
  const { rule, written } = cell
  if (written === undefined) {
    rule.algorithm.fresh(rule, cell.s, cell.i, nowUs)
    cell.changed = false
  } else {
    cell.changed = rule.algorithm.settle(rule, written, cell.s, cell.i, nowUs)
  }
}

function askAll(cells: readonly Cell[], nowUs: number, aheadUs: number, verdicts: readonly Verdict[]): boolean {
  let granted = true
  for (let k = 0; k < cells.length; k++) {
    const { rule, s, i, cost } = cells[k] as Cell
    if (!ask(rule, s, i, nowUs, cost, aheadUs, verdicts[k] as Verdict)) granted = false
  }
  return granted
}

function ask(rule: Rule, s: Float64Array, i: number, nowUs: number, cost: number, aheadUs: number, verdict: Verdict): boolean {
  const { algorithm } = rule
  if (cost > rule.capacity) return answer(verdict, 'impossible', Number.POSITIVE_INFINITY, 0)
  if (cost === 0) return answer(verdict, 'allowed', 0, 0)
  const waitUs = algorithm.waitUs(rule, s, i, nowUs, cost)
  const actUs = algorithm.delayUs === undefined ? waitUs : algorithm.delayUs(rule, s, i, nowUs)
  // A reservation is bounded by when it may act, an ordinary charge only by whether it fits.
  const untilUs = aheadUs >= 0 ? actUs : waitUs
  const allowedAheadUs = algorithm.bookable && aheadUs >= 0 ? aheadUs : 0
  if (untilUs > allowedAheadUs) return answer(verdict, 'limited', untilUs - allowedAheadUs, 0)
  return answer(verdict, 'allowed', 0, actUs)
}

function answer(verdict: Verdict, outcome: Outcome, retryUs: number, delayUs: number): boolean {
  verdict.outcome = outcome
  verdict.retryUs = retryUs
  verdict.delayUs = delayUs
  return outcome === 'allowed'
}

/** Cost 0 is a question: it charges nothing and creates no key. */
function charge(cell: Cell, nowUs: number): void {
  if (cell.cost === 0) return
  cell.rule.algorithm.take(cell.rule, cell.s, cell.i, nowUs, cell.cost)
  cell.changed = true
}

function giveAll(cells: readonly Cell[], nowUs: number, ofUs: number, verdicts: readonly Verdict[]): boolean {
  for (let k = 0; k < cells.length; k++) {
    giveBack(cells[k] as Cell, nowUs, ofUs)
    answer(verdicts[k] as Verdict, 'allowed', 0, 0)
  }
  return true
}

/** Giving back never creates a key. A reservation made under other numbers is not given back: its hole drains. */
function giveBack(cell: Cell, nowUs: number, ofUs: number): void {
  const { rule, ticket, cost } = cell
  if (cell.written === undefined || cost === 0) return
  const { algorithm } = rule
  if (ticket === undefined) {
    if (algorithm.give(rule, cell.s, cell.i, nowUs, cost, ofUs)) cell.changed = true
  } else if (ticket.numbers === rule.numbers) {
    if (algorithm.cancel(rule, cell.s, cell.i, nowUs, cost, ticket.words)) cell.changed = true
  }
}

function describe(rule: Rule, s: Float64Array, i: number, nowUs: number, verdict: Verdict): void {
  verdict.atUs = nowUs
  verdict.remaining = rule.algorithm.remaining(rule, s, i, nowUs)
  verdict.resetUs = rule.algorithm.resetUs(rule, s, i, nowUs)
}

function ticketOf(rule: Rule, s: Float64Array, i: number): Ticket {
  return { numbers: rule.numbers, words: s.slice(i, i + rule.algorithm.words(rule)) }
}
