/**
 * A place in line among the processes that share a store, where nothing can be booked ahead.
 *
 * A large cost could wait for ever there: calls of other processes that cost less take each permit
 * as it comes free. So a caller that has been the first of its process for one window, and was
 * refused all that time, claims the limits that refused it, and no others. More than such a limit
 * is taken then, by other numbers: so everybody else is limited, what was used before leaves, and
 * nobody else can claim. When the cost fits, the claim is given back and the cost is taken, in one
 * turn. A claim is given back when its caller leaves; that of a process which ends leaves with its
 * window.
 *
 * Callers with a larger capacity are not bound by a claim, and may keep it from ever coming true.
 * So it ends after two windows, and its caller claims again only when it was refused for eight
 * more.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import { isReadable } from '../../algorithms/codec.ts'
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'
import type { Waiter } from './waiter.ts'

/** How many windows a claim may stand, and how many pass before the next. */
const MOST_WINDOWS = 2
const PAUSE_WINDOWS = 8

/** How often the first caller looks at the key in a window, first and at last. */
const LEAST_LOOKS = 20
const MOST_LOOKS = 100

export interface Claim {
  readonly waiter: Waiter
  /** What was taken, by the numbers of the caller, and by those of the claim. */
  readonly parts: readonly Part[]
  readonly limits: readonly Part[]
  readonly verdicts: readonly Verdict[]
  /**
   * When it is claimed anew: it must outlast what was used before, all of which may leave at one
   * moment.
   */
  readonly renewUs: number
}

/**
 * How long the first caller of a process has been refused. It looks at the key again and again,
 * because it is told to wait until a claim of another has left, and most are given back before
 * that. After one window it may claim. The longer it waits the more often it looks, so that of
 * several the one that has waited longest is likely the next.
 */
export class HeldUp {
  readonly #windowUs: number
  /** From when on it may claim. */
  #fromUs: number
  /** When its claims end; before that it may claim anew. */
  #untilUs: number | undefined = undefined
  #looks = LEAST_LOOKS
  /** When it looks again. */
  nextUs: number

  constructor(parts: readonly Part[], nowUs: number) {
    this.#windowUs = longestWindowUs(parts)
    this.#fromUs = nowUs + this.#windowUs
    this.nextUs = this.#nextUs(nowUs)
  }

  /** It was refused again. Tells whether it shall claim. */
  mayClaim(nowUs: number): boolean {
    if (nowUs < this.nextUs) return false
    this.#looks = Math.min(this.#looks + 1, MOST_LOOKS)
    this.nextUs = this.#nextUs(nowUs)
    return this.mayRenew(nowUs)
  }

  /** Whether its time for a claim has come, and is not over. */
  mayRenew(nowUs: number): boolean {
    if (nowUs < this.#fromUs) return false
    this.#untilUs ??= nowUs + MOST_WINDOWS * this.#windowUs
    if (nowUs < this.#untilUs) return true
    this.#fromUs = nowUs + PAUSE_WINDOWS * this.#windowUs
    this.#untilUs = undefined
    return false
  }

  #nextUs(nowUs: number): number {
    return nowUs + Math.ceil(this.#windowUs / this.#looks)
  }
}

/**
 * What a claim takes, by the numbers of the caller: one permit more than the limit, of each limit
 * that refused. Undefined where it would not be felt when its time comes, because all that is used
 * leaves at one moment, and where others could not read it.
 */
export function claimedParts(parts: readonly Part[], verdicts: readonly Verdict[], isFar: boolean): Part[] | undefined {
  if (verdicts[0]?.degraded) return undefined
  const claimed = parts.map((part, k) => part.with({ cost: verdicts[k]?.retryUs === 0 ? 0 : part.rule.capacity + 1 }))
  const isClaimable = ({ cost, rule }: Part) => cost === 0 || (!rule.algorithm.endsAtOnce && (!isFar || isReadable(claimRule(rule, isFar))))
  return claimed.every(isClaimable) ? claimed : undefined
}

/**
 * The same for the store: by a limit that has so much room as long as no more than its own is in
 * use.
 */
export function claimOf(claimed: readonly Part[], isFar: boolean): Part[] {
  return claimed.map((part) => (part.cost === 0 ? part : part.with({ rule: claimRule(part.rule, isFar) })))
}

/**
 * A store that is far away knows a rule by its figures, the first of which is the capacity. One at
 * hand decides by the rule itself: there the figures, and with them the size of the state, stay as
 * they are. A log has room for the claim: for one entry more than it admits.
 */
function claimRule(rule: Rule, isFar: boolean): Rule {
  const capacity = 2 * rule.capacity + 1
  return isFar ? rule.algorithm.ruleOf([capacity, ...rule.figures.slice(1)]) : { ...rule, capacity }
}

/** A claim is renewed before what was used earlier has left: all of it may leave at one moment. */
export function renewalUs(claimed: readonly Part[]): number {
  return Math.ceil(longestWindowUs(claimed) / 2)
}

function longestWindowUs(claimed: readonly Part[]): number {
  let longestUs = 0
  for (const { cost, rule } of claimed) if (cost > 0) longestUs = Math.max(longestUs, rule.windowUs)
  return longestUs
}
