/**
 * The one decision. Every verb on every store is this function; in Redis it is the same one,
 * generated as Lua.
 *
 * It is given one cell for each limit that takes part, asks all of them, and charges all or none.
 * It works in place on the cells' states and says which of them it changed: the store writes those
 * and nothing else.
 */
import { type Algorithm, type Charged, figuresNamed, type Rule } from './algorithm.ts'
import { clearWords } from './words.ts'

/**
 * - `take`: charge every cell if every cell agrees. A cell agrees if the cost fits now; in a
 *   reservation (`aheadUs` of 0 or more, -1 otherwise) if the caller may act within `aheadUs`.
 * - `ask`: the same answer, nothing charged.
 * - `give`: give back as of now, or what was given out under the token `ofUs`. Each by itself:
 *   `limited` where there was nothing to give back.
 * - `charge`: charge every cell, whether it fits or not. `limited` where more is in use then than
 *   the capacity: debt.
 * - `settle`: charge what was too little, or give back what was too much (a cost below 0) of what
 *   was charged at `ofUs`. Each by itself: `limited` where nothing changed. What remains is not told.
 * - `renew`: let the leases run anew whose tokens are in the ticket. Each by itself: `limited`
 *   where one is no longer held. `given`: how many are.
 * - `line`: `take`, and if it is refused, a place in line where a limit has one. The ticket is the
 *   place so far. `given`: 1 if that was kept, 0 if there is a new one, which is told by
 *   `enteredUs`, -1 if there is none.
 */
export type Op = 'take' | 'ask' | 'give' | 'charge' | 'settle' | 'renew' | 'line'

/**
 * What only the store reads: a charge of a level that is settled (`Charged`), tokens to renew, or a
 * place in line.
 */
export interface Ticket {
  readonly numbers: string
  readonly words: Float64Array
}

/**
 * One limit's share in a decision: what is asked, and where the state lies. Stores reuse cells, so
 * everything in them is mutable.
 */
export interface Cell {
  /** The numbers of the caller. */
  rule: Rule
  cost: number
  /** For `settle`: the charge of a level. For `renew`: tokens. For `line`: the place. */
  ticket: Ticket | undefined
  s: Float64Array
  i: number
  /**
   * The rule that the state is written under: `rule` where there is none. After a charge it is
   * `rule`.
   */
  own: Rule
  /** Whether the store holds a state for this key. If not, `decide` clears the words first. */
  isHeld: boolean
  /** Set by `decide`: the state differs from what was loaded and must be written, under `own`. */
  changed: boolean
  /** The answer of `decide`, overwritten each time. */
  readonly verdict: Verdict
}

export type Outcome = 'allowed' | 'limited' | 'impossible'

/**
 * What a store may say instead of `limited`: it has no room for the key, or did not answer, and the
 * failure policy refuses.
 */
export type StoreRefusal = 'full' | 'store'

/**
 * The answer of one limit, in microseconds. `remaining` and `resetUs` describe the key after the
 * decision. A settlement tells `outcome`, `atUs` and `given`; its `resetUs` is for the store.
 */
export interface Verdict {
  outcome: Outcome | StoreRefusal
  remaining: number
  /** How long until the same call would be allowed: 0 when allowed, Infinity when impossible. */
  retryUs: number
  resetUs: number
  /**
   * How long until the caller may act: above 0 only for a reservation, also one that is refused,
   * and from a leaky bucket.
   */
  delayUs: number
  /** The store's time of the decision. What is said in microseconds counts from it. */
  atUs: number
  /**
   * When what was charged was entered, to give it back by: `atUs`, or later where the state was
   * ahead of the clock. `atUs` if nothing was.
   */
  enteredUs: number
  /** Of what gives back: how many whole permits that were. */
  given?: number
  /** Whether it was not the store that decided, because it failed. */
  degraded?: boolean
}

export function emptyVerdict(): Verdict {
  return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, given: 0 }
}

/**
 * Decides `op` for all cells, and writes the verdict of each; without `isTold` only in part. Tells
 * whether all agreed. `aheadUs`: for a reservation, -1 otherwise. `ofUs`: for what gives a charge
 * back, when that was entered, or -1.
 */
