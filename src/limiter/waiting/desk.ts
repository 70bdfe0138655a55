import type { Verdict } from '../../algorithms/decide.ts'
import type { Part, Step } from '../../stores/store.ts'

/** What a step does, apart from to whom. */
export type Verb = Pick<Step, 'op' | 'aheadUs' | 'ofUs'>

/** What a queue needs of the limiter it stands in front of. */
export interface Desk {
  /** How many may wait for one key. */
  readonly maxQueue: number
  /** How far ahead permits may be booked. */
  readonly maxAheadUs: number
  /** Whether other processes or threads may book at the same store. */
  readonly isShared: boolean
  nowUs(): number
  /** One step of the store, for the limits of a plan. It may be answered at once or later. */
  apply(verb: Verb, plan: string | undefined, parts: readonly Part[]): readonly Verdict[] | Promise<readonly Verdict[]>
}
