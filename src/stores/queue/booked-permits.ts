/**
 * Permits of one limit that the waiters of one key have booked ahead, in the order of their time.
 * Permits belong to the queue and not to a waiter: the first waiter takes the earliest, so that a
 * waiter that leaves moves all behind it up, and the latest permits are given back. The store says
 * when a booking may be acted on; its permits come due one interval apart. Bookings that lie one
 * behind the other are one run.
 */
import type { Rule } from '../../algorithms/algorithm.ts'
import { mulDiv, remainder } from '../../algorithms/arithmetic.ts'
import type { Verdict } from '../../algorithms/decide.ts'
import { type Charge, chargesOf } from '../settlement.ts'
import type { Part } from '../store.ts'

/** A time: whole microseconds, and a part of one over the permits of the pace. */
interface Time {
  readonly us: number
  readonly part: number
}

export interface Booked {
  /** The numbers it was booked under. */
  readonly rule: Rule
  /** How many permits are held, the last of them where the charge ends. */
  readonly cost: number
  /** The charge, less the permits behind these. */
  readonly charge: Charge
  /**
   * By the store's time, when the last of them may be acted on; in a queue, when that one has left.
   */
  readonly end: Time
  /** The store's time of the answer. */
  readonly takenAtUs: number
  /** The offset from the store's time to the time of this process. */
  readonly offsetUs: number
}

/**
 * The bookings of an answer that came at `nowUs`, for each limit: none where nothing was asked for.
 */
export function bookedOf(parts: readonly Part[], verdicts: readonly Verdict[], nowUs: number): (Booked | undefined)[] {
  const charges = chargesOf(parts, verdicts)
  return parts.map(({ rule, cost }, k) => {
    if (cost === 0 || !rule.algorithm.bookable) return undefined
    const { atUs } = verdicts[k] as Verdict
    const charge = charges[k] as Charge
    const due = { us: charge.dueUs, part: 0 }
    return { rule, cost, charge, end: rule.algorithm.spaced ? later(due, rule, cost) : due, takenAtUs: atUs, offsetUs: nowUs - atUs }
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

  /** So many permits of a charge that was made beside the queue. */
  bookingOf({ rule, cost }: Part, charge: Charge): Booked {
    const us = rule.algorithm.spaced ? charge.drainedUs : charge.dueUs
    return { rule, cost, charge, end: { us, part: 0 }, takenAtUs: charge.enteredUs, offsetUs: this.offsetUs }
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
    const later: Booked[] = []
    for (let run = this.#runs.at(-1); run !== undefined && isLater(run.end, booked.end); run = this.#runs.at(-1)) {
      later.unshift(run)
      this.#runs.pop()
    }
    for (const each of [booked, ...later]) this.#push(each)
  }

  /** When the first `cost` permits may be acted on, by the store's time. */
  dueUs(cost: number): number {
    let missing = cost
    for (const run of this.#runs) {
      if (run.cost >= missing) return dueAtStoreUs(run, run.cost - missing, cost)
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
      if (run.cost > left) return dueAtStoreUs(run, left, cost)
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

  /**
   * Gives up the last `cost` permits. Returns the bookings to give back for it, the latest first.
   */
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
   * bookings to give back for it, the latest first.
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
    const isBehind = last !== undefined && isLater(beginOf(booked), { us: booked.takenAtUs, part: 0 })
    if (last === undefined || !isBehind || !follows(booked, last)) {
      this.#runs.push({ ...booked, afterGap: isBehind })
      return
    }
    this.#runs.pop()
    // The store rounds each of its times up, so the earlier one is nearer.
    const end = later(last.end, booked.rule, booked.cost)
    this.#runs.push({
      ...booked,
      cost: last.cost + booked.cost,
      end: isLater(booked.end, end) ? end : booked.end,
      afterGap: last.afterGap,
    })
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
 * Whether a booking begins where another ends. Where a permit takes no whole number of microseconds
 * the store's times are rounded up, and between permits that are too near nothing is known.
 */
function follows(booked: Booked, before: Booked): boolean {
  if (before.charge.numbers !== booked.charge.numbers) return false
  const { permits, periodUs } = paceOf(booked.rule)
  const begin = beginOf(booked)
  const apart = (begin.us - before.end.us) * permits + begin.part - before.end.part
  return apart === 0 || (Math.abs(apart) < permits && periodUs >= 2 * permits)
}

/** When a permit right before these could be acted on. */
function beginOf({ rule, cost, end }: Booked): Time {
  return earlier(end, rule, cost)
}

/** The same booking without its last permits. */
function without(booked: Booked, permits: number): Booked {
  const { rule, cost, charge, end } = booked
  const left = { ...charge, given: (charge.given ?? 0) + permits }
  return { ...booked, cost: cost - permits, charge: left, end: earlier(end, rule, permits) }
}

/**
 * When a caller may act that has the last `cost` permits of a booking but for those `behind` them,
 * by the store's time. In a queue that is when all permits before its own have left.
 */
function dueAtStoreUs({ rule, end }: Booked, behind: number, cost: number): number {
  const { us, part } = earlier(end, rule, rule.algorithm.spaced ? behind + cost : behind)
  return part > 0 ? us + 1 : us
}

/** What can be booked is a level: its figures are the capacity, the permits and their period. */
function paceOf({ figures }: Rule): { readonly permits: number; readonly periodUs: number } {
  const [, permits, periodUs] = figures as readonly [number, number, number]
  return { permits, periodUs }
}

/** So many permits later: they come due one interval apart. */
function later({ us, part }: Time, rule: Rule, count: number): Time {
  const { permits, periodUs } = paceOf(rule)
  const whole = us + mulDiv(count, periodUs, permits)
  const rest = part + (remainder[0] as number)
  return rest < permits ? { us: whole, part: rest } : { us: whole + 1, part: rest - permits }
}

/** So many permits earlier. */
function earlier({ us, part }: Time, rule: Rule, count: number): Time {
  const { permits, periodUs } = paceOf(rule)
  const whole = us - mulDiv(count, periodUs, permits)
  const rest = part - (remainder[0] as number)
  return rest >= 0 ? { us: whole, part: rest } : { us: whole - 1, part: rest + permits }
}

function isLater(a: Time, b: Time): boolean {
  return a.us > b.us || (a.us === b.us && a.part > b.part)
}