export function decide(op: Op, cells: readonly Cell[], nowUs: number, aheadUs: number, ofUs: number, isTold: boolean): boolean {
  if (op !== 'take' && op !== 'ask' && op !== 'give') return op === 'line' ? takeInLine(cells, nowUs) : writeDown(op, cells, nowUs, ofUs)
  const count = cells.length
  let granted = true
  for (let k = 0; k < count; k += 1) {
    const cell = cells[k] as Cell
    const own = cell.own
    const rule = cell.rule
    const cost = cell.cost
    cell.changed = cell.isHeld ? own.algorithm.repair(own, cell.s, cell.i, nowUs) : clear(cell)
    if (isTold) agree(cell.verdict)
    if (op === 'give') {
      if (!giveBack(cell, nowUs, ofUs, cost, mostOfOne(cell))) granted = false
    } else if (cost > rule.capacity) {
      granted = refuse(cell.verdict, 'impossible', Number.POSITIVE_INFINITY)
    } else if (aheadUs >= 0 && rule.algorithm.bookable) {
      if (!isBookable(cell, nowUs, aheadUs)) granted = false
    } else if (cost > 0) {
      const waitUs = rule.algorithm.untilUs(own, cell.s, cell.i, nowUs, rule.capacity - cost)
      if (waitUs > 0) granted = refuse(cell.verdict, 'limited', waitUs)
      else if (isTold && rule.algorithm.spaced) cell.verdict.delayUs = dueUs(cell, nowUs)
    }
  }
  if (!granted && !isTold) return false
  const isTaken = granted && op === 'take'
  for (let k = 0; k < count; k += 1) {
    const cell = cells[k] as Cell
    let lateUs = 0
    if (isTaken && cell.cost > 0) {
      const own = cell.own
      const rule = cell.rule
      cell.changed = true
      if (own !== rule) cell.own = rule
      lateUs = rule.algorithm.charge(own, rule, cell.s, cell.i, nowUs, cell.cost)
    }
    if (isTold) describe(cell, nowUs, usedOf(cell, nowUs), lateUs)
  }
  return granted
}

function agree(verdict: Verdict): void {
  verdict.outcome = 'allowed'
  verdict.retryUs = 0
  verdict.delayUs = 0
}

/** A state of nothing. It is not worth keeping. */
function clear(cell: Cell): boolean {
  clearWords(cell.s, cell.i, cell.rule.freshWords)
  return false
}

/**
 * A reservation is bounded by when its holder may act, an ordinary charge only by whether it fits.
 * Its charge moves the state to the caller's pace: at that pace, too, what is in use may lie no
 * further ahead, or the next caller would wait for longer than a window and that.
 */
function isBookable(cell: Cell, nowUs: number, aheadUs: number): boolean {
  if (cell.cost === 0) return true
  const own = cell.own
  const rule = cell.rule
  const algorithm = rule.algorithm as Required<Algorithm>
  const actUs = dueUs(cell, nowUs)
  const movesInUs = own === rule ? 0 : algorithm.movesInUs(own, rule, cell.s, cell.i, nowUs, roomOf(cell), aheadUs)
  const waitUs = Math.max(actUs - aheadUs, movesInUs)
  cell.verdict.delayUs = actUs
  return waitUs <= 0 || refuse(cell.verdict, 'limited', waitUs)
}

/**
 * How long until a caller that is charged now may act, at the pace of the state: when the cost
 * fits, or in a queue when all that was there before has left.
 */
function dueUs(cell: Cell, nowUs: number): number {
  return cell.rule.algorithm.untilUs(cell.own, cell.s, cell.i, nowUs, roomOf(cell))
}

/** How many permits may be in use, at most, when the caller acts. */
function roomOf(cell: Cell): number {
  return cell.rule.algorithm.spaced ? 0 : cell.rule.capacity - cell.cost
}

