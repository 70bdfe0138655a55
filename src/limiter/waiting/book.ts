/** What the waiters of one key hold, limit by limit, and how it is given back to the store. */
import { type Charge, giveBacks, type Settlement } from '../../stores/settlement.ts'
import { Part } from '../../stores/step.ts'
import type { Desk } from './desk.ts'
import { type Booked, chargeOf, dueAtStoreUs, Holding } from './holding.ts'

export class Book {
  readonly #desk: Desk
  readonly #plan: string | undefined
  /** One for each limit, in their order. */
  #holdings: readonly Holding[] = []
  /** What those held who left while answers were awaited: only when all are there it is known which permits are the latest. */
  #left: (readonly Part[])[] = []
  /** What was taken under numbers that are no longer in force. */
  #outdated: { readonly parts: readonly Part[]; readonly taken: readonly Charge[] }[] = []

  constructor(desk: Desk, plan: string | undefined) {
    this.#desk = desk
    this.#plan = plan
  }

  /** Whether somebody else holds permits in between. */
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

  add(booked: readonly (Booked | undefined)[]): void {
    if (this.#holdings.length === 0) this.#holdings = booked.map(() => new Holding())
    this.#holdings.forEach((holding, k) => {
      const added = booked[k]
      if (added !== undefined) holding.add(added)
    })
  }

  /** What was used before all bookings has been given back, so many permits of each limit. */
  moveUp(costs: readonly number[]): void {
    if (this.hasGaps) return
    this.#holdings.forEach((holding, k) => {
      holding.moveUp(costs[k] as number)
    })
  }

  /** The earliest permits are used, as many as the parts ask for. */
  spend(parts: readonly Part[]): void {
    this.#eachHolding(parts, (holding, { cost }) => holding.spend(cost))
  }

  /** When the earliest permits of every limit may be acted on. */
  dueUs(parts: readonly Part[]): number {
    return this.#latestUs(parts, (holding, cost) => holding.dueUs(cost) + holding.offsetUs)
  }

  /** When the last permits held may be acted on; -Infinity if none are held. */
  get lastDueUs(): number {
    return this.#holdings.reduce((latestUs, holding) => Math.max(latestUs, holding.lastDueUs), Number.NEGATIVE_INFINITY)
  }

  /** When a call may act that has the latest permits, but for those of so many calls `behind` it that ask for the same. */
  dueFromEndUs(parts: readonly Part[], behind: number): number {
    return this.#latestUs(parts, (holding, cost) => holding.dueFromEndUs(cost, cost * behind) + holding.offsetUs)
  }

  /** When the earliest permits may be acted on by the store's time. */
  dueAtStoreUs(parts: readonly Part[]): number {
    return this.#latestUs(parts, (holding, cost) => holding.dueUs(cost))
  }

  /** Whether those who hold the latest permits, but for those `behind` them of each limit, may act later than `forUs` by the store's time. */
  isLaterThan(forUs: number, parts: readonly Part[], behind: readonly number[]): boolean {
    return this.#holdings.some((holding, k) => {
      const { cost } = parts[k] as Part
      return cost > 0 && holding.dueFromEndUs(cost, behind[k] as number) > forUs
    })
  }

  /** The store has forgotten everything. */
  forget(): void {
    this.#holdings = []
    this.#left = []
    this.#outdated = []
  }

  /** Whether something is to be given back as soon as all answers are there. */
  get owes(): boolean {
    return this.#left.length > 0 || this.#outdated.length > 0
  }

  /** To be given back then: the latest, as many as the parts ask for. */
  oweLatest(parts: readonly Part[]): void {
    this.#left.push(parts)
  }

  /** To be given back then: what was taken under numbers that are no longer in force. */
  oweOutdated(parts: readonly Part[], taken: readonly Charge[]): void {
    this.#outdated.push({ parts, taken })
  }

  /** All answers are there. */
  settle(): void {
    for (const parts of this.#left.splice(0)) this.giveUpLatest(parts)
    for (const { parts, taken } of this.#outdated.splice(0)) this.refund(parts, taken)
  }

  /** Booked permits are the queue's: whoever leaves, the latest are given back, as many as the parts ask for. */
  giveUpLatest(parts: readonly Part[]): void {
    this.#eachHolding(parts, (holding, { cost }, limit) => {
      this.#giveBack(parts, limit, holding.giveUp(cost))
    })
  }

  /** Gives back what lies behind so many permits of each limit, and nobody moves up. */
  giveUpHole(parts: readonly Part[], before: readonly number[]): void {
    this.#eachHolding(parts, (holding, { cost }, limit) => {
      this.#giveBack(parts, limit, holding.giveUpHole(before[limit] as number, cost))
    })
  }

  /** What was taken where nothing is booked (a window among the limits) is given back as of the moment it was taken. */
  refund(parts: readonly Part[], taken: readonly Charge[]): void {
    for (const settlement of giveBacks(parts, taken)) this.#give(settlement)
  }

  #latestUs(parts: readonly Part[], timeUs: (holding: Holding, cost: number) => number): number {
    let latestUs = Number.NEGATIVE_INFINITY
    this.#eachHolding(parts, (holding, { cost }) => {
      // Whoever asks for nothing of a limit does not wait for those who do.
      if (cost > 0) latestUs = Math.max(latestUs, timeUs(holding, cost))
    })
    return latestUs
  }

  #eachHolding(parts: readonly Part[], visit: (holding: Holding, part: Part, k: number) => void): void {
    this.#holdings.forEach((holding, k) => {
      visit(holding, parts[k] as Part, k)
    })
  }

  #giveBack(parts: readonly Part[], limit: number, given: readonly Booked[]): void {
    for (const booked of given) {
      const { cost, ticket } = booked
      const back = parts.map(
        (part, k) => new Part(part.limit, part.rule, part.key, k === limit ? cost : 0, k === limit ? ticket : undefined),
      )
      if (this.#isToCome(booked)) this.#give({ op: 'give', aheadUs: -1, ofUs: -1, parts: back })
      else
        this.refund(
          back,
          back.map(() => chargeOf(booked)),
        )
    }
  }

  /**
   * Whether the time of a booking is still to come. One whose time has come can be held because it was only a part of what its waiter needs: it cannot
   * be cancelled any longer, but it was not used, and is given back like any charge.
   */
  #isToCome(booked: Booked): boolean {
    return dueAtStoreUs(booked) + booked.offsetUs > this.#desk.nowUs()
  }

  /** Nobody waits for the answer. If the store fails now, what was not given back drains. */
  #give({ parts, ...verb }: Settlement): void {
    try {
      const answer = this.#desk.apply(verb, this.#plan, parts)
      if (answer instanceof Promise) answer.catch(() => {})
    } catch {}
  }
}
