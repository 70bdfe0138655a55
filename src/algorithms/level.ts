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
 * A level above the capacity is booked ahead: permits that a caller holds but may not act on yet.
 */
import type { Algorithm, Booked, Rule } from './algorithm.ts'
import { mulAddDiv, mulAddDivUp, mulDiv, remainder } from './arithmetic.ts'

// Not exported: what another module exports is no constant to V8.
const TAT = 0
const PART = 1
const AT = 2
const WORDS = 3
/** The time of writing of a state that has none. */
const NO_DATE = -1

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

/**
 * Nothing takes longer than this to drain: 37,000 days, a full capacity and a year. What is charged
 * beyond it is dropped. Times stay below 2^53.
 */
const MOST_US = 37_000 * 86_400_000_000

/** A state in other numbers, while a question is asked about it. */
const scratch: Float64Array = new Float64Array(WORDS)

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

/** A level that has drained is idle once its time no longer stands still. */
export function levelResetUs(_own: LevelRule, s: Float64Array, i: number, nowUs: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  const us = (s[i + TAT] as number) - atUs
  if (us < 0) return atUs - nowUs
  return us + atUs - nowUs + ((s[i + PART] as number) > 0 ? 1 : 0)
}

/** How long until `cost` fits, once the level is expressed at the pace of `to`. */
export function levelDueUs(own: LevelRule, to: LevelRule, s: Float64Array, i: number, nowUs: number, cost: number): number {
  if (isSamePace(own, to)) return levelUntilUs(to, s, i, nowUs, to.capacity - cost)
  return untilUsAtPaceOf(own, to, s, i, nowUs, to.capacity - cost)
}

/** How long until all that was there before has drained, at the pace of `to`. */
export function levelDrainedUs(own: LevelRule, to: LevelRule, s: Float64Array, i: number, nowUs: number): number {
  if (isSamePace(own, to)) return levelUntilUs(to, s, i, nowUs, 0)
  return untilUsAtPaceOf(own, to, s, i, nowUs, 0)
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
  if (us - atUs > MOST_US) {
    us = atUs + MOST_US
    part = 0
  }
  s[i + TAT] = us
  s[i + PART] = part
  s[i + AT] = atUs
  return atUs - nowUs
}

/** Whether the state carries the time of its writing. */
export function isDated(s: Float64Array, i: number): boolean {
  return (s[i + AT] as number) >= 0
}

/**
 * Drops the date of a level that is no more than the capacity. One that is ahead of the clock
 * stays: without it the level would rise.
 */
export function dateIfBooked(own: LevelRule, s: Float64Array, i: number, nowUs: number): void {
  if (s[i + AT] === nowUs && isWithinCapacity(own, s, i, nowUs)) s[i + AT] = NO_DATE
}