function refuse(verdict: Verdict, outcome: Outcome, retryUs: number): boolean {
  verdict.outcome = outcome
  verdict.retryUs = retryUs
  return false
}

/** Writes down what was used, whether it fits or not. */
function writeDown(op: Op, cells: readonly Cell[], nowUs: number, ofUs: number): boolean {
  let granted = true
  for (let k = 0; k < cells.length; k += 1) {
    const cell = cells[k] as Cell
    cell.changed = cell.isHeld ? cell.own.algorithm.repair(cell.own, cell.s, cell.i, nowUs) : clear(cell)
    agree(cell.verdict)
    cell.verdict.given = 0
    if (op === 'charge') {
      if (!isChargedWithin(cell, nowUs)) granted = false
    } else if (op === 'settle') {
      if (!settle(cell, nowUs, ofUs)) granted = false
      date(cell, nowUs, 0)
    } else {
      if (!isRenewed(cell, nowUs)) granted = false
      describe(cell, nowUs, usedOf(cell, nowUs), 0)
    }
  }
  return granted
}

function isRenewed(cell: Cell, nowUs: number): boolean {
  const tokens = (cell.ticket as Ticket).words
  const renewed = (cell.own.algorithm as Required<Algorithm>).renew(cell.own, cell.rule, cell.s, cell.i, nowUs, tokens, cell.cost)
  if (renewed > 0) cell.changed = true
  cell.verdict.given = renewed
  return renewed === tokens.length || refuse(cell.verdict, 'limited', 0)
}

/** Takes, or keeps the caller's place in line. One whose cost can never fit has none. */
function takeInLine(cells: readonly Cell[], nowUs: number): boolean {
  let granted = true
  let isPossible = true
  for (let k = 0; k < cells.length; k += 1) {
    const cell = cells[k] as Cell
    cell.changed = cell.isHeld ? cell.own.algorithm.repair(cell.own, cell.s, cell.i, nowUs) : clear(cell)
    agree(cell.verdict)
    cell.verdict.given = 0
    if (cell.cost > cell.rule.capacity) {
      isPossible = refuse(cell.verdict, 'impossible', Number.POSITIVE_INFINITY)
      granted = false
    } else if (cell.cost > 0 && !fitsInLine(cell, nowUs)) granted = false
  }
  for (let k = 0; k < cells.length; k += 1) {
    const cell = cells[k] as Cell
    if (granted || !isPossible) leaveLine(cell, nowUs)
    const lateUs = granted ? charge(cell, nowUs, cell.cost) : isPossible ? standInLine(cell, nowUs) : 0
    describe(cell, nowUs, usedOf(cell, nowUs), lateUs)
  }
  return granted
}

function fitsInLine(cell: Cell, nowUs: number): boolean {
  const own = cell.own
  const waitUs = own.algorithm.untilUs(own, cell.s, cell.i, nowUs, cell.rule.capacity - cell.cost, placeOf(cell))
  if (waitUs > 0) return refuse(cell.verdict, 'limited', waitUs)
  if (cell.rule.algorithm.spaced) cell.verdict.delayUs = dueUs(cell, nowUs)
  return true
}

function placeOf(cell: Cell): number {
  return cell.ticket === undefined ? 0 : (cell.ticket.words[0] as number)
}

function leaveLine(cell: Cell, nowUs: number): void {
  if (cell.ticket === undefined || cell.own.algorithm.stand === undefined) return
  if (cell.own.algorithm.giveBack(cell.own, cell.s, cell.i, nowUs, 0, placeOf(cell), undefined) >= 0) cell.changed = true
}

/** Answers how much later than now the place is, if it is a new one. */
function standInLine(cell: Cell, nowUs: number): number {
  if (cell.cost === 0 || cell.own.algorithm.stand === undefined) return 0
  const before = placeOf(cell)
  const place = cell.own.algorithm.stand(cell.own, cell.rule, cell.s, cell.i, nowUs, before)
  if (place > 0) cell.changed = true
  cell.verdict.given = place < 0 ? -1 : place === before ? 1 : 0
  return cell.verdict.given === 0 ? place - nowUs : 0
}

