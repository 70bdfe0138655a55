/**
 * The factory of what runs at once, with the limiter that makes permits of its decisions: so only
 * who imports it bundles that.
 */
import { RULE } from '../algorithms/algorithm.ts'
import { type ConcurrencyLimit, type ConcurrencyOptions, concurrency as plain } from '../algorithms/concurrency/concurrency.ts'
import { PERMITS } from './options.ts'
import { PermitLimiter } from './permit-limiter.ts'

/** No more than `max` at once: a place is taken until it is released. */
export function concurrency(options: ConcurrencyOptions): ConcurrencyLimit {
  const limit = plain(options)
  const hidden = { [RULE]: { value: limit[RULE] }, [PERMITS]: { value: PermitLimiter } }
  return Object.freeze(Object.defineProperties({ ...limit }, hidden)) as ConcurrencyLimit
}
