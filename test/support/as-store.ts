import type { AsyncStore, StoreDriver } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'

/** A driver that is its store too, so that a test holds one thing. */
export function asStore<D extends StoreDriver>(driver: D): D & AsyncStore<D> {
  const store = asyncStore(driver)
  return Object.assign(driver, { mode: 'async' as const, driver, connect: store.connect.bind(store) }) as D & AsyncStore<D>
}
