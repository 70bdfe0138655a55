/**
 * The limiter of a store that answers later. Callers that get promises get wrong input as a
 * rejection too, never thrown at once.
 */

import { SluiceError } from '../errors.ts'
import type { AsyncStore } from '../stores/remote/async-store.ts'
import { promised } from './input.ts'
import type { ReserveOptions, Settleable, SettleOptions, VerbOptions } from './limiter.ts'
import type { CostOf, DecisionOf, KeyOf, LimitName, Limits } from './options.ts'
import { StoreLimiter } from './store-limiter.ts'

type Taken<L extends Limits> = DecisionOf<L> & Settleable<LimitName<L>, AsyncStore>

export class AsyncLimiter<L extends Limits, P extends string> extends StoreLimiter<L, AsyncStore, P> {
  /** Thrown at once: a promise, even one that rejects, would pass every `if`. */
  override tryAcquire(): never {
    throw new SluiceError(
      'UNSUPPORTED',
      `limiter '${this.name}' has a store that answers later, so it has no tryAcquire: write (await limiter.consume(key)).allowed`,
    )
  }

  override consume(key: KeyOf<L>, cost?: CostOf<L>, options?: VerbOptions<P>): Promise<Taken<L>> {
    return promised(super.consume, this, key, cost, options)
  }

  override peek(key: KeyOf<L>, cost?: CostOf<L>, options?: VerbOptions<P>): Promise<DecisionOf<L>> {
    return promised(super.peek, this, key, cost, options)
  }

  override reserve(key: KeyOf<L>, cost?: CostOf<L>, options?: ReserveOptions<P>): Promise<Taken<L>> {
    return promised(super.reserve, this, key, cost, options)
  }

  override charge(key: KeyOf<L>, cost?: CostOf<L>, options?: VerbOptions<P>): Promise<DecisionOf<L>> {
    return promised(super.charge, this, key, cost, options)
  }

  override settle(key: KeyOf<L>, actual: CostOf<L>, options: SettleOptions<LimitName<L>, P>): Promise<void> {
    return promised(super.settle, this, key, actual, options)
  }

  override refund(key: KeyOf<L>, cost?: CostOf<L>, options?: VerbOptions<P>): Promise<void> {
    return promised(super.refund, this, key, cost, options)
  }

  override reset(key: KeyOf<L>): Promise<void> {
    return promised(super.reset, this, key)
  }
}
