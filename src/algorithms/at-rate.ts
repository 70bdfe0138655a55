/** The same limit at another rate: what a rate that follows the load changes. */
import type { Rule } from './algorithm.ts'
import { greatestCommonDivisor } from './arithmetic.ts'
import { invalid, levelFigures, MAX_PERIOD_US, MAX_PERMITS, type Pace } from './rate.ts'

const SECOND_US = 1_000_000
/** A rate is kept to about this many steps. */
const STEPS = 10_000

/**
 * A limit that drains at a pace gets another pace and keeps its burst; a window keeps its length
 * and gets another limit, at least 1. The figures of the first kind are capacity, permits and
 * period, those of the second begin with limit and window.
 */
export function atRate(rule: Rule, permitsPerSecond: number): Rule {
  const { algorithm, figures, capacity } = rule
  if (algorithm.bookable) return algorithm.ruleOf(levelFigures(capacity, paceNear(permitsPerSecond)))
  const [, windowUs, ...rest] = figures as [number, number, ...number[]]
  const limit = Math.max(1, Math.round((permitsPerSecond * windowUs) / SECOND_US))
  const { maxCapacity = MAX_PERMITS } = algorithm
  if (limit > maxCapacity) throw invalid('the limit of a window at this rate', limit, `must be at most ${maxCapacity.toLocaleString('en')}`)
  return algorithm.ruleOf([limit, windowUs, ...rest])
}

/** The rate that a rule has, in permits per second. */
export function rateOf({ algorithm, figures }: Rule): number {
  const [capacity, second, third] = figures as [number, number, number]
  return algorithm.bookable ? (second / third) * SECOND_US : (capacity / second) * SECOND_US
}

/** In lowest terms, with a period that is long enough for the rate to be near. */
function paceNear(permitsPerSecond: number): Pace {
  let periodUs = SECOND_US
  while ((permitsPerSecond * periodUs) / SECOND_US < STEPS && periodUs * 10 < MAX_PERIOD_US) periodUs *= 10
  const permits = Math.max(1, Math.round((permitsPerSecond * periodUs) / SECOND_US))
  const divisor = greatestCommonDivisor(permits, periodUs)
  return { permits: permits / divisor, periodUs: periodUs / divisor }
}
