import type { Limit } from '../../src/algorithms/algorithm.ts'
import { gcra, tokenBucket } from '../../src/index.ts'
import type { LimitData } from '../../src/testing/index.ts'

const FACTORIES: Readonly<Record<string, (data: never) => Limit>> = { gcra, tokenBucket }

/** Whether the library has this algorithm yet. */
export function isKnown({ type }: LimitData): boolean {
  return type in FACTORIES
}

export function limitFrom(data: LimitData): Limit {
  return (FACTORIES[data.type] as (data: LimitData) => Limit)(data)
}
