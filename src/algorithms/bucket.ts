/**
 * A bucket: a level with the time it was written. Token bucket and leaky bucket are this, seen from the two ends: what one calls
 * missing tokens the other calls water. They differ in what people see (`encode`) and in who must wait (`delayUs`).
 *
 * State: [tatUs, part, atUs]: a level (level.ts) and its date. What is in use is kept, not what is left, because that is what must survive
 * when the capacity changes.
 */
import type { Algorithm } from './algorithm.ts'
import {
  charge,
  chargeIfFits,
  cutToCeiling,
  debtPart,
  debtUs,
  drainedInUs,
  fitsInUs,
  giveBack,
  giveBackTo,
  type LevelRule,
  left,
  levelOfTime,
  PART,
  putLevel,
  reachedUs,
  renumber,
  shorten,
  TAT,
} from './level.ts'
import type { Pace } from './rate.ts'

const AT = 2

/** Everything of a bucket algorithm but its name and its text. */
export const bucket: Omit<Algorithm<LevelRule>, 'type' | 'encode' | 'ruleOf'> = {
  bookable: true,

  words: () => 3,

  fresh(_rule, s, i, nowUs) {
    s[i + TAT] = nowUs
    s[i + PART] = 0
    s[i + AT] = nowUs
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      repair(written, s, i, nowUs)
      s[i + AT] = effectiveUs(s, i, nowUs)
      renumber(written, rule, s, i, s[i + AT] as number)
    }
    return repair(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    const waitUs = fitsInUs(rule, s, i, atUs, cost)
    return waitUs === 0 ? 0 : waitUs + atUs - nowUs
  },

  take(rule, s, i, nowUs, cost) {
    s[i + AT] = effectiveUs(s, i, nowUs)
    charge(rule, s, i, s[i + AT] as number, cost)
  },

  tryTake(rule, s, i, nowUs, cost) {
    const atUs = s[i + AT] as number
    // Only a state that is ahead of the clock or that may be above the ceiling can need a repair.
    if (atUs > nowUs || (s[i + TAT] as number) - atUs >= rule.ceilingUs) return tryTakeRepaired(rule, s, i, nowUs, cost)
    if (!chargeIfFits(rule, s, i, nowUs, cost)) return false
    s[i + AT] = nowUs
    return true
  },

  enteredUs: (s, i) => s[i + AT] as number,

  give(rule, s, i, nowUs, cost, ofUs) {
    if (ofUs >= 0 && nowUs - ofUs >= rule.windowUs) return false
    const atUs = effectiveUs(s, i, nowUs)
    return dated(giveBack(rule, s, i, atUs, cost), s, i, atUs)
  },

  cancel(rule, s, i, nowUs, cost, ticket) {
    return cancelAhead(rule, s, i, nowUs, cost, ticket, rule.toleranceUs, rule.tolerancePart)
  },

  dueUs: (rule, ticket) => reachedUs(ticket, rule.toleranceUs, rule.tolerancePart),

  shorten,

  remaining: (rule, s, i, nowUs) => left(rule, s, i, effectiveUs(s, i, nowUs)),

  resetUs(_rule, s, i, nowUs) {
    const atUs = effectiveUs(s, i, nowUs)
    return atUs - nowUs + drainedInUs(s, i, atUs)
  },
}

function tryTakeRepaired(rule: LevelRule, s: Float64Array, i: number, nowUs: number, cost: number): boolean {
  repair(rule, s, i, nowUs)
  const atUs = effectiveUs(s, i, nowUs)
  return dated(chargeIfFits(rule, s, i, atUs, cost), s, i, atUs)
}

/**
 * Gives a reservation back, minus what was charged after it, as long as its TAT lies further ahead than its turn: then its time has come.
 * `ticket` is the state as the reservation left it.
 */
export function cancelAhead(
  rule: LevelRule,
  s: Float64Array,
  i: number,
  nowUs: number,
  cost: number,
  ticket: Float64Array,
  turnUs: number,
  turnPart: number,
): boolean {
  const atUs = effectiveUs(s, i, nowUs)
  const seenUs = effectiveUs(ticket, 0, atUs)
  const markUs = debtUs(ticket, 0, seenUs)
  const markPart = debtPart(ticket, 0, seenUs)
  if (markUs < turnUs || (markUs === turnUs && markPart <= turnPart)) return false
  return dated(giveBackTo(rule, s, i, atUs, cost, markUs, markPart), s, i, atUs)
}

/** Leaves in `level` what was in use when the state was written, and says when that was: for the texts. */
export function readBucket(rule: LevelRule, s: Float64Array, i: number): number {
  const atUs = s[i + AT] as number
  levelOfTime(rule, (s[i + TAT] as number) - atUs, s[i + PART] as number)
  return atUs
}

/** The other way: (used, part over periodUs) permits were in use at `atUs`. */
export function writeBucket(pace: Pace, s: Float64Array, i: number, used: number, part: number, atUs: number): void {
  putLevel(pace, s, i, atUs, used, part)
  s[i + AT] = atUs
}

/** An earlier reading of the clock counts as the time of writing: time stands still until the clock has caught up. */
export function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/** Dates the state if it was changed. */
function dated(changed: boolean, s: Float64Array, i: number, atUs: number): boolean {
  if (changed) s[i + AT] = atUs
  return changed
}

/** A state dated more than one window ahead is re-dated to now, and one above the ceiling is cut down to it. */
function repair(rule: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  const aheadUs = (s[i + AT] as number) - nowUs
  const redated = aheadUs > rule.windowUs
  if (redated) {
    s[i + TAT] = (s[i + TAT] as number) - aheadUs
    s[i + AT] = nowUs
  }
  return cutToCeiling(rule, s, i, s[i + AT] as number) || redated
}
