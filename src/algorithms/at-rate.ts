/** The same limit at another rate: what a rate that follows the load changes. */
import type { Rule } from './algorithm.ts'
import { fittingPace, nearPace, unkept } from './kept-pace.ts'
import { DEFAULT_AHEAD_US, invalid, lowestTerms, MAX_PERIOD_US, MAX_PERMITS, type Pace } from './rate.ts'

const SECOND_US = 1_000_000
/** A rate is kept to about this many steps. */
const STEPS = 10_000

/**
 * A limit that drains at a pace gets another pace and keeps its burst; a window keeps its length
 * and gets another limit, at least 1. The figures of the first kind are capacity, permits and
 * period, those of the second begin with limit and window. It is never refused: where it cannot be
 * that rate, it is the nearest that it can.
 */
export function atRate(rule: Rule, permitsPerSecond: number, aheadUs = DEFAULT_AHEAD_US): Rule {
  const { algorithm, figures, capacity } = rule
  if (!algorithm.bookable) return algorithm.ruleOf([Math.min(limitAt(rule, permitsPerSecond), mostOf(rule)), ...figures.slice(1)])
  const { permits, periodUs } = nearPace(capacity, paceNear(permitsPerSecond), atLeastDefault(aheadUs))
  return algorithm.ruleOf([capacity, permits, periodUs])
}

/** Refuses a rate that a limit can never be near. `what` begins the message. */
export function checkRate(rule: Rule, permitsPerSecond: number, what: string, aheadUs = DEFAULT_AHEAD_US): void {
  const { algorithm, capacity } = rule
  if (algorithm.bookable) {
    const pace = paceNear(permitsPerSecond)
    const mostUs = atLeastDefault(aheadUs)
    if (fittingPace(capacity, pace, mostUs) === undefined) throw unkept(algorithm, capacity, pace, mostUs, `${what}: `, fittingPace)
    return
  }
  const [limit, most] = [limitAt(rule, permitsPerSecond), mostOf(rule)]
  if (limit > most) throw invalid(`${what}: the limit of a window at this rate`, limit, `must be at most ${most.toLocaleString('en')}`)
}

/** Stores read the paces that fit a limiter which books as far ahead as by default. */
function atLeastDefault(aheadUs: number): number {
  return Math.max(aheadUs, DEFAULT_AHEAD_US)
}

/** The rate that was asked for, in permits per second. */
export function rateOf({ algorithm, figures, asked }: Rule): number {
  const [capacity, second, third] = figures as [number, number, number]
  const [permits, us] = !algorithm.bookable ? [capacity, second] : asked === undefined ? [second, third] : [asked.permits, asked.periodUs]
  return (permits / us) * SECOND_US
}

function limitAt({ figures }: Rule, permitsPerSecond: number): number {
  return Math.max(1, Math.round((permitsPerSecond * (figures[1] as number)) / SECOND_US))
}

function mostOf({ algorithm: { maxCapacity = MAX_PERMITS } }: Rule): number {
  return maxCapacity
}

/** In lowest terms, with a period that is long enough for the rate to be near. */
function paceNear(permitsPerSecond: number): Pace {
  let periodUs = SECOND_US
  while ((permitsPerSecond * periodUs) / SECOND_US < STEPS && periodUs * 10 < MAX_PERIOD_US) periodUs *= 10
  return lowestTerms(Math.max(1, Math.round((permitsPerSecond * periodUs) / SECOND_US)), periodUs)
}