/**
 * Charges as much as there may be, and describes the key. Where there is debt then, it limits until
 * one permit is free.
 */
function isChargedWithin(cell: Cell, nowUs: number): boolean {
  const usedBefore = usedOf(cell, nowUs)
  const cost = Math.min(cell.cost, cell.rule.mostUsed - usedBefore)
  const isSameRule = cell.own === cell.rule
  const lateUs = charge(cell, nowUs, cost)
  // Under other numbers a charge may drop what counted only by the old ones.
  const used = isSameRule ? usedBefore + Math.max(0, cost) : usedOf(cell, nowUs)
  describe(cell, nowUs, used, lateUs)
  const capacity = cell.rule.capacity
  if (used <= capacity) return true
  if (capacity === 0) return refuse(cell.verdict, 'impossible', Number.POSITIVE_INFINITY)
  return refuse(cell.verdict, 'limited', cell.own.algorithm.untilUs(cell.own, cell.s, cell.i, nowUs, capacity - 1))
}

/** Answers how much later than now it was entered. */
function charge(cell: Cell, nowUs: number, cost: number): number {
  if (cost <= 0) return 0
  const own = cell.own
  cell.changed = true
  if (own !== cell.rule) cell.own = cell.rule
  return cell.rule.algorithm.charge(own, cell.rule, cell.s, cell.i, nowUs, cost)
}

function settle(cell: Cell, nowUs: number, ofUs: number): boolean {
  if (cell.cost < 0) return giveBack(cell, nowUs, ofUs, -cell.cost, -cell.cost)
  if (cell.cost === 0) return true
  const cost = Math.min(cell.cost, cell.rule.mostUsed - usedOf(cell, nowUs))
  charge(cell, nowUs, cost)
  return cost > 0 || refuse(cell.verdict, 'limited', 0)
}

/** What one call can have taken, by the numbers of the state or by the caller's. */
function mostOfOne(cell: Cell): number {
  return Math.max(cell.own.capacity, cell.rule.capacity)
}

/**
 * Giving back never creates a key, and is in the numbers that the state is written under, which
 * stay. It is `limited` where nothing was given back: nothing is in use, or nothing of that charge.
 */
function giveBack(cell: Cell, nowUs: number, ofUs: number, cost: number, most: number): boolean {
  cell.verdict.given = 0
  if (cost === 0) return true
  const given = cell.isHeld && most > 0 ? givenBack(cell, nowUs, ofUs, Math.min(cost, most)) : -1
  if (given < 0) return refuse(cell.verdict, 'limited', 0)
  cell.verdict.given = given
  cell.changed = true
  return true
}

function givenBack(cell: Cell, nowUs: number, ofUs: number, cost: number): number {
  const own = cell.own
  const charged = cell.ticket === undefined ? undefined : chargedBy(own, cell.ticket)
  return own.algorithm.giveBack(own, cell.s, cell.i, nowUs, cost, ofUs, charged)
}

function chargedBy(own: Rule, ticket: Ticket): Charged {
  const rule = ticket.numbers === own.numbers ? own : own.algorithm.ruleOf(figuresNamed(ticket.numbers))
  return { rule, words: ticket.words }
}

function usedOf(cell: Cell, nowUs: number): number {
  return cell.own.algorithm.used(cell.own, cell.s, cell.i, nowUs)
}

/**
 * Sets how much is left of the caller's capacity, and when the key is idle, by the state after the
 * decision, of which so much is in use.
 */
function describe(cell: Cell, nowUs: number, used: number, lateUs: number): void {
  cell.verdict.remaining = Math.max(0, cell.rule.capacity - used)
  date(cell, nowUs, lateUs)
}

/** Sets the times of a verdict: when it was decided and entered, and when the key is idle. */
function date(cell: Cell, nowUs: number, lateUs: number): void {
  const own = cell.own
  const verdict = cell.verdict
  verdict.resetUs = own.algorithm.resetUs(own, cell.s, cell.i, nowUs)
  verdict.atUs = nowUs
  verdict.enteredUs = nowUs + lateUs
}
