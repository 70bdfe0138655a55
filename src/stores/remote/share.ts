/** A share of each limit, for one process alone while the shared store is away. */
import type { Rule } from '../../algorithms/algorithm.ts'
import { nearPace } from '../../algorithms/kept-pace.ts'
import { lowestTerms, MAX_PERIOD_US, type Pace } from '../../algorithms/rate.ts'

/** Nothing is booked ahead of the store's return (fallback.ts). */
const NONE_AHEAD = 0

/** The same rule with a share of its permits, at least one, coming back at a share of its pace. */
export function shareOf(rule: Rule, share: number): Rule {
  if (share === 1) return rule
  const { algorithm, figures } = rule
  // What admits nothing has nothing to share.
  const capacity = rule.capacity === 0 ? 0 : atLeastOne(rule.capacity * share)
  // A window has no pace: its permits come back all together.
  if (!algorithm.bookable) return algorithm.ruleOf([capacity, ...figures.slice(1)])
  const { permits, periodUs } = nearPace(capacity, slower(figures as [number, number, number], share), NONE_AHEAD)
  return algorithm.ruleOf([capacity, permits, periodUs])
}

function slower([, permits, periodUs]: readonly [number, number, number], share: number): Pace {
  const longerUs = Math.ceil(periodUs / share)
  if (longerUs <= MAX_PERIOD_US) return lowestTerms(permits, longerUs)
  return lowestTerms(atLeastOne((permits * share * MAX_PERIOD_US) / periodUs), MAX_PERIOD_US)
}

function atLeastOne(permits: number): number {
  return Math.max(1, Math.floor(permits))
}
