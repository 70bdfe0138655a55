/**
 * The level: how many permits are in use, draining at a steady pace. GCRA, token bucket and leaky
 * bucket are three faces of it.
 *
 * It is kept as a moment, the theoretical arrival time (TAT), at which everything will have
 * drained: one permit in use is one interval that the TAT lies ahead. So time drains the level by
 * passing, and a charge is an addition. State: [tatUs, part, atUs]. The part counts over
 * `own.permits`, the unit in which one permit's interval is exact; `atUs` is the time of writing.
 * The same level in permits is
 *
 *   (TAT - now) x permits / periodUs = whole + part / periodUs
 *
 * and both pairs are exact for ever: they are one whole number, divided by `permits` or by
 * `periodUs`.
 *
 * A permit is `periodUs` units, of which `permits` drain in each microsecond. So a level is always
 * a whole number of units. A level above the capacity is booked ahead, or debt.
 */
import type { Algorithm, Charged, Rule } from './algorithm.ts'
import { greatestCommonDivisor, mulAddDiv, mulAddDivUp, mulDiv, remainder } from './arithmetic.ts'
import { DEFAULT_AHEAD_US, MAX_PERMITS, MAX_PERMITS_PER_US, MOST_UNITS } from './rate.ts'

// Not exported: what another module exports is no constant to V8.
const TAT = 0
const PART = 1
const AT = 2
const WORDS = 3

// What is known of a charge that is given back (`Charged`).
const DRAINED = 0
const ENTERED = 1
const DUE = 2
const GIVEN = 3

export interface LevelRule extends Rule {
  /** The pace, in lowest terms: `permits` drain every `periodUs`. */
  readonly permits: number
  readonly periodUs: number
  /**
   * The time that one permit takes, the whole capacity takes, and all of it but one permit: whole
   * microseconds and a part over `permits`.
   */
  readonly intervalUs: number
  readonly intervalPart: number
  readonly toleranceUs: number
  readonly tolerancePart: number
  readonly lessOneUs: number
  readonly lessOnePart: number
}

/** `figures`: capacity, permits, periodUs. */
export function levelRule(algorithm: Algorithm<LevelRule>, figures: readonly number[]): LevelRule {
  const capacity = figures[0] as number
  const permits = figures[1] as number
  const periodUs = figures[2] as number
  const intervalUs = mulDiv(1, periodUs, permits)
  const intervalPart = remainder[0] as number
  const toleranceUs = mulDiv(capacity, periodUs, permits)
  const tolerancePart = remainder[0] as number
  const lessOneUs = mulDiv(capacity - 1, periodUs, permits)
  const lessOnePart = remainder[0] as number
  return Object.freeze({
    algorithm,
    capacity,
    figures,
    numbers: figures.join(' '),
    windowUs: tolerancePart > 0 ? toleranceUs + 1 : toleranceUs,
    words: WORDS,
    freshWords: WORDS,
    mostUsed: Math.floor(MOST_UNITS / periodUs),
    permits,
    periodUs,
    intervalUs,
    intervalPart,
    toleranceUs,
    tolerancePart,
    lessOneUs,
    lessOnePart,
  })
}

/**
 * The time that counts for the key: an earlier reading of the clock counts as the time of writing.
 */
function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/**
 * Whether these figures are those of a level: a pace in lowest terms that can be counted exactly,
 * with room for twice the capacity and for what is booked ahead by default.
 */
export function isLevel(figures: readonly number[]): boolean {
  const capacity = figures[0] as number
  const permits = figures[1] as number
  const periodUs = figures[2] as number
  if (capacity > MAX_PERMITS || permits < 1 || periodUs < 1 || permits > MAX_PERMITS_PER_US * periodUs) return false
  if (2 * capacity * periodUs + DEFAULT_AHEAD_US * permits >= MOST_UNITS) return false
  return greatestCommonDivisor(permits, periodUs) === 1
}

