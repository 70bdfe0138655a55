/**
 * The level: how many permits are in use, draining at a steady pace. GCRA, token bucket and leaky bucket are three faces of it.
 *
 * It is kept as a moment, the theoretical arrival time (TAT), at which everything will have drained: one permit in use is one interval that
 * the TAT lies ahead. So time drains the level by passing, and a charge is an addition. State, in the first two words: [tatUs, part], where
 * the part counts over `rule.permits`, the unit in which one permit's interval is exact. The same level in permits is
 *
 *   (TAT - now) x permits / periodUs = whole + part / periodUs
 *
 * and both pairs are exact for ever: they are one whole number, divided by `permits` or by `periodUs`.
 *
 * A level above the capacity is booked ahead: permits that somebody holds but may not act on yet. Nothing is booked further ahead than
 * `maxAheadUs`, so a level has a ceiling, and a state found above it (a clock went wrong, an option was lowered) is cut down to it.
 *
 * In what follows `atUs` is the time that counts for the key: now, or the date of a state that carries one and is ahead of the clock.
 */
import type { Algorithm, Rule } from './algorithm.ts'
import { mulAddDiv, mulAddDivUp, mulDiv, remainder } from './arithmetic.ts'
import { fillTime, type Pace } from './rate.ts'

export const TAT = 0
export const PART = 1

export interface LevelRule extends Rule {
  /** The pace, in lowest terms: `permits` drain every `periodUs`. */
  readonly permits: number
  readonly periodUs: number
  /** The time one permit takes, and the whole capacity takes: whole microseconds and a part over `permits`. */
  readonly intervalUs: number
  readonly intervalPart: number
  readonly toleranceUs: number
  readonly tolerancePart: number
  /** Capacity and everything that may be booked ahead of it, as a time, with the part `tolerancePart`. */
  readonly ceilingUs: number
}

/** The pair that the last call below left: whole permits, and a part over `periodUs`. */
export const level: Float64Array = new Float64Array(2)

export function levelRule(algorithm: Algorithm<LevelRule>, capacity: number, pace: Pace, maxAheadUs: number): LevelRule {
  const { permits, periodUs } = pace
  const figures = Object.freeze([capacity, permits, periodUs])
  const tolerance = fillTime(capacity, pace)
  const intervalUs = mulDiv(1, periodUs, permits)
  const intervalPart = remainder[0] as number
  return Object.freeze({
    algorithm,
    capacity,
    figures,
    numbers: figures.join(' '),
    windowUs: tolerance.us + (tolerance.part > 0 ? 1 : 0),
    maxAheadUs,
    permits,
    periodUs,
    intervalUs,
    intervalPart,
    toleranceUs: tolerance.us,
    tolerancePart: tolerance.part,
    ceilingUs: tolerance.us + maxAheadUs,
  })
}

/** The rule that figures stand for: capacity, permits, periodUs. */
export function levelRuleOf(algorithm: Algorithm<LevelRule>, figures: readonly number[], maxAheadUs: number): LevelRule {
  const [capacity, permits, periodUs] = figures as [number, number, number]
  return levelRule(algorithm, capacity, { permits, periodUs }, maxAheadUs)
}

/** How far the TAT lies ahead, never below zero, as a pair of this and `debtPart`. */
export function debtUs(s: Float64Array, i: number, atUs: number): number {
  const us = (s[i + TAT] as number) - atUs
  return Math.max(us, 0)
}

export function debtPart(s: Float64Array, i: number, atUs: number): number {
  return (s[i + TAT] as number) >= atUs ? (s[i + PART] as number) : 0
}

/** How long until everything that is in use has drained: the debt, rounded up. */
export function drainedInUs(s: Float64Array, i: number, atUs: number): number {
  const us = (s[i + TAT] as number) - atUs
  if (us < 0) return 0
  return (s[i + PART] as number) > 0 ? us + 1 : us
}

/** Whole permits of the capacity that are not in use. */
export function left(rule: LevelRule, s: Float64Array, i: number, atUs: number): number {
  const us = (s[i + TAT] as number) - atUs
  if (us < 0) return rule.capacity
  return Math.max(rule.capacity - mulAddDivUp(us, rule.permits, s[i + PART] as number, rule.periodUs), 0)
}

