/** The bookings of the waiters of one key, limit by limit, and how they are given back. */

import { type Charge, giveBacks, type Settlement } from '../settlement.ts'
import type { Part } from '../step.ts'
import { type Booked, BookedPermits } from './booked-permits.ts'

export class Book {
  /** One for each limit, in their order. */
  #holdings: readonly BookedPermits[] = []

  /** Whether others hold permits in between. */
  get hasGaps(): boolean {
    return this.#holdings.some((holding) => holding.hasGaps)
  }

  /** Whether permits lie right before all that are held here, with nobody else's in between. */
  isLedBy(booked: readonly (Booked | undefined)[]): boolean {
    return this.#holdings.every((holding, k) => {
      const added = booked[k]
      return !holding.hasGaps && (added === undefined || holding.isLedBy(added))
    })
  }

  /** What is given back of charges, as bookings: none where that is nothing. */
  bookingsOf(parts: readonly Part[], charges: readonly Charge[]): (Booked | undefined)[] {
    return this.#holdings.map((holding, k) => {
      const part = parts[k] as Part
      return part.cost > 0 ? holding.bookingOf(part, charges[k] as Charge) : undefined
    })
  }

  add(booked: readonly (Booked | undefined)[]): void {
    if (this.#holdings.length === 0) this.#holdings = booked.map(() => new BookedPermits())
    this.#holdings.forEach((holding, k) => {
      const added = booked[k]
      if (added !== undefined) holding.add(added)
    })
  }

  /** So many permits of each limit, used before all bookings, have been given back. */
  moveUp(costs: readonly number[]): void {
    if (this.hasGaps) return
    for (const [k, holding] of this.#holdings.entries()) holding.moveUp(costs[k] as number)
  }

  /** The earliest permits are used, as many as the parts ask for. */
  spend(parts: readonly Part[]): void {
    for (const [k, holding] of this.#holdings.entries()) holding.spend((parts[k] as Part).cost)
  }

  /**
   * When the earliest permits of every limit may be acted on, by the time of this process or by the
   * store's.
   */
  dueUs(parts: readonly Part[], isStoreTime = false): number {
    return this.#latestUs(parts, (holding, cost) => holding.dueUs(cost) + (isStoreTime ? 0 : holding.offsetUs))
  }

  /**
   * When a call may act that has the latest permits, but for those of so many calls `behind` it
   * that ask for the same.
   */
  dueFromEndUs(parts: readonly Part[], behind: number): number {
    return this.#latestUs(parts, (holding, cost) => holding.dueFromEndUs(cost, cost * behind) + holding.offsetUs)
  }

  /**
   * Whether the holders of the latest permits, but for the permits `behind` them of each limit, may
   * act later than `forUs` by the store's time.
   */
  isLaterThan(forUs: number, parts: readonly Part[], behind: readonly number[]): boolean {
    return this.#latestUs(parts, (holding, cost, k) => holding.dueFromEndUs(cost, behind[k] as number)) > forUs
  }

  /** The store has forgotten everything. */
  forget(): void {
    this.#holdings = []
  }

  /**
   * Booked permits are the queue's: whichever caller leaves, the latest are given back, as many as
   * the parts ask for.
   */
  giveUpLatest(parts: readonly Part[]): Settlement[] {
    return this.#givenUp(parts, (holding, cost) => holding.giveUp(cost))
  }

  /** Gives up what lies behind so many permits of each limit, and nobody moves up. */
  giveUpHole(parts: readonly Part[], before: readonly number[]): Settlement[] {
    return this.#givenUp(parts, (holding, cost, k) => holding.giveUpHole(before[k] as number, cost))
  }

  #latestUs(parts: readonly Part[], timeUs: (holding: BookedPermits, cost: number, k: number) => number): number {
    let latestUs = Number.NEGATIVE_INFINITY
    this.#holdings.forEach((holding, k) => {
      const { cost } = parts[k] as Part
      // A caller that asks for nothing of a limit does not wait for those that do.
      if (cost > 0) latestUs = Math.max(latestUs, timeUs(holding, cost, k))
    })
    return latestUs
  }

  #givenUp(parts: readonly Part[], giveUp: (holding: BookedPermits, cost: number, k: number) => readonly Booked[]): Settlement[] {
    return this.#holdings.flatMap((holding, limit) =>
      giveUp(holding, (parts[limit] as Part).cost, limit).flatMap(({ cost, charge }) => {
        const back = parts.map((part, k) => part.with({ cost: k === limit ? cost : 0 }))
        return giveBacks(
          back,
          back.map(() => charge),
        )
      }),
    )
  }
}
