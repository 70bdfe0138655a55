import type { Cost, Key } from '../limiter/input.ts'
import type { Limiter, SyncLimiter, VerbOptions } from '../limiter/limiter.ts'
import type { LimitName, Limits } from '../limiter/options.ts'
import type { Store } from '../stores/store.ts'

/**
 * Takes, and tells whether that was allowed: by `tryAcquire` where the store answers at once, by
 * `consume` where it answers later.
 */
export async function admitted<L extends Limits, P extends string>(
  limiter: Limiter<L, Store, P>,
  key: Key<LimitName<L>>,
  cost?: Cost<LimitName<L>>,
  options?: VerbOptions<P>,
): Promise<boolean> {
  if (limiter.store.mode === 'async') return (await limiter.consume(key, cost, options)).allowed
  return (limiter as SyncLimiter<L, P>).tryAcquire(key, cost, options)
}