/** Lowers the level to the capacity. */
export function cutToCapacity(own: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  s[i + TAT] = nowUs + own.toleranceUs
  s[i + PART] = own.tolerancePart
  return true
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
 * Without `ofUs` the cost was charged just now. With it, permits that have drained since are not
 * given back. The level before the charge is not known, so it is taken to have drained from the
 * beginning.
 */
export function levelGiveBack(own: LevelRule, s: Float64Array, i: number, nowUs: number, cost: number, ofUs: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  const isFresh = ofUs < 0 || ofUs >= atUs
  return giveUpTo(own, s, i, atUs, cost, isFresh ? Number.POSITIVE_INFINITY : spanUs(own, cost) - (atUs - ofUs))
}

/**
 * Gives back no more than would still be in use of a charge, had no call come after it: `left` says
 * when it would have drained, rounded up to a microsecond. Where another charge came after it, that
 * microsecond may belong to that one.
 */
export function levelGiveRest(own: LevelRule, s: Float64Array, i: number, nowUs: number, cost: number, left: Booked<LevelRule>): number {
  const atUs = effectiveUs(s, i, nowUs)
  const rule = left.rule
  const drainedUs = left.words[TAT] as number
  const tatUs = s[i + TAT] as number
  const isSame = isSamePace(own, rule)
  const isLast = isSame && (tatUs < drainedUs || (tatUs === drainedUs && (s[i + PART] as number) === 0))
  const mostUs = drainedUs - atUs - (rule.permits === 1 || isLast ? 0 : 1)
  if (isSame) return giveUpTo(own, s, i, atUs, cost, mostUs)
  // Its pace would not have changed.
  const most = mostUs > 0 ? mulDiv(mostUs, rule.permits, rule.periodUs) : 0
  return giveUpTo(own, s, i, atUs, Math.min(cost, most), Number.POSITIVE_INFINITY)
}

/**
 * Gives `cost` back, but no more than drains in `mostUs`. Answers how many whole permits that are,
 * -1 if there was nothing to give back.
 */
function giveUpTo(own: LevelRule, s: Float64Array, i: number, atUs: number, cost: number, mostUs: number): number {
  if (mostUs <= 0) return -1
  const us = spanUs(own, cost)
  const part = remainder[0] as number
  if (us < mostUs) return moveEarlier(own, s, i, atUs, us, part) ? cost : -1
  const given = Math.min(cost, mulDiv(mostUs, own.permits, own.periodUs))
  return moveEarlier(own, s, i, atUs, mostUs, 0) ? given : -1
}

/**
 * Gives a reservation back, minus what was charged after it, as long as its TAT lies further ahead
 * than its turn: then its time has come. (turnUs, turnPart): how far ahead it lies when its time
 * comes.
 */
export function levelCancel(
  own: LevelRule,
  s: Float64Array,
  i: number,
  nowUs: number,
  cost: number,
  booked: Booked<LevelRule>,
  turnUs: number,
  turnPart: number,
): number {
  if (!isSamePace(own, booked.rule)) return -1
  const atUs = effectiveUs(s, i, nowUs)
  const ticket = booked.words
  // How far ahead the TAT would lie if nothing had been charged since.
  const markUs = (ticket[TAT] as number) - effectiveUs(ticket, 0, atUs)
  const markPart = ticket[PART] as number
  if (markUs < turnUs || (markUs === turnUs && markPart <= turnPart)) return -1
  let us = spanUs(own, cost)
  let part = remainder[0] as number
  const afterUs = (s[i + TAT] as number) - atUs - markUs
  const afterPart = (s[i + PART] as number) - markPart
  if (afterUs > 0 || (afterUs === 0 && afterPart > 0)) {
    us -= afterUs
    part -= afterPart
    if (part < 0) {
      us -= 1
      part += own.permits
    } else if (part >= own.permits) {
      us += 1
      part -= own.permits
    }
  }
  return us >= 0 && moveEarlier(own, s, i, atUs, us, part) ? mulAddDiv(us, own.permits, part, own.periodUs) : -1
}

/** The TAT moves earlier, but not before `atUs`. Tells whether there was anything to give back. */
function moveEarlier(own: LevelRule, s: Float64Array, i: number, atUs: number, us: number, part: number): boolean {
  const tatUs = s[i + TAT] as number
  const tatPart = s[i + PART] as number
  if ((us === 0 && part === 0) || tatUs < atUs || (tatUs === atUs && tatPart === 0)) return false
  const borrow = tatPart < part ? 1 : 0
  const earlierUs = tatUs - us - borrow
  const isPast = earlierUs < atUs
  s[i + TAT] = isPast ? atUs : earlierUs
  s[i + PART] = isPast ? 0 : tatPart - part + borrow * own.permits
  s[i + AT] = atUs
  return true
}

/** Whether the level is a microsecond or more below the capacity. */
export function isBelowCapacity(own: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  return (s[i + TAT] as number) - nowUs < own.toleranceUs
}

/** Whether the level is no more than the capacity, at the time of writing. */
export function isWithinCapacity(own: LevelRule, s: Float64Array, i: number, atUs: number): boolean {
  const aheadUs = (s[i + TAT] as number) - atUs
  return aheadUs < own.toleranceUs || (aheadUs === own.toleranceUs && (s[i + PART] as number) <= own.tolerancePart)
}

/** When a ticket's TAT is so far ahead and no further. */
export function reachedUs(ticket: Float64Array, aheadUs: number, aheadPart: number): number {
  const us = (ticket[TAT] as number) - aheadUs
  return (ticket[PART] as number) > aheadPart ? us + 1 : us
}

/** A ticket whose TAT lies `cost` earlier. */
export function shorten(rule: LevelRule, ticket: Float64Array, cost: number): Float64Array {
  const words = ticket.slice()
  const us = (ticket[TAT] as number) - spanUs(rule, cost)
  const part = (ticket[PART] as number) - (remainder[0] as number)
  words[TAT] = part < 0 ? us - 1 : us
  words[PART] = part < 0 ? part + rule.permits : part
  return words
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
 * `levelUntilUs` as a charge under `to` would find it. Counted from 0, because a slow pace may lead
 * beyond the times that are exact.
 */
function untilUsAtPaceOf(own: LevelRule, to: LevelRule, s: Float64Array, i: number, nowUs: number, room: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  scratch[TAT] = (s[i + TAT] as number) - atUs
  scratch[PART] = s[i + PART] as number
  convert(own, to, scratch, 0, 0)
  const us = levelUntilUs(to, scratch, 0, 0, room)
  return us > 0 ? us + atUs - nowUs : 0
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
