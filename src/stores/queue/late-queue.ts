/**
 * The queue of a store that answers later, or where others book in between. It comes with such
 * stores, so that a limiter in memory carries none of it.
 *
 * Others book in between: so a queue books only what it needs for the next moment (horizon.ts), and
 * keeps what a leaving waiter held for the next one (spare.ts). Answers come later and out of order
 * (late-asking.ts): so who gets the permits of one is known only when it is there.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Part } from '../store.ts'
import { bookedOf } from './booked-permits.ts'
import { Horizon } from './horizon.ts'
import { LateAskingQueue } from './late-asking.ts'
import { whoIsBehind } from './line.ts'
import type { Answer, Question } from './question.ts'
import { allAskFor, firstWithout, Spare } from './spare.ts'
import { mayBook, type Waiter } from './waiter.ts'

/**
 * How many of those outside ask a slow store at once: more of them where the horizon bounds them
 * too.
 */
const MOST_AT_ONCE = 32
const MOST_BOOKING = 128
/** How often the first caller of a process looks whether others have released something. */
const LOOK_US = 25_000

export class LateQueue extends LateAskingQueue {
  readonly #horizon = new Horizon(this.room.isShared)
  readonly #spare = new Spare()

  /** The queue is empty: nobody comes for what is spare. */
  override endIfIdle(): void {
    if (this.size > 0) return
    this.#releaseSpare()
    super.endIfIdle()
  }

  override startAnew(): void {
    this.#spare.clear()
    super.startAnew()
  }

