/**
 * A bucket: a level with the time it was written. Token bucket and leaky bucket are this, seen from the two ends: what one calls
 * missing tokens the other calls water. They differ in what people see (`encode`) and in who must wait (`delayUs`).
 *
 * State: [used, usedPart, atUs]. The part counts over `rule.periodUs`. What is in use is kept, not what is left, because that is what
 * must survive when the capacity changes.
 */
import type { Algorithm } from './algorithm.ts'
import { mulDiv, remainder } from './arithmetic.ts'
import { carryOver, cutToCeiling, drain, drainTimeUs, type LevelRule, leftOf, level, setLevel, subtract } from './level.ts'

const USED = 0
const PART = 1
const AT = 2

/** Everything of a bucket algorithm but its name and its text. */
export const bucket: Omit<Algorithm<LevelRule>, 'type' | 'encode' | 'decode' | 'ruleOf'> = {
  bookable: true,

  words: () => 3,

  fresh(_rule, s, i, nowUs) {
    writeBucket(s, i, 0, 0, nowUs)
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      repair(written, s, i, nowUs)
      usedAt(written, s, i, nowUs)
      carryOver(written, rule)
      writeBucket(s, i, level[0] as number, level[1] as number, effectiveUs(s, i, nowUs))
    }
    return repair(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    usedAt(rule, s, i, nowUs)
    const over = (level[0] as number) + cost - rule.capacity
    const part = level[1] as number
    if (over < 0 || (over === 0 && part === 0)) return 0
    return effectiveUs(s, i, nowUs) - nowUs + drainTimeUs(rule, over, part)
  },

  take(rule, s, i, nowUs, cost) {
    usedAt(rule, s, i, nowUs)
    writeBucket(s, i, (level[0] as number) + cost, level[1] as number, effectiveUs(s, i, nowUs))
  },

  // The same as `repair`, `usedAt`, `waitUs` and `take`, with everything in local variables: it is what `tryAcquire` spends its time on.
  tryTake(rule, s, i, nowUs, cost) {
    if ((s[i + AT] as number) > nowUs || (s[i + USED] as number) >= rule.ceilingWhole) repair(rule, s, i, nowUs)
    const elapsedUs = nowUs - (s[i + AT] as number)
    let used = s[i + USED] as number
    let part = s[i + PART] as number
    if (elapsedUs >= rule.idleUs) {
      used = 0
      part = 0
    } else if (elapsedUs > 0) {
      used -= mulDiv(elapsedUs, rule.permits, rule.periodUs)
      part -= remainder[0] as number
      if (part < 0) {
        used -= 1
        part += rule.periodUs
      }
      if (used < 0) {
        used = 0
        part = 0
      }
    }
    used += cost
    if (used > rule.capacity || (used === rule.capacity && part > 0)) return false
    s[i + USED] = used
    s[i + PART] = part
    if (elapsedUs > 0) s[i + AT] = nowUs
    return true
  },

  give(rule, s, i, nowUs, cost, ofUs) {
    if (ofUs >= 0 && nowUs - ofUs >= rule.windowUs) return false
    return giveBack(rule, s, i, nowUs, cost, 0)
  },

  cancel(rule, s, i, nowUs, cost, ticket) {
    return cancelAbove(rule.capacity, rule, s, i, nowUs, cost, ticket)
  },

  dueUs(rule, ticket) {
    return levelReachedUs(rule, ticket, rule.capacity)
  },

  shorten(_rule, ticket, cost) {
    const used = (ticket[USED] as number) - cost
    return used < 0 ? Float64Array.of(0, 0, ticket[AT] as number) : Float64Array.of(used, ticket[PART] as number, ticket[AT] as number)
  },

  remaining(rule, s, i, nowUs) {
    usedAt(rule, s, i, nowUs)
    return leftOf(rule)
  },

  resetUs: drainedInUs,
}

/**
 * Gives a reservation back, minus what was charged after it, as long as its ticket's level is above `turn`: at that level its time has come.
 * `ticket` is the state as the reservation left it.
 */
export function cancelAbove(
  turn: number,
  rule: LevelRule,
  s: Float64Array,
  i: number,
  nowUs: number,
  cost: number,
  ticket: Float64Array,
): boolean {
  drain(rule, ticket[USED] as number, ticket[PART] as number, effectiveUs(s, i, nowUs) - (ticket[AT] as number))
  const markWhole = level[0] as number
  const markPart = level[1] as number
  if (markWhole < turn || (markWhole === turn && markPart === 0)) return false
  usedAt(rule, s, i, nowUs)
  subtract(rule, level[0] as number, level[1] as number, markWhole, markPart)
  subtract(rule, cost, 0, level[0] as number, level[1] as number)
  return giveBack(rule, s, i, nowUs, level[0] as number, level[1] as number)
}

export function writeBucket(s: Float64Array, i: number, used: number, part: number, atUs: number): void {
  s[i + USED] = used
  s[i + PART] = part
  s[i + AT] = atUs
}

/** When a ticket's level has drained to so many permits. */
export function levelReachedUs(rule: LevelRule, ticket: Float64Array, permits: number): number {
  const over = (ticket[USED] as number) - permits
  return (ticket[AT] as number) + (over < 0 ? 0 : drainTimeUs(rule, over, ticket[PART] as number))
}

/** How long until everything that is in use has drained. */
export function drainedInUs(rule: LevelRule, s: Float64Array, i: number, nowUs: number): number {
  usedAt(rule, s, i, nowUs)
  return effectiveUs(s, i, nowUs) - nowUs + drainTimeUs(rule, level[0] as number, level[1] as number)
}

/** An earlier reading of the clock counts as the time of writing: time stands still until the clock has caught up. */
function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/** Leaves in `level` what is in use now. */
function usedAt(rule: LevelRule, s: Float64Array, i: number, nowUs: number): void {
  drain(rule, s[i + USED] as number, s[i + PART] as number, nowUs - (s[i + AT] as number))
}

function giveBack(rule: LevelRule, s: Float64Array, i: number, nowUs: number, whole: number, part: number): boolean {
  usedAt(rule, s, i, nowUs)
  if ((whole === 0 && part === 0) || (level[0] === 0 && level[1] === 0)) return false
  subtract(rule, level[0] as number, level[1] as number, whole, part)
  writeBucket(s, i, level[0] as number, level[1] as number, effectiveUs(s, i, nowUs))
  return true
}

/** A state dated more than one window ahead is re-dated to now, and one above the ceiling is cut down to it. */
function repair(rule: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  const redated = (s[i + AT] as number) - nowUs > rule.windowUs
  if (redated) s[i + AT] = nowUs
  setLevel(s[i + USED] as number, s[i + PART] as number)
  if (!cutToCeiling(rule)) return redated
  writeBucket(s, i, level[0] as number, level[1] as number, s[i + AT] as number)
  return true
}