/** Whether these words are a level: no more units than may be in use, and a part that is one. */
export function isLevelState(own: LevelRule, s: Float64Array, i: number): boolean {
  const us = (s[i + TAT] as number) - (s[i + AT] as number)
  return (s[i + PART] as number) < own.permits && us * own.permits <= MOST_UNITS
}

export function levelUsed(own: LevelRule, s: Float64Array, i: number, nowUs: number): number {
  const us = (s[i + TAT] as number) - effectiveUs(s, i, nowUs)
  return us < 0 ? 0 : mulAddDivUp(us, own.permits, s[i + PART] as number, own.periodUs)
}

export function levelUntilUs(own: LevelRule, s: Float64Array, i: number, nowUs: number, room: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  let us = (s[i + TAT] as number) - atUs
  if (us < 0) return 0
  let part = s[i + PART] as number
  if (room === own.capacity - 1) {
    us -= own.lessOneUs
    part -= own.lessOnePart
  } else {
    us -= spanUs(own, room)
    part -= remainder[0] as number
  }
  // The part lies between -permits and permits; any of it beyond a whole microsecond is waited out
  // as one more.
  if (part > 0) us += 1
  return us > 0 ? us + atUs - nowUs : 0
}

export function levelMovesInUs(
  own: LevelRule,
  to: LevelRule,
  s: Float64Array,
  i: number,
  nowUs: number,
  room: number,
  aheadUs: number,
): number {
  if (isSamePace(own, to)) return 0
  const atUs = effectiveUs(s, i, nowUs)
  const over = unitsAt(own, s, i, atUs) - mulDiv(room * to.periodUs + aheadUs * to.permits, own.periodUs, to.periodUs)
  return over > 0 ? Math.ceil(over / own.permits) + atUs - nowUs : 0
}

/** A level that has drained is idle once its time no longer stands still. */
export function levelResetUs(_own: LevelRule, s: Float64Array, i: number, nowUs: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  const us = (s[i + TAT] as number) - atUs
  if (us < 0) return atUs - nowUs
  return us + atUs - nowUs + ((s[i + PART] as number) > 0 ? 1 : 0)
}

/** Charges `cost`: the TAT moves later. */
export function levelCharge(own: LevelRule, to: LevelRule, s: Float64Array, i: number, nowUs: number, cost: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  if (own !== to) convert(own, to, s, i, atUs)
  let us = s[i + TAT] as number
  let part = s[i + PART] as number
  if (us < atUs) {
    us = atUs
    part = 0
  }
  if (cost === 1) {
    us += to.intervalUs
    part += to.intervalPart
  } else {
    us += spanUs(to, cost)
    part += remainder[0] as number
  }
  if (part >= to.permits) {
    us += 1
    part -= to.permits
  }
  s[i + TAT] = us
  s[i + PART] = part
  s[i + AT] = atUs
  return atUs - nowUs
}

/** A state dated more than one window ahead is re-dated to now. */
export function levelRepair(own: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  return (s[i + AT] as number) - nowUs > own.windowUs && dateToNow(s, i, nowUs)
}

function dateToNow(s: Float64Array, i: number, nowUs: number): boolean {
  const aheadUs = (s[i + AT] as number) - nowUs
  s[i + TAT] = (s[i + TAT] as number) - aheadUs
  s[i + AT] = nowUs
  return true
}

/**
 * Gives `cost` back: as of now, or of a charge no more than still counts of it. Answers how many
 * whole permits that are, -1 if there was nothing to give back.
 */
export function levelGiveBack(
  own: LevelRule,
  s: Float64Array,
  i: number,
  nowUs: number,
  cost: number,
  _ofUs: number,
  charge: Charged<LevelRule> | undefined,
): number {
  const atUs = effectiveUs(s, i, nowUs)
  const level = unitsAt(own, s, i, atUs)
  if (level === 0) return -1
  // So that the product is exact.
  const asked = Math.min(cost, own.mostUsed) * own.periodUs
  const units = charge === undefined ? asked : Math.min(asked, unitsOf(own, level, atUs, cost, asked, charge))
  if (units <= 0) return -1
  const left = Math.max(0, level - units)
  const us = Math.floor(left / own.permits)
  s[i + TAT] = atUs + us
  s[i + PART] = left - us * own.permits
  s[i + AT] = atUs
  return Math.floor(units / own.periodUs)
}