  override unbook(): void {
    super.unbook()
    for (const parts of this.#spare.clear()) this.giveUpLatest(parts)
    this.giveBackLate()
  }

  /**
   * Also whether permits are being given back, or the store has been asked for as much as it shall.
   */
  protected override mustStandOutside(waiter: Waiter): boolean {
    if (!this.#spare.suits(waiter)) this.#releaseSpare()
    if (super.mustStandOutside(waiter) || this.owes) return true
    if (mayBook(waiter.parts)) return this.#spare.length === 0 && this.#opensUs(waiter) > this.nowUs()
    if (this.onTheirWay === 0) return false
    // Without bookings the store could refuse the waiter before, which asks for more, and grant
    // this one.
    for (const other of this.asking) if (!waiter.asksForTheSameAs(other.parts)) return true
    return false
  }

  /**
   * The first outside, and while it waits for an answer those behind it, if all ask for the same,
   * so that a store that is far away is not asked for one after the other.
   */
  protected override nextToTry(): Waiter | undefined {
    let next = super.nextToTry()
    if (next === undefined) return undefined
    const mostAtOnce = this.line.isMixed || next.awaitsRelease ? 1 : mayBook(next.parts) ? MOST_BOOKING : MOST_AT_ONCE
    for (let asking = 0; asking < mostAtOnce && next !== undefined; asking++) {
      if (next.state === 'outside') return next
      next = next.behind
    }
    return undefined
  }

  /** Never while others are asking, or something is to be given back: that ends with an answer. */
  protected override triesAtUs(first: Waiter): number {
    if (!this.mayTry(first)) return Number.POSITIVE_INFINITY
    return mayBook(first.parts) ? Math.max(this.retryAtUs, this.#opensUs(first)) : this.retryAtUs
  }

  protected override ask(op: 'take' | 'ask', waiter: Waiter, mayNotWait: boolean): void {
    if (op === 'take' && waiter.line === this.asking && !mayNotWait && this.#hasSpare(waiter)) return
    super.ask(op, waiter, mayNotWait)
  }

  protected override answered(question: Question, verdicts: readonly Verdict[]): void {
    super.answered(question, verdicts)
    if (question.op === 'take') this.#horizon.answered(question.parts, verdicts)
  }

  /** Others may have been answered since it asked. */
  protected override taken(question: Question, verdicts: readonly Verdict[]): void {
    if (this.room.store === undefined) {
      super.taken(question, verdicts)
      return
    }
    const { parts, askedUs, askedWallUs } = question
    const answer = { ...this.answerOf(verdicts, askedUs), askedWallUs }
    const { answeredUs: nowUs, bookedForUs } = answer
    const waiter = this.#recipient(question, answer)
    if (waiter !== undefined) waiter.answer = answer
    const behind = waiter !== undefined && bookedForUs > nowUs ? whoIsBehind(waiter, this.line, this.book) : undefined
    // A fallback books nothing: its permits can be used at once.
    const isStore = !verdicts[0]?.degraded
    const isBooking = isStore && mayBook(parts)
    const mustWait = bookedForUs > nowUs || (isBooking && this.#goesBehind(parts, nowUs, waiter?.deadlineUs))
    if ((mustWait || waiter === undefined) && mayBook(parts)) this.book.add(bookedOf(parts, verdicts, nowUs))
    if (waiter !== undefined && mustWait) this.booked(waiter, this.#mayGoLast(waiter) ? undefined : behind)
    else if (waiter !== undefined) this.takeOut(waiter).serve(0, nowUs)
    else if (isStore) this.handOn(parts, answer)
  }

  /**
   * Others may release at any time: all queues of a process look in the same turn, so that one call
   * asks for all.
   */
  protected override looksAgainUs(parts: readonly Part[]): number {
    return this.room.isShared ? (Math.floor(this.nowUs() / LOOK_US) + 1) * LOOK_US : super.looksAgainUs(parts)
  }

  protected override standOutside(waiter: Waiter): void {
    if (!this.#hasSpare(waiter)) super.standOutside(waiter)
  }

  /**
   * The permits of a waiter that left, or was answered after it had left, go to the first waiter
   * that holds none. Where others may have booked behind them, they are kept for the next caller as
   * long as there are waiters: given back, they would be lost.
   */
  protected override handOn(parts: readonly Part[], answer: Answer): void {
    const { line } = this
    const isLost = this.room.isShared && !line.isMixed && mayBook(parts) && this.size > 0
    const heir = isLost ? firstWithout(line, parts, this.#dueFromEndUs(parts), this.asking) : undefined
    if (heir !== undefined) this.#inherit(heir, answer)
    else if (isLost && allAskFor(line, this.asking, parts)) this.#spare.keep(parts, answer)
    else super.handOn(parts, answer)
  }

  /**
   * The waiter that gets the permits of an answer. An earlier question may have been refused
   * meanwhile: then the first outside that asks for the same gets them, and the waiter that asked
   * stands outside instead. If that one holds permits already, or has left, the next gets them, if
   * there is one.
   */
  #recipient({ waiter, parts }: Question, { bookedForUs }: Answer): Waiter | undefined {
    const asker = waiter.state === 'asking' ? waiter : undefined
    const first = this.line.isMixed ? undefined : firstWithout(this.line, parts, bookedForUs, asker === undefined ? this.asking : undefined)
    if (asker === undefined || first === undefined || asker.number < first.number) return asker ?? first
    if (asker.isOverdue) this.takeOut(asker).refuse('TIMEOUT')
    else this.line.standOutside(asker)
    return first
  }

  /**
   * Where all ask for the same, permits that lie before those of others here are theirs, and the
   * one that came last has the latest, if it can wait so long.
   */
  #mayGoLast(waiter: Waiter): boolean {
    const { lastBooked, isMixed } = this.line
    if (isMixed || !mayBook(waiter.parts) || lastBooked === undefined) return false
    const isLater = lastBooked.number < waiter.number && waiter.asksForTheSameAs(lastBooked.parts)
    return isLater && this.#dueFromEndUs(waiter.parts) <= waiter.deadlineUs
  }

  /**
   * Whether what may be had at once goes to those who are booked first, or, after a stall, is had
   * at the pace of the limit.
   */
  #goesBehind(parts: readonly Part[], nowUs: number, deadlineUs = Number.POSITIVE_INFINITY): boolean {
    const { first, isMixed } = this.line
    const isBehindOthers = !isMixed && first?.state === 'booked' && first.asksForTheSameAs(parts) && this.#dueFromEndUs(parts) <= deadlineUs
    return isBehindOthers || this.departures.fromUs(nowUs) > nowUs
  }

  /** When a call may act that has the latest permits, but for what is spare. */
  #dueFromEndUs(parts: readonly Part[]): number {
    return this.book.dueFromEndUs(parts, this.#spare.length)
  }

  #opensUs({ parts }: Waiter): number {
    return this.#horizon.opensUs(parts, this.book.dueFromEndUs(parts, 0), this.onTheirWay)
  }

  /** Whether a waiter can have what another left: then it has it. */
  #hasSpare(waiter: Waiter): boolean {
    const answer = this.#spare.takeFor(waiter, this.book)
    if (answer !== undefined) this.#inherit(waiter, answer)
    return answer !== undefined
  }

  #inherit(heir: Waiter, answer: Answer): void {
    heir.answer = answer
    this.line.standBooked(heir)
  }

  #releaseSpare(): void {
    for (const parts of this.#spare.clear()) {
      this.retryAtUs = 0
      this.giveUpLatest(parts)
    }
  }
}
