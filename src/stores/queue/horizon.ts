/**
 * How far ahead the queue of one process books, where other processes book at the same store.
 *
 * A booking that another process has booked behind cannot be given back. So a queue books only what
 * it needs to keep its callers served while an answer of the store is under way: until its last
 * booking is due `HORIZON_US` from now. All other callers wait outside and hold nothing, so that a
 * caller who leaves costs nobody a permit. Where nobody else books, everything is booked at once.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'
import { paceUs } from './departures.ts'

/**
 * Longer than an answer of a store takes. Others may book as much before the first caller of a
 * process that holds nothing yet.
 */
export const HORIZON_US = 100_000

/** How many questions may be under way before the first answer has told how busy the key is. */
const MOST_UNKNOWN = 32

export class Horizon {
  readonly #isShared: boolean
  /** How many calls more the store would have served at once, by its last answer. */
  #room: number | undefined

  constructor(isShared: boolean) {
    this.#isShared = isShared
  }

  answered(parts: readonly Part[], verdicts: readonly Verdict[]): void {
    this.#room = fewest(parts, ({ cost }, k) => (verdicts[k] as Verdict).remaining / cost)
  }

  /**
   * When the next booking may be asked for: the last one held is due at `lastDueUs`, and so many
   * questions for the same are under way.
   */
  opensUs(parts: readonly Part[], lastDueUs: number, onTheirWay: number): number {
    if (!this.#isShared) return Number.NEGATIVE_INFINITY
    const room =
      this.#room ??
      Math.min(
        MOST_UNKNOWN,
        fewest(parts, ({ cost, rule }) => rule.capacity / cost),
      )
    if (onTheirWay < Math.max(1, room) && lastDueUs === Number.NEGATIVE_INFINITY) return lastDueUs
    if (lastDueUs === Number.NEGATIVE_INFINITY) return Number.POSITIVE_INFINITY
    return lastDueUs + onTheirWay * paceUs(parts) - HORIZON_US
  }
}

function fewest(parts: readonly Part[], calls: (part: Part, k: number) => number): number {
  let least = Number.POSITIVE_INFINITY
  parts.forEach((part, k) => {
    if (part.cost > 0) least = Math.min(least, Math.floor(calls(part, k)))
  })
  return least
}
