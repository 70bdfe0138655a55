import type { Decision, DecisionPart } from '../limiter/decision.ts'

/** Of a limit that is used to this share its keys are near it. */
const DEFAULT_SHARE = 0.8

/**
 * Whether one of the limits is used so far. For a decision without the store this is unknown, and a
 * limit that admits nothing is not near its end.
 */
export function isNearLimit({ parts, degraded }: Decision, share = DEFAULT_SHARE): boolean {
  if (degraded) return false
  for (const name in parts) {
    const { limit, remaining } = parts[name] as DecisionPart
    if (limit > 0 && limit - remaining >= share * limit) return true
  }
  return false
}
