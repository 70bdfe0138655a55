/**
 * The circuit breakers of a store, which all its limiters share: what one of them has found out the
 * others need not wait for. There is one for each part of the store that fails by itself.
 */
import type { SluiceError } from '../../errors.ts'
import type { Step } from '../step.ts'
import { Breaker, type Prober } from './breaker.ts'

/** What a limiter is to the breakers. */
export interface Member extends Prober {
  /** Told whenever a breaker opens or closes: why one is open, or that none is. */
  told(error: SluiceError | undefined): void
}

/** A member that is not held on to: a limiter may be dropped without being closed. */
export interface Seat {
  deref(): Member | undefined
}

export class Breakers {
  /** Why one is open; undefined while none is. */
  error: SluiceError | undefined = undefined
  /** How often one has closed. */
  closings = 0
  /** By the name of the part; only those that have been open. */
  readonly #byPart = new Map<string, Breaker>()
  readonly #seats = new Set<Seat>()

  /** The breaker of a part, if it is open. */
  openAt(part: string): Breaker | undefined {
    const breaker = this.#byPart.get(part)
    return breaker?.error === undefined ? undefined : breaker
  }

  /** For how long one has been open. */
  openForUs(): number {
    return Math.max(0, ...[...this.#open()].map((breaker) => breaker.openForUs()))
  }

  join(member: Member): Seat {
    this.#forgetDropped()
    // Cloudflare Workers have weak references since the compatibility date of 2025-05-05.
    const seat = typeof WeakRef === 'undefined' ? { deref: () => member } : new WeakRef(member)
    this.#seats.add(seat)
    return seat
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
   * A call of a member failed at these parts: for each the step to probe with. `closings`: how
   * often one had closed when it was sent. What was sent before a part was well says nothing of it.
   */
  failed(steps: ReadonlyMap<string, Step>, error: SluiceError, member: Member, closings: number): void {
    let isChange = false
    for (const [part, step] of steps) {
      const breaker = this.#byPart.get(part) ?? new Breaker(() => this.#close(part))
      if (breaker.error !== undefined || closings < breaker.closings) continue
      breaker.open(error, step, member)
      this.#byPart.set(part, breaker)
      isChange = true
    }
    if (isChange) this.#tell()
  }

  #close(part: string): void {
    const breaker = this.#byPart.get(part) as Breaker
    breaker.close()
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
        seat.deref()?.told(this.error)
      } catch (error) {
        // A clock of its own threw: the other members are told all the same.
        void Promise.reject(error)
      }
    }
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
