/**
 * Waiters in their order: booked ones in front, then those outside. A waiter can leave from
 * anywhere.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'
import type { Book } from './book.ts'
import type { Answer } from './question.ts'
import { mayBook, type Waiter } from './waiter.ts'

export class Line {
  first: Waiter | undefined
  firstOutside: Waiter | undefined
  length = 0
  /** Whether the waiters here ask for different costs, or did since it was last empty. */
  isMixed = false
  #last: Waiter | undefined
  /** How many permits of each limit all who stand here ask for. */
  readonly #permits: number[] = []

  /** How many permits of each limit those before a waiter ask for. */
  permitsBefore(waiter: Waiter): number[] {
    const permits = waiter.parts.map(() => 0)
    for (const other of this) {
      if (other === waiter) break
      addCosts(permits, other)
    }
    return permits
  }

  /**
   * Lets a waiter stand outside, behind everybody who came before; one who stands there already
   * keeps its place.
   */
  standOutside(waiter: Waiter): void {
    waiter.state = 'outside'
    if (waiter.line === this) return
    waiter.line?.remove(waiter)
    let behind: Waiter | undefined
    for (let other = this.#last; other !== undefined && other.state !== 'booked' && other.number > waiter.number; other = other.before)
      behind = other
    this.insert(waiter, behind)
    if (behind === this.firstOutside) this.firstOutside = waiter
  }

  get lastBooked(): Waiter | undefined {
    return this.#before(this.firstOutside)
  }

  /**
   * Lets a new waiter, or the first outside, stand with the booked ones: before one of them, or at
   * their end.
   */
  standBooked(waiter: Waiter, behind?: Waiter): void {
    waiter.state = 'booked'
    waiter.line?.remove(waiter)
    this.insert(waiter, behind ?? this.firstOutside)
  }

  /**
   * How long it takes at least until everybody who stands here and then one more call can have had
   * their turn, if nobody leaves. No limit lets more than twice its capacity pass within one
   * window.
   */
  leastUs(parts: readonly Part[]): number {
    let longestUs = 0
    for (let k = 0; k < parts.length; k++) {
      const { cost, rule } = parts[k] as Part
      // Permits that are released may come back at once.
      if (cost > 0 && !rule.algorithm.untilReleased)
        longestUs = Math.max(longestUs, Math.floor((((this.#permits[k] ?? 0) + cost) / rule.capacity - 2) * rule.windowUs))
    }
    return longestUs
  }

  remove(waiter: Waiter): void {
    addCosts(this.#permits, waiter, -1)
    const { before, behind } = waiter
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    if (waiter === this.firstOutside) this.firstOutside = behind
    waiter.line = waiter.before = waiter.behind = undefined
    this.length -= 1
    if (this.length === 0) this.isMixed = false
  }

  /** No waiter is booked any longer. A caller that is asking right now goes on asking. */
  allOutside(): void {
    for (const waiter of this) {
      if (waiter.state === 'booked') waiter.state = 'outside'
    }
    this.firstOutside = this.first
  }

  *[Symbol.iterator](): Generator<Waiter> {
    for (let waiter = this.first; waiter !== undefined; waiter = waiter.behind) yield waiter
  }

  #before(waiter: Waiter | undefined): Waiter | undefined {
    return waiter === undefined ? this.#last : waiter.before
  }

  /** Puts a waiter before another, or at the end. */
  insert(waiter: Waiter, behind?: Waiter): void {
    waiter.line = this
    addCosts(this.#permits, waiter)
    const before = this.#before(behind)
    waiter.before = before
    waiter.behind = behind
    const neighbour = before ?? behind
    if (neighbour !== undefined && !waiter.asksForTheSameAs(neighbour.parts)) this.isMixed = true
    if (before === undefined) this.first = waiter
    else before.behind = waiter
    if (behind === undefined) this.#last = waiter
    else behind.before = waiter
    this.length += 1
  }
}

/** Adds what a waiter asks for, of each limit, or takes it off again. */
function addCosts(permits: number[], { parts }: Waiter, sign = 1): void {
  for (let k = 0; k < parts.length; k++) permits[k] = (permits[k] ?? 0) + sign * (parts[k] as Part).cost
}

/**
 * Before whom of the booked ones a waiter stands: those whose time comes later. There are none,
 * unless answers came out of order, or it asks nothing of a limit that they wait for. Their present
 * time counts: it may have moved up.
 */
export function whoIsBehind({ parts, answer }: Waiter, { lastBooked }: Line, book: Book): Waiter | undefined {
  const { bookedForUs, answeredUs, verdicts } = answer as Answer
  const forUs = (verdicts[0] as Verdict).atUs + bookedForUs - answeredUs
  const permits = parts.map(() => 0)
  let behind: Waiter | undefined
  for (let other = lastBooked; other !== undefined; other = other.before) {
    const isLater = mayBook(parts) ? book.isLaterThan(forUs, other.parts, permits) : (other.answer as Answer).bookedForUs > bookedForUs
    if (!isLater) break
    addCosts(permits, other)
    behind = other
  }
  return behind
}
