/**
 * How a queue asks its store for a waiter, and what follows from the answer: the waiter has its
 * turn, stands with the booked ones or outside, or is refused.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part, Step } from '../step.ts'
import { allAllowed } from '../store.ts'
import { bookedOf } from './booked-permits.ts'
import { Departures } from './departures.ts'
import { HoldingQueue } from './holding.ts'
import { whoIsBehind } from './line.ts'
import { placesAfter } from './places.ts'
import { type Answer, earliestUs, longest, type Question } from './question.ts'
import { mayBook, type Waiter, type WaitRefusal } from './waiter.ts'

/** How often the first in line asks again where leases may run out, to keep its place. */
const KEEP_PLACE_US = 500_000

export class AskingQueue extends HoldingQueue {
  protected readonly departures: Departures = new Departures()
  /**
   * Whether something may have become free since the first in line asked: then it asks again as
   * soon as it is answered.
   */
  protected isToldAgain = false

  /** Asks the store. `mayNotWait`: takes only what can be acted on at once. */
  protected ask(op: 'take' | 'ask', waiter: Waiter, mayNotWait: boolean): void {
    const { parts } = waiter
    // -1 if its limits cannot be booked ahead.
    const aheadUs = mayBook(parts) ? (mayNotWait ? 0 : this.#aheadUs(waiter)) : -1
    // Behind the reading: one that throws must leave nobody who asks and gets no answer.
    if (op === 'take') waiter.state = 'asking'
    // No other caller may have released permits before the first outside.
    const isInLine = op === 'take' && waiter === this.line.firstOutside && waiter.awaitsRelease
    if (isInLine) this.isToldAgain = false
    this.send({ op, isInLine, waiter, parts, aheadUs, plan: this.plan })
  }

  /** How far ahead a waiter may be booked: never beyond its deadline. */
  #aheadUs({ deadlineUs }: Waiter): number {
    return Math.max(0, Math.min(this.room.maxAheadUs, deadlineUs - this.nowUs()))
  }

  protected send(question: Question): void {
    try {
      this.answered(question, this.apply(this.stepFor(question)))
    } catch (error) {
      this.failed(question, error)
    }
  }

  protected stepFor({ op, isInLine, waiter, parts, aheadUs }: Question): Step {
    return isInLine ? this.step('line', parts, -1, -1, waiter.places) : this.step(op, parts, aheadUs, -1)
  }

  protected answered(question: Question, verdicts: readonly Verdict[]): void {
    if (question.isInLine) question.waiter.places = placesAfter(question, verdicts)
    if (question.op === 'take' && allAllowed(verdicts)) this.taken(question, verdicts)
    else this.notTaken(question, verdicts)
  }

  protected failed({ waiter }: Question, error: unknown): void {
    if (waiter.state === 'asking' || waiter.state === 'outside') this.takeOut(waiter).fail(error)
  }

  protected taken({ waiter, parts, askedUs }: Question, verdicts: readonly Verdict[]): void {
    const answer = this.answerOf(verdicts, askedUs)
    const { answeredUs: nowUs, bookedForUs } = answer
    waiter.answer = answer
    const mustWait = bookedForUs > nowUs || (mayBook(parts) && this.departures.fromUs(nowUs) > nowUs)
    if (!mustWait) {
      this.takeOut(waiter).serve(0, nowUs)
      return
    }
    const behind = parts.some(({ cost }) => cost === 0) ? whoIsBehind(waiter, this.line, this.book) : undefined
    if (mayBook(parts)) this.book.add(bookedOf(parts, verdicts, nowUs))
    this.booked(waiter, behind)
  }

  /** A waiter that has permits stands with the booked ones, unless they come too late for it. */
  protected booked(waiter: Waiter, behind: Waiter | undefined): void {
    const answer = waiter.answer as Answer
    const refusal = this.#refusal(waiter, answer.bookedForUs)
    if (refusal === undefined) {
      this.line.standBooked(waiter, behind)
      return
    }
    this.takeOut(waiter)
    this.handOn(waiter.parts, answer)
    waiter.refuse(refusal)
  }

  protected notTaken(question: Question, verdicts: readonly Verdict[]): void {
    const { op, askedUs, isInLine, waiter, parts } = question
    const answer = this.answerOf(verdicts, askedUs)
    waiter.answer = answer
    const retryUs = longest(verdicts, (verdict) => verdict.retryUs)
    const isImpossible = verdicts.some(({ outcome }) => outcome === 'impossible')
    const refusal = isImpossible ? 'IMPOSSIBLE' : this.#refusal(waiter, earliestUs(question, answer))
    if (refusal !== undefined) {
      this.takeOut(waiter).refuse(refusal)
      return
    }
    if (op === 'take' || waiter.line === this.asking) this.standOutside(waiter)
    const { awaitsRelease } = waiter
    const againUs = answer.answeredUs + retryUs
    const isFirst = waiter === this.line.firstOutside
    // Where others release, what one is told does not hold for those before it.
    if (isFirst || (op === 'take' && !awaitsRelease)) this.retryAtUs = againUs
    if (op !== 'take' || !isFirst || !awaitsRelease) return
    // The first outside that has no place in line yet asks for one at once.
    this.retryAtUs = isInLine && !this.isToldAgain ? Math.min(againUs, this.looksAgainUs(parts)) : 0
  }

  /** When the first in line asks again although nobody has released anything here. */
  protected looksAgainUs(parts: readonly Part[]): number {
    return parts.some(({ rule }) => rule.endless) ? Number.POSITIVE_INFINITY : this.nowUs() + KEEP_PLACE_US
  }

  protected standOutside(waiter: Waiter): void {
    this.line.standOutside(waiter)
  }

  /** A store that answers at once was asked, and has answered, when it decided. */
  protected answerOf(verdicts: readonly Verdict[], askedUs: number = (verdicts[0] as Verdict).atUs, answeredUs: number = askedUs): Answer {
    const bookedForUs = answeredUs + longest(verdicts, ({ delayUs }) => delayUs)
    return { limits: this.plan.scope.limits, verdicts, answeredUs, bookedForUs, askedUs }
  }

  /** Why a waiter who may act at `earliestUs` at the earliest shall not wait for it. */
  #refusal(waiter: Waiter, earliestUs: number): WaitRefusal | undefined {
    if (earliestUs > waiter.deadlineUs || waiter.isOverdue) return 'TIMEOUT'
    return waiter.line === this.asking && this.isFullFor(waiter) ? 'QUEUE_FULL' : undefined
  }

  protected isFullFor({ isOneTooMany }: Waiter): boolean {
    return isOneTooMany || this.line.length >= this.room.maxQueue
  }
}
