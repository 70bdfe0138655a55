/**
 * Limits whose number is moved by the load: who moves one says so here, so that a refusal by it can
 * be answered as one of the server's own, and its number be measured. Nothing here changes a
 * decision.
 */
import { SluiceError, shown } from '../errors.ts'
import type { Decision } from './decision.ts'

export interface MovingLimit {
  /** The name of the limit. */
  readonly limit: string
  /** Its number now: calls in flight, or permits per second. */
  readonly now: number
  /** Whether a refusal by it is due to reduced capacity, and not to what the caller did. */
  readonly isReduced: boolean
  /** How many were in flight at most, lately; undefined of rates. */
  readonly inflight?: number | undefined
  /** How often it was changed, by reason. */
  readonly changes: ReadonlyMap<string, number>
}

const known = new WeakMap<object, Set<MovingLimit>>()

/** From now on until the function that is returned is called. */
export function moves(limiter: object, limit: MovingLimit): () => void {
  const all = known.get(limiter) ?? new Set()
  known.set(limiter, all.add(limit))
  return () => all.delete(limit)
}

/** Refuses a second one that would move the same limit: each would undo what the other did. */
export function checkStill(limiter: object, name: string, mover: string): void {
  for (const { limit } of movingLimits(limiter)) {
    if (limit !== name) continue
    throw new SluiceError('CONFIG', `${mover} limit ${shown(name)} follows the load already: close the first follower or governor of it`)
  }
}

export function movingLimits(limiter: object): Iterable<MovingLimit> {
  return known.get(limiter) ?? []
}

export function isReduced(limiter: object, { policy }: Decision): boolean {
  const all = known.get(limiter)
  // Nearly every limiter, and every refusal comes here.
  if (all === undefined) return false
  for (const { limit, isReduced } of all) if (limit === policy && isReduced) return true
  return false
}

/** One more change for this reason. */
export function countChange(changes: Map<string, number>, reason: string): void {
  changes.set(reason, (changes.get(reason) ?? 0) + 1)
}
