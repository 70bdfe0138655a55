/**
 * A place in line among the processes that share a store, where nothing can be booked ahead.
 *
 * A large cost could wait for ever there: calls of other processes that cost less take each permit as it comes free. So a caller that has been the
 * first of its process for one window, and was refused all that time, claims the key. More than the limit is taken then, by other numbers: so
 * everybody else is limited, what was used before leaves, and nobody else can claim. When the cost fits, the claim is given back and the cost is
 * taken, in one turn. A claim is given back when its caller leaves; that of a process which ends leaves with its window.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Charge } from '../../stores/settlement.ts'
import type { Part } from '../../stores/store.ts'
import type { Waiter } from './waiter.ts'

/** How often the first caller looks at the key in a window, first and at last. */
const LEAST_LOOKS = 20
const MOST_LOOKS = 100

export interface Claim {
  readonly waiter: Waiter
  readonly parts: readonly Part[]
  readonly taken: readonly Charge[]
  /** When it is claimed anew: it must outlast what was used before, all of which may leave at one moment. */
  readonly renewUs: number
}

/**
 * How long the first caller of a process has been refused. It looks at the key again and again, because it is told to wait until a claim of another
 * has left, and most are given back before that. After one window it may claim. The longer it waits the more often it looks, so that
 * of several the one that has waited longest is likely the next.
 */
export class HeldUp {
  readonly #windowUs: number
  readonly #sinceUs: number
  #looks = LEAST_LOOKS
  /** When it looks again. */
  nextUs: number

  constructor(parts: readonly Part[], nowUs: number) {
    this.#windowUs = longestWindowUs(parts)
    this.#sinceUs = nowUs
    this.nextUs = this.#nextUs(nowUs)
  }

  /** It was refused again. Tells whether it shall claim. */
  mayClaim(nowUs: number): boolean {
    if (nowUs < this.nextUs) return false
    this.#looks = Math.min(this.#looks + 1, MOST_LOOKS)
    this.nextUs = this.#nextUs(nowUs)
    return nowUs - this.#sinceUs >= this.#windowUs
  }

  #nextUs(nowUs: number): number {
    return nowUs + Math.ceil(this.#windowUs / this.#looks)
  }
}

/** Whether a claim would still be felt when its time comes: not where all that is used leaves at one moment. */
export function isClaimable(parts: readonly Part[], verdicts: readonly Verdict[]): boolean {
  if (verdicts[0]?.degraded) return false
  return parts.every(({ rule }, k) => !rule.algorithm.endsAtOnce || verdicts[k]?.retryUs === 0)
}

/** A claim is renewed before what was used earlier has left: all of it may leave at one moment. */
export function renewalUs(parts: readonly Part[]): number {
  return Math.ceil(longestWindowUs(parts) / 2)
}

function longestWindowUs(parts: readonly Part[]): number {
  let longestUs = 0
  for (const { cost, rule } of parts) if (cost > 0) longestUs = Math.max(longestUs, rule.windowUs)
  return longestUs
}

/** What is taken for a claim: one permit more than the limit, by a limit that has so much room as long as no more than its own is in use. */
export function claimOf(parts: readonly Part[]): Part[] {
  return parts.map((part) => {
    const { algorithm, capacity, figures } = part.rule
    if (part.cost === 0) return part
    // The first of the figures is the capacity.
    return part.with({ rule: algorithm.ruleOf([2 * capacity + 1, ...figures.slice(1)]), cost: capacity + 1 })
  })
}
