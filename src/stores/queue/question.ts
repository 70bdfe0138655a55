/** The question to a store for a waiter, and what its answer says. */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part, Scope } from '../store.ts'
import type { QueuePlan } from './room.ts'
import type { Waiter } from './waiter.ts'

export interface Question {
  readonly op: 'take' | 'ask'
  /**
   * Before it was sent, by the clock of this process. Undefined at a store that answers at once and
   * is not shared: it was asked when it decided.
   */
  askedUs?: number
  /** The same by the wall clock, where the answer comes later. */
  askedWallUs?: number
  /** Whether it is asked as the first in line, where a limit has a line. */
  readonly isInLine: boolean
  readonly waiter: Waiter
  readonly parts: readonly Part[]
  readonly aheadUs: number
  /** The numbers that were in force when it was asked. */
  readonly plan: QueuePlan
}

/** The answer of a store. */
export interface Answer {
  /** The limits by which the store answered. */
  readonly limits: Scope['limits']
  readonly verdicts: readonly Verdict[]
  /**
   * When the store answered, and when the caller may then act, both by the clock of this process.
   */
  readonly answeredUs: number
  readonly bookedForUs: number
  /** Before the store was asked: what it lends counts from then at the latest. */
  readonly askedUs: number
  /** The same by the wall clock, where the answer came later. */
  readonly askedWallUs?: number | undefined
}

/** The permits that an answer took: under which numbers, and when. */
export interface Took {
  readonly limits: readonly { readonly rule: Rule }[]
  readonly verdicts: readonly Verdict[]
}

/** When a waiter that was refused may act, at the earliest. */
export function earliestUs({ waiter, parts }: Question, { verdicts, answeredUs }: Answer): number {
  // A release may come at any moment: only the other limits are known to make it wait.
  const leastUs = longest(verdicts, ({ retryUs, delayUs }, k) => (parts[k]?.rule.algorithm.untilReleased ? 0 : Math.max(retryUs, delayUs)))
  return Math.max(answeredUs + leastUs, waiter.notBeforeUs)
}

/** The longest time that a verdict says. A plain loop, because it runs for every answer. */
export function longest(verdicts: readonly Verdict[], usOf: (verdict: Verdict, k: number) => number): number {
  let longestUs = 0
  for (let k = 0; k < verdicts.length; k++) longestUs = Math.max(longestUs, usOf(verdicts[k] as Verdict, k))
  return longestUs
}
