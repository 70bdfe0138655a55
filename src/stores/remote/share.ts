/** A share of each limit, for one process alone while the shared store is away. */
import type { Rule } from '../../algorithms/algorithm.ts'
import { MAX_PERIOD_US } from '../../algorithms/rate.ts'

/** The same rule with a share of its permits, at least one, coming back at a share of its pace. */
export function shareOf(rule: Rule, share: number): Rule {
  if (share === 1) return rule
  const [capacity, ...rest] = rule.figures as [number, ...number[]]
  const { algorithm } = rule
  // What can be booked ahead has a pace: permits and the time they take. A window has none, its
  // permits come back all together.
  const pace = algorithm.bookable ? slower(rest as [number, number], share) : rest
  return algorithm.ruleOf([atLeastOne(capacity * share), ...pace])
}

function slower([permits, periodUs]: readonly [number, number], share: number): [number, number] {
  const longerUs = Math.ceil(periodUs / share)
  return longerUs <= MAX_PERIOD_US ? [permits, longerUs] : [atLeastOne(permits * share), periodUs]
}

function atLeastOne(permits: number): number {
  return Math.max(1, Math.floor(permits))
}