/** How long until `cost` fits. */
export function fitsInUs(rule: LevelRule, s: Float64Array, i: number, atUs: number, cost: number): number {
  let us = debtUs(s, i, atUs) - rule.toleranceUs
  let part = debtPart(s, i, atUs) - rule.tolerancePart
  if (cost === 1) {
    us += rule.intervalUs
    part += rule.intervalPart
  } else {
    us += mulDiv(cost, rule.periodUs, rule.permits)
    part += remainder[0] as number
  }
  // The part lies between -permits and 2 x permits; any of it beyond a whole microsecond is waited out as one more.
  if (part > 0) us += part > rule.permits ? 2 : 1
  return Math.max(us, 0)
}

/** Charges `cost`: the TAT moves later. */
export function charge(rule: LevelRule, s: Float64Array, i: number, atUs: number, cost: number): void {
  const us = atUs + debtUs(s, i, atUs) + mulDiv(cost, rule.periodUs, rule.permits)
  const part = debtPart(s, i, atUs) + (remainder[0] as number)
  const carry = part >= rule.permits ? 1 : 0
  s[i + TAT] = us + carry
  s[i + PART] = part - carry * rule.permits
}

/**
 * `cutToCeiling`, `fitsInUs` and `charge` in one: tells whether `cost` fits, and charges it then. For a cost of 1, the usual one, by a
 * short form of the three.
 */
export function chargeIfFits(rule: LevelRule, s: Float64Array, i: number, atUs: number, cost: number): boolean {
  if (cost !== 1) return chargeManyIfFit(rule, s, i, atUs, cost)
  const tatUs = s[i + TAT] as number
  // `Math.max`, because a variable that is either an argument or a word of the state would be kept on the heap.
  let us = Math.max(tatUs, atUs) + rule.intervalUs
  let part = (tatUs < atUs ? 0 : (s[i + PART] as number)) + rule.intervalPart
  if (part >= rule.permits) {
    us += 1
    part -= rule.permits
  }
  const beyondUs = us - atUs - rule.toleranceUs
  if (beyondUs > 0 || (beyondUs === 0 && part > rule.tolerancePart)) {
    // What is above the ceiling does not fit, before and after it is cut down.
    cutToCeiling(rule, s, i, atUs)
    return false
  }
  s[i + TAT] = us
  s[i + PART] = part
  return true
}

function chargeManyIfFit(rule: LevelRule, s: Float64Array, i: number, atUs: number, cost: number): boolean {
  cutToCeiling(rule, s, i, atUs)
  if (fitsInUs(rule, s, i, atUs, cost) > 0) return false
  charge(rule, s, i, atUs, cost)
  return true
}

/** Gives `cost` back: the TAT moves earlier, but not before `atUs`. Tells whether there was anything to give back. */
export function giveBack(rule: LevelRule, s: Float64Array, i: number, atUs: number, cost: number): boolean {
  const us = mulDiv(cost, rule.periodUs, rule.permits)
  return moveEarlier(rule, s, i, atUs, us, remainder[0] as number)
}

/**
 * Gives a reservation back, minus what was charged after it. `mark` is how far ahead the TAT would lie if nothing had been: what it lies
 * further ahead was charged since.
 */
export function giveBackTo(
  rule: LevelRule,
  s: Float64Array,
  i: number,
  atUs: number,
  cost: number,
  markUs: number,
  markPart: number,
): boolean {
  let us = mulDiv(cost, rule.periodUs, rule.permits)
  let part = remainder[0] as number
  const afterUs = debtUs(s, i, atUs) - markUs
  const afterPart = debtPart(s, i, atUs) - markPart
  if (afterUs > 0 || (afterUs === 0 && afterPart > 0)) {
    us -= afterUs
    part -= afterPart
    if (part < 0) {
      us -= 1
      part += rule.permits
    }
    if (part >= rule.permits) {
      us += 1
      part -= rule.permits
    }
  }
  return us >= 0 && moveEarlier(rule, s, i, atUs, us, part)
}

