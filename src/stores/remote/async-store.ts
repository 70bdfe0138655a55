/**
 * A store that answers later, made of a driver. It brings the parts that all such stores share:
 * batches, the denial cache, timeouts, circuit breakers and fallbacks. A limiter in memory carries
 * none of them. Batches, denial cache and circuit breakers are those of all limiters on the store.
 */
import { invalid, onlyKnown } from '../../algorithms/rate.ts'
import type { StoreDriver } from '../store.ts'
import { Breakers } from './breakers.ts'
import { Dispatcher } from './dispatcher.ts'
import { GuardedStore, type Watch } from './guarded-store.ts'
import { ASYNC_STORE_OPTIONS, type AsyncStoreOptions, checkedBounds, checkedMaxBatch } from './options.ts'

export class AsyncStore<D extends StoreDriver = StoreDriver> {
  readonly mode = 'async'
  /** Whether others than the limiters of this process may hold the same states. */
  readonly shared: boolean
  readonly driver: D
  readonly #dispatcher: Dispatcher
  readonly #breakers = new Breakers()

  /** `who`: the function that was given the options, for its errors. */
  constructor(driver: D, options: AsyncStoreOptions = {}, who = 'asyncStore') {
    this.driver = driver
    this.shared = driver.shared
    this.#dispatcher = new Dispatcher(driver, checkedMaxBatch(options, who), checkedBounds(options, who))
  }

  /** For one limiter. */
  connect(watch: Watch): GuardedStore {
    return new GuardedStore(this.driver, this.#dispatcher, this.#breakers, watch)
  }
}

/** A store of a driver: `createLimiter(limits, { name: 'api', store: asyncStore(driver) })`. */
export function asyncStore<D extends StoreDriver>(driver: D, options: AsyncStoreOptions = {}): AsyncStore<D> {
  const isDriver = typeof driver === 'object' && driver !== null && typeof driver.apply === 'function' && typeof driver.shared === 'boolean'
  if (!isDriver) throw invalid('asyncStore driver', driver, 'must be an object with apply(steps), and shared, true or false')
  onlyKnown(options, ASYNC_STORE_OPTIONS, 'asyncStore')
  return new AsyncStore(driver, options)
}
