/** A reservation that was granted, and what gives it back. */
import type { Ticket, Verdict } from '../algorithms/decide.ts'
import { type Booked, bookedOf } from '../stores/queue/booked-permits.ts'
import { type Charge, chargesOf, giveBacks, type Settlement, settlement } from '../stores/settlement.ts'
import { allAllowed, type Part } from '../stores/store.ts'
import type { Settler } from './settling.ts'

/**
 * Everything is read when it is made: a synchronous store overwrites its verdicts with the next
 * step.
 */
export class Reserved {
  readonly parts: readonly Part[]
  readonly booked: readonly (Booked | undefined)[]
  readonly #charges: readonly Charge[]
  readonly #tickets: readonly (Ticket | undefined)[]
  /** When it may be acted on; -Infinity if there is nothing to cancel. */
  #dueUs: number
  #isCancelled = false

  /**
   * `answeredUs`: when the answer came, by the clock that `end` is told, where that is not the
   * store's.
   */
  constructor(parts: readonly Part[], verdicts: readonly Verdict[], answeredUs = (verdicts[0] as Verdict).atUs) {
    const delayUs = allAllowed(verdicts) ? Math.max(...verdicts.map((verdict) => verdict.delayUs)) : 0
    this.parts = parts
    this.booked = bookedOf(parts, verdicts, answeredUs)
    this.#charges = chargesOf(parts, verdicts)
    this.#tickets = verdicts.map((verdict) => (verdict.delayUs > 0 ? verdict.ticket : undefined))
    this.#dueUs = delayUs > 0 ? answeredUs + delayUs : Number.NEGATIVE_INFINITY
  }

  /** A reservation that was cancelled is not settled, and one that was settled is not cancelled. */
  settledBy(settler: Settler): Settler {
    return {
      chargesOf: () => this.#charges,
      settle: (settled) => {
        const onAccepted = () => {
          this.#dueUs = Number.NEGATIVE_INFINITY
          settled.onAccepted?.()
        }
        return settler.settle({ ...settled, key: this.#isCancelled ? undefined : settled.key, onAccepted })
      },
    }
  }

  /** Ends it. False if its time has come, or it was ended before. */
  end(nowUs: number): boolean {
    const isHeld = nowUs < this.#dueUs
    if (isHeld) this.#dueUs = Number.NEGATIVE_INFINITY
    this.#isCancelled ||= isHeld
    return isHeld
  }

  /**
   * What is given back to the store, by the numbers of now. What was not booked ahead, only charged
   * along with the others, as any charge.
   */
  given(parts: readonly Part[]): Settlement[] {
    const booked = parts.map((part, k) => part.with({ ticket: this.#tickets[k] })).filter(({ ticket }) => ticket !== undefined)
    const isAlong = (_: unknown, k: number) => this.#tickets[k] === undefined
    return [settlement('give', -1, booked), ...giveBacks(parts.filter(isAlong), this.#charges.filter(isAlong))]
  }
}
