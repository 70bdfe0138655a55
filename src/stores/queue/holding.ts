/**
 * What the queue of one key holds at its store, and how that is given back: permits that are booked
 * ahead, those that a waiter has taken, and its place in line.
 */
import type { Ticket, Verdict } from '../../algorithms/decide.ts'
import { chargesOf, giveBacks, type Settlement } from '../settlement.ts'
import { Part, Step } from '../step.ts'
import type { OpenStates } from '../store.ts'
import { Book } from './book.ts'
import { Line } from './line.ts'
import { giveUpPlaces } from './places.ts'
import type { Answer, Took } from './question.ts'
import type { QueuePlan, Room } from './room.ts'
import { mayBook, type Waiter } from './waiter.ts'

export class HoldingQueue {
  declare readonly room: Room
  declare protected readonly id: string
  declare readonly planName: string | undefined
  declare protected plan: QueuePlan
  protected readonly line: Line = new Line()
  /** Those whose first question has not been answered yet, in the order in which they came. */
  protected readonly asking: Line = new Line()
  protected readonly book: Book = new Book()
  /** When the first outside tries again. */
  protected retryAtUs = 0

  constructor(room: Room, id: string, planName: string | undefined, plan: QueuePlan) {
    this.room = room
    this.id = id
    this.planName = planName
    this.plan = plan
  }

  protected nowUs(): number {
    return this.room.clock.nowUs()
  }

  protected takeOut(waiter: Waiter): Waiter {
    // The first outside now may ask for less.
    if (waiter === this.line.firstOutside) this.retryAtUs = 0
    waiter.line?.remove(waiter)
    if (waiter.places !== undefined) this.give(giveUpPlaces(waiter))
    return waiter
  }

  /** The permits of a waiter that left are given back, and the first outside may try. */
  protected handOn(parts: readonly Part[], answer: Answer): void {
    this.retryAtUs = 0
    this.giveBack(parts, answer)
  }

  protected giveBack(parts: readonly Part[], answer: Answer): void {
    if (mayBook(parts)) this.giveUpLatest(parts)
    else this.refund(parts, answer)
  }

  protected giveUpLatest(parts: readonly Part[]): void {
    this.give(this.book.giveUpLatest(parts))
  }

  /**
   * Permits that were not booked (a window among the limits) are given back as of the moment they
   * were taken.
   */
  protected refund(parts: readonly Part[], { limits, verdicts }: Took): void {
    this.give(giveBacks(parts, chargesOf(limits, verdicts)))
  }

  /** If the store fails now, what was not given back drains. */
  protected give(all: readonly Settlement[]): void {
    for (const { op, parts, aheadUs, ofUs } of all) {
      try {
        this.apply(this.step(op, parts, aheadUs, ofUs))
      } catch {}
    }
  }

  /**
   * With parts of its own, because the verdicts are written into them. `places`: of a caller in
   * line.
   */
  protected step(op: Step['op'], parts: readonly Part[], aheadUs: number, ofUs: number, places?: readonly (Ticket | undefined)[]): Step {
    const own = parts.map(({ limit, rule, key, cost, ticket }, k) => new Part(limit, rule, key, cost, places?.[k] ?? ticket))
    return new Step(op, this.plan.scope, own, aheadUs, ofUs, this.room.storeClock?.nowUs())
  }

  protected apply(step: Step): readonly Verdict[] {
    ;(this.plan.states as OpenStates).apply(step, true)
    return step.parts.map(({ verdict }) => verdict)
  }
}
