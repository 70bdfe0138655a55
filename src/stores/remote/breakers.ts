/**
 * The circuit breakers of a store, which all its limiters share: what one of them has found out the
 * others need not wait for. There is one for each part of the store that fails by itself.
 */
import { type SluiceError, warnOnce } from '../../errors.ts'
import type { Step } from '../step.ts'
import { Breaker, type Prober } from './breaker.ts'

/** What a limiter is to the breakers. */
export interface Member extends Prober {
  /** Told whenever a breaker opens or closes: why one is open for it, or that none is. */
  told(error: SluiceError | undefined): void
}

/** A member that is not held on to: a limiter may be dropped without being closed. */
export interface Seat {
  deref(): Member | undefined
}

/**
 * Cloudflare Workers have weak references since the compatibility date of 2025-05-05. Without them
 * a limiter joins when it meets an outage, until its end: it would be held for ever otherwise.
 */
export const hasWeakSeats: boolean = typeof WeakRef !== 'undefined'

export function seatOf(member: Member): Seat {
  return hasWeakSeats ? new WeakRef(member) : { deref: () => member }
}

interface Call {
  readonly step: Step
  /** How often a breaker had closed when it was sent. */
  readonly closings: number
}

export class Breakers {
  /** Why one is open; undefined while none is. */
  error: SluiceError | undefined = undefined
  /** How often one has closed, for all or for some. */
  closings = 0
  /** By the name of the part; only those that have been open. */
  readonly #byPart = new Map<string, Breaker>()
  readonly #seats = new Set<Seat>()

  /** The breaker of a part, if it is open for that member. */
  openAt(part: string, member: Member): Breaker | undefined {
    const breaker = this.#byPart.get(part)
    return breaker?.isOpenFor(member) ? breaker : undefined
  }

  /** Why one is open for that member. */
  errorFor(member: Member): SluiceError | undefined {
    for (const breaker of this.#open()) if (breaker.isOpenFor(member)) return breaker.error
    return undefined
  }

  /** For how long one has been open. */
  openForUs(): number {
    return Math.max(0, ...[...this.#open()].map((breaker) => breaker.openForUs()))
  }

  join(seat: Seat): void {
    if (this.#seats.has(seat)) return
    this.#forgetDropped()
    this.#seats.add(seat)
  }

  /** Another goes on with its probes. With the last one they end, and what was known with them. */
  leave(seat: Seat): void {
    const member = seat.deref() as Member
    this.#seats.delete(seat)
    if (this.error === undefined) return
    const other = this.#anyMember()
    for (const breaker of this.#open()) {
      if (other === undefined) breaker.close()
      else if (breaker.isProbedBy(member)) breaker.handTo(other)
    }
    if (other === undefined) this.error = undefined
  }

  #anyMember(): Member | undefined {
    for (const seat of this.#seats) {
      const member = seat.deref()
      if (member !== undefined) return member
    }
    return undefined
  }

  /**
   * A call of a member failed at these parts: for each the step to probe with. What was sent before
   * a part was well says nothing of it.
   */
  failed(steps: ReadonlyMap<string, Step>, error: SluiceError, call: Call, member: Member): void {
    let isChange = false
    for (const [part, step] of steps) {
      const breaker = this.#byPart.get(part) ?? new Breaker(() => this.#answered(part))
      if (breaker.isOpenFor(member) || call.closings < breaker.closings) continue
      breaker.open(error, step, member, call.step.isGivenUp)
      this.#byPart.set(part, breaker)
      isChange = true
    }
    if (isChange) this.#tell()
  }

  #answered(part: string): void {
    const breaker = this.#byPart.get(part) as Breaker
    this.closings += 1
    breaker.closings = this.closings
    this.#tell()
  }

  *#open(): Iterable<Breaker> {
    for (const breaker of this.#byPart.values()) if (breaker.error !== undefined) yield breaker
  }

  #tell(): void {
    const [first] = this.#open()
    this.error = first?.error
    for (const seat of [...this.#seats]) {
      try {
        const member = seat.deref()
        member?.told(this.errorFor(member))
      } catch (error) {
        // The other members are told all the same.
        warnOnce('SLUICE_LISTENER', `the clock of a limiter failed when its store went down or came back: ${String(error)}`, error)
      }
    }
    if (!hasWeakSeats && first === undefined) this.#seats.clear()
  }

  /** Two are looked at for each that is added, so those that were dropped are never many. */
  #forgetDropped(): void {
    const seats = this.#seats.values()
    for (let looks = 0; looks < 2; looks++) {
      const seat = seats.next().value
      if (seat === undefined) return
      this.#seats.delete(seat)
      if (seat.deref() !== undefined) this.#seats.add(seat)
    }
  }
}
