import type { Verdict } from '../../src/algorithms/decide.ts'
import type { AsyncStore, Part, Step, StoreDriver } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'

/**
 * A driver that is asked step by step and at once, so that a test can hold back or fail single
 * ones.
 */
export interface StepDriver extends Omit<StoreDriver, 'apply'> {
  apply(step: Step): Promise<readonly Verdict[]>
}

/** A store without batches and denial cache. */
export function stepByStep(driver: StepDriver): AsyncStore {
  const each: StoreDriver = {
    shared: driver.shared,
    ...(driver.shardOf && { shardOf: driver.shardOf.bind(driver) }),
    ...(driver.probe && { probe: driver.probe.bind(driver) }),
    async apply([step]) {
      const { parts } = step as Step
      const verdicts = await driver.apply(step as Step)
      for (const [k, verdict] of verdicts.entries()) Object.assign((parts[k] as Part).verdict, verdict)
    },
  }
  return asyncStore(each, { maxBatch: 1, denialCache: false })
}

/** A driver that is its store too, so that a test holds one thing. */
export function asStore<D extends StepDriver>(driver: D): D & AsyncStore {
  const store = stepByStep(driver)
  return Object.assign(driver, { mode: 'async' as const, driver: store.driver, connect: store.connect.bind(store) }) as unknown as D &
    AsyncStore
}
