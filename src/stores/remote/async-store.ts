/**
 * A store that answers later, as a limiter is given it. What stands between the two is the same for all of them and travels with them, so that a limiter
 * in memory carries none of it: timeouts, circuit breakers, and what is decided while the store is down.
 */
import { refused } from '../../algorithms/rate.ts'
import type { StoreDriver } from '../store.ts'
import { GuardedStore, type Watch } from './guarded-store.ts'

export class AsyncStore<D extends StoreDriver = StoreDriver> {
  readonly mode = 'async'
  /** Whether others than the limiters of this process may hold the same states. */
  readonly shared: boolean
  readonly driver: D

  constructor(driver: D) {
    this.driver = driver
    this.shared = driver.shared
  }

  /** For one limiter. */
  connect(watch: Watch): GuardedStore {
    return new GuardedStore(this.driver, watch)
  }
}

/** A store of a driver: `createLimiter(limits, { name: 'api', store: asyncStore(driver) })`. */
export function asyncStore<D extends StoreDriver>(driver: D): AsyncStore<D> {
  const isDriver = typeof driver === 'object' && driver !== null && typeof driver.apply === 'function' && typeof driver.shared === 'boolean'
  if (!isDriver) throw refused('asyncStore driver', driver, 'must be an object with apply(step), and shared, true or false')
  return new AsyncStore(driver)
}
