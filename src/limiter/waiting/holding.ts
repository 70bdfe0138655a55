/**
 * What the waiters of one key hold of one limit: permits booked ahead, in the order of their time. Each booking comes with the ticket that
 * the store answered. Permits belong to the queue and not to a waiter: whoever is first takes the earliest, so that a waiter who leaves
 * moves everybody behind it up, and what is given back is always the latest.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Ticket, Verdict } from '../../algorithms/decide.ts'
import type { Charge } from '../../stores/settlement.ts'
import type { Part } from '../../stores/store.ts'

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

/** What an answer that came at `nowUs` booked of each limit: nothing where nothing was asked for. */
export function bookedOf(parts: readonly Part[], verdicts: readonly Verdict[], nowUs: number): (Booked | undefined)[] {
  return parts.map(({ rule, cost }, k) => {
    const { ticket, atUs } = verdicts[k] as Verdict
    return ticket === undefined ? undefined : { rule, cost, ticket, takenAtUs: atUs, offsetUs: nowUs - atUs }
  })
}

export class Holding {
  #booked: Held[] = []
  /** Those before it are spent. */
  #first = 0
  #gaps = 0
  /** The least that any answer said: each says what the clocks differ by and how long it was under way. */
  #offsetUs = Number.POSITIVE_INFINITY

  get isEmpty(): boolean {
    return this.#first === this.#booked.length
  }

  /** Whether somebody else holds permits in between. */
  get hasGaps(): boolean {
    return this.#gaps > 0
  }

  /** Whether a booking ends where the first one here begins. */
  isLedBy(booked: Booked): boolean {
    return !this.isEmpty && follows(this.#booked[this.#first] as Booked, booked)
  }

  /** Adds a booking. Answers of a remote store may come out of order: the place is found by the time. */
  add(booked: Booked): void {
    this.#offsetUs = Math.min(this.isEmpty ? Number.POSITIVE_INFINITY : this.#offsetUs, booked.offsetUs)
    const forUs = dueAtStoreUs(booked)
    const behind: Booked[] = []
    while (!this.isEmpty && dueAtStoreUs(this.#booked.at(-1) as Booked) > forUs) behind.push(this.#pop())
    for (const each of [booked, ...behind.reverse()]) this.#push(each)
  }

  /** What to add to the store's time to get the time of this process, or a little later. */
  get offsetUs(): number {
    return this.#offsetUs
  }

  /** When the first `cost` permits may be acted on, by the store's time. */
  dueUs(cost: number): number {
    let missing = cost
    for (let k = this.#first; k < this.#booked.length; k++) {
      const booked = this.#booked[k] as Booked
      if (booked.cost >= missing) return dueAtStoreUs(without(booked, booked.cost - missing), cost)
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

  /** When the last permits may be acted on, by the time of this process; -Infinity if none are held. */
  get lastDueUs(): number {
    return this.isEmpty ? Number.NEGATIVE_INFINITY : dueAtStoreUs(this.#booked.at(-1) as Booked) + this.#offsetUs
  }

  /** Uses up the first `cost` permits. */
  spend(cost: number): void {
    let left = cost
    while (left > 0 && !this.isEmpty) {
      const booked = this.#booked[this.#first] as Held
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
      const booked = this.#pop()
      const part = Math.min(left, booked.cost)
      given.push({ ...booked, cost: part })
      left -= part
      if (part < booked.cost) this.#push(without(booked, part))
    }
    return given
  }

  /** Gives up the `cost` permits behind the first `before`, and nobody moves up. Returns the bookings to cancel for it, the latest first. */
  giveUpHole(before: number, cost: number): Booked[] {
    let behind = -before - cost
    for (let k = this.#first; k < this.#booked.length; k++) behind += (this.#booked[k] as Booked).cost
    const later = this.giveUp(behind).reverse()
    const given = this.giveUp(cost)
    for (const each of later) this.#push(each)
    return given
  }

  /** What was used before all bookings has been given back by `cost`: everybody moves up by that much. */
  moveUp(cost: number): void {
    if (this.isEmpty || cost === 0) return
    const first = this.#booked[this.#first] as Held
    this.#booked.splice(this.#first, 0, { ...without(first, first.cost), cost, afterGap: false })
    this.giveUp(cost)
  }

  #push(booked: Booked): void {
    const before = this.isEmpty ? undefined : (this.#booked.at(-1) as Booked)
    const afterGap = before !== undefined && hasOthersBetween(before, booked)
    this.#booked.push({ ...booked, afterGap })
    if (afterGap) this.#gaps += 1
  }

  #pop(): Booked {
    const booked = this.#booked.pop() as Held
    if (booked.afterGap) this.#gaps -= 1
    return booked
  }

  #dropFirst(): void {
    this.#first += 1
    if (this.isEmpty || this.#first >= Math.max(1_000, this.#booked.length / 2)) {
      this.#booked = this.#booked.slice(this.#first)
      this.#first = 0
    }
    const next = this.#booked[this.#first]
    if (next === undefined || !next.afterGap) return
    this.#booked[this.#first] = { ...next, afterGap: false }
    this.#gaps -= 1
  }
}

/** `afterGap`: somebody else holds permits between this booking and the one before it. */
interface Held extends Booked {
  readonly afterGap: boolean
}

/** Whether a booking begins where another ends. What can be booked is a level, and its first two words are where it ends. */
function follows(booked: Booked, before: Booked): boolean {
  if (before.ticket.numbers !== booked.ticket.numbers) return false
  const { words } = without(booked, booked.cost).ticket
  return words[0] === before.ticket.words[0] && words[1] === before.ticket.words[1]
}

/** Whether somebody else's permits, who is yet to act, lie between two bookings. Nobody is, if all before the second could act when it was made. */
function hasOthersBetween(before: Booked, booked: Booked): boolean {
  return dueAtStoreUs(without(booked, booked.cost), 0) > booked.takenAtUs && !follows(booked, before)
}

/** The same booking without its last permits. */
function without(booked: Booked, permits: number): Booked {
  if (permits === 0) return booked
  const { rule, ticket } = booked
  const words = rule.algorithm.shorten?.(rule, ticket.words, permits) ?? ticket.words
  return { ...booked, cost: booked.cost - permits, ticket: { numbers: ticket.numbers, words } }
}

/** A booking whose time has come, as the charge that it is. */
export function chargeOf({ ticket: { numbers, words }, takenAtUs }: Booked): Charge {
  const [tatUs, part] = words as unknown as readonly [number, number]
  return { enteredUs: takenAtUs, drainedUs: part > 0 ? tatUs + 1 : tatUs, numbers }
}

/** When whoever holds the last `cost` permits of a booking may act, by the store's time. */
export function dueAtStoreUs({ rule, ticket, cost }: Booked, ofCost = cost): number {
  return rule.algorithm.actUs?.(rule, ticket.words, ofCost) ?? Number.NEGATIVE_INFINITY
}
