/**
 * The level: how many permits are in use, draining at a steady pace. GCRA, token bucket and leaky bucket are three faces of it.
 *
 *   used permits = whole + part / periodUs          drains by  permits / periodUs  each microsecond
 *
 * Elapsed microseconds are whole, so what drains is a whole multiple of 1 / periodUs and the pair is exact for ever.
 * A level above the capacity is booked ahead: permits that somebody holds but may not act on yet. Nothing is booked further ahead than
 * `maxAheadUs`, so a level has a ceiling, and a state found above it (a clock went wrong, an option was lowered) is cut down to it.
 */
import type { Algorithm, Rule } from './algorithm.ts'
import { mulAddDiv, mulAddDivUp, mulDiv, remainder } from './arithmetic.ts'
import { fillTime, type Pace } from './rate.ts'

export interface LevelRule extends Rule {
  /** The pace, in lowest terms: `permits` drain every `periodUs`. */
  readonly permits: number
  readonly periodUs: number
  /** Capacity and everything that may be booked ahead of it, as a pair. */
  readonly ceilingWhole: number
  readonly ceilingPart: number
  /** After this long without a charge even a level at the ceiling has drained. */
  readonly idleUs: number
  /** The time one permit takes, and the whole capacity takes: whole microseconds and a part over `permits`. */
  readonly intervalUs: number
  readonly intervalPart: number
  readonly toleranceUs: number
  readonly tolerancePart: number
}

/** The pair that the last call below left: whole permits, and a part over `periodUs`. */
export const level: Float64Array = new Float64Array(2)

export function levelRule(algorithm: Algorithm<LevelRule>, capacity: number, pace: Pace, maxAheadUs: number): LevelRule {
  const { permits, periodUs } = pace
  const figures = Object.freeze([capacity, permits, periodUs])
  const tolerance = fillTime(capacity, pace)
  const windowUs = tolerance.us + (tolerance.part > 0 ? 1 : 0)
  const intervalUs = mulDiv(1, periodUs, permits)
  const intervalPart = remainder[0] as number
  const ceilingWhole = capacity + mulDiv(maxAheadUs, permits, periodUs)
  const ceilingPart = remainder[0] as number
  return Object.freeze({
    algorithm,
    capacity,
    figures,
    numbers: figures.join(' '),
    windowUs,
    maxAheadUs,
    permits,
    periodUs,
    ceilingWhole,
    ceilingPart,
    idleUs: windowUs + maxAheadUs,
    intervalUs,
    intervalPart,
    toleranceUs: tolerance.us,
    tolerancePart: tolerance.part,
  })
}

/** The rule that figures stand for: capacity, permits, periodUs. */
export function levelRuleOf(algorithm: Algorithm<LevelRule>, figures: readonly number[], maxAheadUs: number): LevelRule {
  const [capacity, permits, periodUs] = figures as [number, number, number]
  return levelRule(algorithm, capacity, { permits, periodUs }, maxAheadUs)
}

/** Leaves the level `elapsedUs` after it was whole + part: it drains, never below zero. */
export function drain(rule: LevelRule, whole: number, part: number, elapsedUs: number): void {
  if (elapsedUs >= rule.idleUs) {
    setLevel(0, 0)
  } else if (elapsedUs <= 0) {
    setLevel(whole, part)
  } else {
    const drained = mulDiv(elapsedUs, rule.permits, rule.periodUs)
    subtract(rule, whole, part, drained, remainder[0] as number)
  }
}

/** Leaves (whole, part) - (lessWhole, lessPart), never below zero. */
export function subtract(rule: LevelRule, whole: number, part: number, lessWhole: number, lessPart: number): void {
  const borrow = part < lessPart ? 1 : 0
  const left = whole - lessWhole - borrow
  if (left < 0) setLevel(0, 0)
  else setLevel(left, part - lessPart + borrow * rule.periodUs)
}

export function setLevel(whole: number, part: number): void {
  level[0] = whole
  level[1] = part
}

/** How long until the level has drained by (whole, part): rounded up to the microsecond. */
export function drainTimeUs(rule: LevelRule, whole: number, part: number): number {
  return mulAddDivUp(whole, rule.periodUs, part, rule.permits)
}

/** Cuts the level left behind down to the ceiling. Tells whether it was above. */
export function cutToCeiling(rule: LevelRule): boolean {
  const whole = level[0] as number
  const above = whole > rule.ceilingWhole || (whole === rule.ceilingWhole && (level[1] as number) > rule.ceilingPart)
  if (above) setLevel(rule.ceilingWhole, rule.ceilingPart)
  return above
}

/**
 * Changed numbers keep what was used. The level left behind is in units of `written`; expresses it in units of `rule`, rounded up, what
 * was used clamped to the new capacity, and what is booked ahead still on top of it.
 */
export function carryOver(written: LevelRule, rule: LevelRule): void {
  const whole = level[0] as number
  const part = level[1] as number
  if (whole >= written.capacity) {
    carryParts(written, rule, Math.min(written.capacity, rule.capacity) + (whole - written.capacity), part)
  } else if (whole >= rule.capacity) {
    setLevel(rule.capacity, 0)
  } else {
    carryParts(written, rule, whole, part)
  }
  cutToCeiling(rule)
}

function carryParts(written: LevelRule, rule: LevelRule, whole: number, part: number): void {
  const carried = mulAddDivUp(part, rule.periodUs, 0, written.periodUs)
  if (carried === rule.periodUs) setLevel(whole + 1, 0)
  else setLevel(whole, carried)
}

/** Leaves what a time stands for: (us, part over permits) of draining, as permits. */
export function levelOfTime(rule: LevelRule, us: number, part: number): void {
  const whole = mulAddDiv(us, rule.permits, part, rule.periodUs)
  setLevel(whole, remainder[0] as number)
}

/** Whole permits of the capacity that the level left behind does not use. */
export function leftOf(rule: LevelRule): number {
  const left = rule.capacity - (level[0] as number) - ((level[1] as number) > 0 ? 1 : 0)
  return Math.max(left, 0)
}
