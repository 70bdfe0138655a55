/**
 * Permits of one limit that the waiters of one key have booked ahead, in the order of their time.
 * Each booking comes with the ticket that the store answered. Permits belong to the queue and not
 * to a waiter: the first waiter takes the earliest, so that a waiter that leaves moves all behind
 * it up, and the latest permits are given back. Bookings that lie one behind the other are one run.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import type { Ticket, Verdict } from '../../algorithms/decide.ts'
import type { Charge } from '../settlement.ts'
import type { Part } from '../store.ts'

export interface Booked {
  /** The numbers it was booked under. */
  readonly rule: Rule
  /** How many permits are held, the last of them where the ticket ends. */
  readonly cost: number
  readonly ticket: Ticket
  /** The store's time of the answer. */
  readonly takenAtUs: number
  /** The offset from the store's time to the time of this process. */
  readonly offsetUs: number
}

/**
 * The bookings of an answer that came at `nowUs`, for each limit: none where nothing was asked for.
 */
export function bookedOf(parts: readonly Part[], verdicts: readonly Verdict[], nowUs: number): (Booked | undefined)[] {
  return parts.map(({ rule, cost }, k) => {
    const { ticket, atUs } = verdicts[k] as Verdict
    return ticket && { rule, cost, ticket, takenAtUs: atUs, offsetUs: nowUs - atUs }
  })
}

export class BookedPermits {
  readonly #runs: Run[] = []
  /**
   * The offset from the store's time to the time of this process: the least of all answers, for
   * each was under way some time.
   */
  offsetUs = 0

  /** Whether others hold permits in between. */
  get hasGaps(): boolean {
    return this.#runs.some(({ afterGap }, k) => afterGap && k > 0)
  }

  /** Whether a booking ends where the first one here begins. */
  isLedBy(booked: Booked): boolean {
    const [first] = this.#runs
    return first !== undefined && follows(first, booked)
  }

  /**
   * Adds a booking. Answers of a remote store may come out of order: the place is found by the
   * time.
   */
  add(booked: Booked): void {
    this.offsetUs = this.#runs.length === 0 ? booked.offsetUs : Math.min(this.offsetUs, booked.offsetUs)
    const endUs = dueAtStoreUs(booked, 0)
    const later: Booked[] = []
    for (let run = this.#runs.at(-1); run !== undefined && dueAtStoreUs(run, 0) > endUs; run = this.#runs.at(-1)) {
      later.unshift(run)
      this.#runs.pop()
    }
    for (const each of [booked, ...later]) this.#push(each)
  }

  /** When the first `cost` permits may be acted on, by the store's time. */
  dueUs(cost: number): number {
    let missing = cost
    for (const run of this.#runs) {
      if (run.cost >= missing) return dueAtStoreUs(without(run, run.cost - missing), cost)
      missing -= run.cost
    }
    return Number.NEGATIVE_INFINITY
  }

  /**
   * When the last `cost` permits but for those `behind` may be acted on, by the store's time;
   * -Infinity if none are held.
   */
  dueFromEndUs(cost: number, behind: number): number {
    let left = behind
    for (let k = this.#runs.length - 1; k >= 0; k--) {
      const run = this.#runs[k] as Run
      if (run.cost > left) return dueAtStoreUs(without(run, left), cost)
      left -= run.cost
    }
    return Number.NEGATIVE_INFINITY
  }

  /** Uses up the first `cost` permits. */
  spend(cost: number): void {
    let left = cost
    for (let [run] = this.#runs; left > 0 && run !== undefined; [run] = this.#runs) {
      if (left < run.cost) this.#runs[0] = { ...run, cost: run.cost - left }
      else this.#runs.shift()
      left -= run.cost
    }
  }

  /** Gives up the last `cost` permits. Returns the bookings to cancel for it, the latest first. */
  giveUp(cost: number): Booked[] {
    const given: Booked[] = []
    let left = cost
    while (left > 0) {
      const run = this.#runs.pop()
      if (run === undefined) break
      given.push({ ...run, cost: Math.min(left, run.cost) })
      if (left < run.cost) this.#runs.push({ ...run, ...without(run, left) })
      left -= run.cost
    }
    return given
  }

  /**
   * Gives up the `cost` permits behind the first `before`, and nobody moves up. Returns the
   * bookings to cancel for it, the latest first.
   */
  giveUpHole(before: number, cost: number): Booked[] {
    const all = this.#runs.reduce((sum, run) => sum + run.cost, 0)
    const later = this.giveUp(all - before - cost)
    const given = this.giveUp(cost)
    for (const each of later.reverse()) this.#push(each)
    return given
  }

  /**
   * `cost` permits, used before all bookings, have been given back: all waiters move up by that
   * much.
   */
  moveUp(cost: number): void {
    const [first] = this.#runs
    if (first === undefined) return
    this.#runs[0] = { ...first, cost: first.cost + cost }
    this.giveUp(cost)
  }

  /** A booking that begins where the last run ends makes it longer. */
  #push(booked: Booked): void {
    const last = this.#runs.at(-1)
    // Whether all permits before it could be acted on when it was made: then nobody is in between.
    const isBehind = last !== undefined && dueAtStoreUs(without(booked, booked.cost), 0) > booked.takenAtUs
    const isNext = isBehind && follows(booked, last)
    if (isNext) this.#runs.pop()
    this.#runs.push(isNext ? { ...booked, cost: last.cost + booked.cost, afterGap: last.afterGap } : { ...booked, afterGap: isBehind })
  }
}

/**
 * Bookings of which each begins where the one before it ends. `afterGap`: others hold permits
 * between this run and the one before.
 */
interface Run extends Booked {
  readonly afterGap: boolean
}

/**
 * Whether a booking begins where another ends. A limit that can be booked is a level, and its first
 * two words are its end.
 */
function follows(booked: Booked, before: Booked): boolean {
  if (before.ticket.numbers !== booked.ticket.numbers) return false
  const { words } = without(booked, booked.cost).ticket
  return words[0] === before.ticket.words[0] && words[1] === before.ticket.words[1]
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

/** When the holder of the last `cost` permits of a booking may act, by the store's time. */
export function dueAtStoreUs({ rule, ticket, cost }: Booked, ofCost = cost): number {
  return rule.algorithm.actUs?.(rule, ticket.words, ofCost) ?? Number.NEGATIVE_INFINITY
}
