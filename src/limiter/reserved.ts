/** A reservation that was granted, and what gives it back. */
import type { Ticket, Verdict } from '../algorithms/decide.ts'
import { type Given, givenOf } from '../stores/queue/given.ts'
import { type Booked, bookedOf } from '../stores/queue/holding.ts'
import { allAllowed, type Part } from '../stores/store.ts'

/** Everything is read when it is made: a synchronous store overwrites its verdicts with the next step. */
export class Reserved {
  readonly parts: readonly Part[]
  readonly booked: readonly (Booked | undefined)[]
  readonly #entered: readonly Pick<Verdict, 'enteredUs'>[]
  readonly #tickets: readonly (Ticket | undefined)[]
  /** When it may be acted on; -Infinity if there is nothing to cancel. */
  #dueUs: number

  /** `answeredUs`: when the answer came, by the clock that `end` is told, where that is not the store's. */
  constructor(parts: readonly Part[], verdicts: readonly Verdict[], answeredUs = (verdicts[0] as Verdict).atUs) {
    const delayUs = allAllowed(verdicts) ? Math.max(...verdicts.map((verdict) => verdict.delayUs)) : 0
    this.parts = parts
    this.booked = bookedOf(parts, verdicts, answeredUs)
    this.#entered = verdicts.map(({ enteredUs }) => ({ enteredUs }))
    // What was not booked ahead, only charged along with the others, is given back by the time of the charge.
    this.#tickets = verdicts.map((verdict) => (verdict.delayUs > 0 ? verdict.ticket : undefined))
    this.#dueUs = delayUs > 0 ? answeredUs + delayUs : Number.NEGATIVE_INFINITY
  }

  /** Ends it. False if its time has come, or it was ended before. */
  end(nowUs: number): boolean {
    const isHeld = nowUs < this.#dueUs
    if (isHeld) this.#dueUs = Number.NEGATIVE_INFINITY
    return isHeld
  }

  /** What is given back to the store, by the numbers of now: together what was entered at one time. */
  given(parts: readonly Part[]): Given[] {
    return givenOf(
      parts.map((part, k) => part.with({ ticket: this.#tickets[k] })),
      this.#entered,
    )
  }
}