/**
 * How much of `cost` may come back of a charge. Before its time no caller has used it, but those
 * who booked after it have been told their times: its cost less what was charged after it. From its
 * time on as much as would still be in use of it, had no call come after it.
 *
 * The charge says when it would have drained, rounded up to a microsecond. Where other charges came
 * after it, that microsecond may belong to them. At another pace its share of that time is all that
 * is known: whole permits, and none before its time.
 */
function unitsOf(own: LevelRule, level: number, atUs: number, cost: number, asked: number, charge: Charged<LevelRule>): number {
  const words = charge.words
  const drainedUs = words[DRAINED] as number
  const enteredUs = words[ENTERED] as number
  // Where the clock stepped back, a time before the charge counts as its time.
  const timeUs = Math.max(atUs, enteredUs)
  const isBefore = timeUs < (words[DUE] as number)
  if (drainedUs <= timeUs) return 0
  if (!isSamePace(own, charge.rule)) return isBefore ? 0 : mulDiv(cost, drainedUs - timeUs, drainedUs - enteredUs) * own.periodUs
  const most = (drainedUs - timeUs) * own.permits - (words[GIVEN] as number) * own.periodUs
  const left = level > most ? most - own.permits + 1 : most
  return isBefore ? Math.min(left, asked - Math.max(0, level - left)) : left
}

/** What is in use, in units. */
function unitsAt(own: LevelRule, s: Float64Array, i: number, atUs: number): number {
  const us = (s[i + TAT] as number) - atUs
  return us < 0 ? 0 : us * own.permits + (s[i + PART] as number)
}

/** The time that so many permits take: whole microseconds, and in `remainder` the part. */
function spanUs(rule: LevelRule, permits: number): number {
  return mulDiv(permits, rule.periodUs, rule.permits)
}

/** Numbers of one pace express a level alike, whatever their capacities. */
function isSamePace(a: LevelRule, b: LevelRule): boolean {
  return a === b || (a.permits === b.permits && a.periodUs === b.periodUs)
}

/**
 * Expresses what is in use at `atUs` at another pace: every permit is kept, and what is finer than
 * the unit of `to` is rounded up.
 */
function convert(own: LevelRule, to: LevelRule, s: Float64Array, i: number, atUs: number): void {
  const us = (s[i + TAT] as number) - atUs
  if (us < 0 || isSamePace(own, to)) return
  let whole = mulAddDiv(us, own.permits, s[i + PART] as number, own.periodUs)
  let part = mulAddDivUp(remainder[0] as number, to.periodUs, 0, own.periodUs)
  if (part === to.periodUs) {
    whole += 1
    part = 0
  }
  s[i + TAT] = atUs + mulAddDiv(whole, to.periodUs, part, to.permits)
  s[i + PART] = remainder[0] as number
}

/** The words by name: for people. */
export function levelFields(s: Float64Array, i: number): { readonly tatUs: number; readonly part: number; readonly atUs: number } {
  return { tatUs: s[i + TAT] as number, part: s[i + PART] as number, atUs: s[i + AT] as number }
}

/**
 * Whole permits in use at the time of writing, and what is left of one more, over `periodUs`: for
 * people.
 */
export function levelInPermits(own: LevelRule, s: Float64Array, i: number): { whole: number; part: number; atUs: number } {
  const { tatUs, part, atUs } = levelFields(s, i)
  const whole = mulAddDiv(Math.max(0, tatUs - atUs), own.permits, part, own.periodUs)
  return { whole, part: remainder[0] as number, atUs }
}
