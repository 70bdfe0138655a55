/** Waiters in their order: booked ones in front, then those outside. Anybody can leave from anywhere. */
import type { Waiter } from './waiter.ts'

export class Line {
  first: Waiter | undefined = undefined
  firstOutside: Waiter | undefined = undefined
  length = 0
  #last: Waiter | undefined = undefined

  /** Lets a waiter stand outside, behind everybody; one who stands there already keeps its place. */
  standOutside(waiter: Waiter, isNew: boolean): void {
    waiter.state = 'outside'
    if (isNew) this.#insert(waiter, undefined)
    this.firstOutside ??= waiter
  }

  /**
   * Lets a new waiter, or the first outside, stand with the booked ones. If answers came out of order it goes before those who asked after it
   * and were booked for later; never before one who asked earlier, whose time may have moved up since it was booked.
   */
  standBooked(waiter: Waiter, isNew: boolean): void {
    waiter.state = 'booked'
    if (!isNew) this.remove(waiter)
    let behind = this.firstOutside
    for (let before = this.#before(behind); before !== undefined && wasAheadOf(waiter, before); before = behind.before) behind = before
    this.#insert(waiter, behind)
  }

  remove(waiter: Waiter): void {
    const { before, behind } = waiter
    if (before === undefined) this.first = behind
    else before.behind = behind
    if (behind === undefined) this.#last = before
    else behind.before = before
    if (waiter === this.firstOutside) this.firstOutside = behind
    waiter.before = waiter.behind = undefined
    this.length -= 1
  }

  /** Nobody is booked any longer. */
  allOutside(): void {
    for (const waiter of this) waiter.state = 'outside'
    this.firstOutside = this.first
  }

  *[Symbol.iterator](): Generator<Waiter> {
    for (let waiter = this.first; waiter !== undefined; waiter = waiter.behind) yield waiter
  }

  #before(waiter: Waiter | undefined): Waiter | undefined {
    return waiter === undefined ? this.#last : waiter.before
  }

  /** Puts a waiter before another, or at the end. */
  #insert(waiter: Waiter, behind: Waiter | undefined): void {
    const before = this.#before(behind)
    waiter.before = before
    waiter.behind = behind
    if (before === undefined) this.first = waiter
    else before.behind = waiter
    if (behind === undefined) this.#last = waiter
    else behind.before = waiter
    this.length += 1
  }
}

/** Whether the store saw `waiter` before another whose answer came first. By the store's time: answers take longer and shorter to arrive. */
function wasAheadOf(waiter: Waiter, other: Waiter): boolean {
  return waiter.askedAs < other.askedAs && waiter.takenForUs < other.takenForUs
}
