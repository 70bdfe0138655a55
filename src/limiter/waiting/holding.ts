/**
 * What the waiters of one key hold of one limit: permits booked ahead, in the order of their time. Each booking comes with the ticket that
 * the store answered. Permits belong to the queue and not to a waiter: whoever is first takes the earliest, so that a waiter who leaves
 * moves everybody behind it up, and what is given back is always the latest.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Ticket } from '../../algorithms/decide.ts'

export interface Booked {
  /** The numbers it was booked under. */
  readonly rule: Rule
  /** How many permits are held, the last of them where the ticket ends. */
  readonly cost: number
  readonly ticket: Ticket
  /** The store's time of the answer. */
  readonly takenAtUs: number
  /** What to add to the store's time to get the time of this process. */
  readonly offsetUs: number
}

export class Holding {
  #booked: Booked[] = []
  /** Those before it are spent. */
  #first = 0

  get isEmpty(): boolean {
    return this.#first === this.#booked.length
  }

  /** Adds a booking. Answers of a remote store may come out of order: the place is found by the time. */
  add(booked: Booked): void {
    let place = this.#booked.length
    const forUs = dueAtStoreUs(booked)
    while (place > this.#first && dueAtStoreUs(this.#booked[place - 1] as Booked) > forUs) place -= 1
    this.#booked.splice(place, 0, booked)
  }

  /** When the first `cost` permits may be acted on. */
  dueUs(cost: number): number {
    let missing = cost
    for (let k = this.#first; k < this.#booked.length; k++) {
      const booked = this.#booked[k] as Booked
      if (booked.cost >= missing) return dueUs(without(booked, booked.cost - missing), cost)
      missing -= booked.cost
    }
    return Number.NEGATIVE_INFINITY
  }

  /** When the last `cost` permits but for those `behind` may be acted on, by the store's time. */
  dueFromEndUs(cost: number, behind: number): number {
    let left = behind
    for (let k = this.#booked.length - 1; k >= this.#first; k--) {
      const booked = this.#booked[k] as Booked
      if (booked.cost > left) return dueAtStoreUs(without(booked, left), cost)
      left -= booked.cost
    }
    return Number.NEGATIVE_INFINITY
  }

  /** Uses up the first `cost` permits. */
  spend(cost: number): void {
    let left = cost
    while (left > 0 && !this.isEmpty) {
      const booked = this.#booked[this.#first] as Booked
      const spent = Math.min(left, booked.cost)
      left -= spent
      if (spent < booked.cost) this.#booked[this.#first] = { ...booked, cost: booked.cost - spent }
      else this.#dropFirst()
    }
  }

  /** Gives up the last `cost` permits. Returns the bookings to cancel for it, the latest first. */
  giveUp(cost: number): Booked[] {
    const given: Booked[] = []
    let left = cost
    while (left > 0 && !this.isEmpty) {
      const booked = this.#booked.pop() as Booked
      const part = Math.min(left, booked.cost)
      given.push({ ...booked, cost: part })
      left -= part
      if (part < booked.cost) this.#booked.push(without(booked, part))
    }
    return given
  }

  /** What was used before all bookings has been given back by `cost`: everybody moves up by that much. */
  moveUp(cost: number): void {
    if (this.isEmpty) return
    const first = this.#booked[this.#first] as Booked
    this.#booked.splice(this.#first, 0, { ...without(first, first.cost), cost })
    this.giveUp(cost)
  }

  /** Gives up everything. */
  giveUpAll(): Booked[] {
    return this.giveUp(Number.POSITIVE_INFINITY)
  }

  #dropFirst(): void {
    this.#first += 1
    if (this.#first < 1_000 || this.#first * 2 < this.#booked.length) return
    this.#booked = this.#booked.slice(this.#first)
    this.#first = 0
  }
}

/** The same booking without its last permits. */
function without(booked: Booked, permits: number): Booked {
  if (permits === 0) return booked
  const { rule, ticket } = booked
  const words = rule.algorithm.shorten?.(rule, ticket.words, permits) ?? ticket.words
  return { ...booked, cost: booked.cost - permits, ticket: { numbers: ticket.numbers, words } }
}

/** When whoever holds the last `cost` permits of a booking may act. */
function dueUs(booked: Booked, cost: number): number {
  return dueAtStoreUs(booked, cost) + booked.offsetUs
}

/** The same by the store's time. */
export function dueAtStoreUs({ rule, ticket, cost }: Booked, ofCost = cost): number {
  return rule.algorithm.dueUs?.(rule, ticket.words, ofCost) ?? Number.NEGATIVE_INFINITY
}