function moveEarlier(rule: LevelRule, s: Float64Array, i: number, atUs: number, us: number, part: number): boolean {
  if ((us === 0 && part === 0) || drainedInUs(s, i, atUs) === 0) return false
  const borrow = (s[i + PART] as number) < part ? 1 : 0
  const tatUs = (s[i + TAT] as number) - us - borrow
  const past = tatUs < atUs
  s[i + PART] = past ? 0 : (s[i + PART] as number) - part + borrow * rule.permits
  s[i + TAT] = past ? atUs : tatUs
  return true
}

/** When a ticket's TAT is so far ahead and no further. */
export function reachedUs(ticket: Float64Array, aheadUs: number, aheadPart: number): number {
  const us = (ticket[TAT] as number) - aheadUs
  return (ticket[PART] as number) > aheadPart ? us + 1 : us
}

/** A ticket whose TAT lies `cost` earlier. */
export function shorten(rule: LevelRule, ticket: Float64Array, cost: number): Float64Array {
  const words = ticket.slice()
  const us = (ticket[TAT] as number) - mulDiv(cost, rule.periodUs, rule.permits)
  const part = (ticket[PART] as number) - (remainder[0] as number)
  words[TAT] = part < 0 ? us - 1 : us
  words[PART] = part < 0 ? part + rule.permits : part
  return words
}

/** No honest TAT lies further ahead than the ceiling: one that does comes from a clock that stepped back. Tells whether it was cut down. */
export function cutToCeiling(rule: LevelRule, s: Float64Array, i: number, atUs: number): boolean {
  const beyondUs = (s[i + TAT] as number) - atUs - rule.ceilingUs
  if (beyondUs < 0 || (beyondUs === 0 && (s[i + PART] as number) <= rule.tolerancePart)) return false
  s[i + TAT] = atUs + rule.ceilingUs
  s[i + PART] = rule.tolerancePart
  return true
}

/** Changed numbers keep what was used: the level of `written` becomes one of `rule`. */
export function renumber(written: LevelRule, rule: LevelRule, s: Float64Array, i: number, atUs: number): void {
  levelOfTime(written, debtUs(s, i, atUs), debtPart(s, i, atUs))
  carryOver(written, rule)
  putLevel(rule, s, i, atUs, level[0] as number, level[1] as number)
}

/** Leaves what a time stands for: (us, part over permits) of draining, as permits. */
export function levelOfTime(rule: LevelRule, us: number, part: number): void {
  const whole = mulAddDiv(us, rule.permits, part, rule.periodUs)
  setLevel(whole, remainder[0] as number)
}

/** The other way: makes the state one in which (whole, part over periodUs) permits are in use at `atUs`. */
export function putLevel(rule: Pace, s: Float64Array, i: number, atUs: number, whole: number, part: number): void {
  s[i + TAT] = atUs + mulAddDiv(whole, rule.periodUs, part, rule.permits)
  s[i + PART] = remainder[0] as number
}

/**
 * The level left behind is in units of `written`; expresses it in units of `rule`, rounded up, what was used clamped to the new capacity, and
 * what is booked ahead still on top of it. Whoever renumbers cuts to the ceiling afterwards.
 */
function carryOver(written: LevelRule, rule: LevelRule): void {
  const whole = level[0] as number
  const part = level[1] as number
  if (whole >= written.capacity) {
    carryParts(written, rule, Math.min(written.capacity, rule.capacity) + (whole - written.capacity), part)
  } else if (whole >= rule.capacity) {
    setLevel(rule.capacity, 0)
  } else {
    carryParts(written, rule, whole, part)
  }
}

function carryParts(written: LevelRule, rule: LevelRule, whole: number, part: number): void {
  const carried = mulAddDivUp(part, rule.periodUs, 0, written.periodUs)
  if (carried === rule.periodUs) setLevel(whole + 1, 0)
  else setLevel(whole, carried)
}

function setLevel(whole: number, part: number): void {
  level[0] = whole
  level[1] = part
}
