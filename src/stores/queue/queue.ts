/**
 * The waiters of one key, first come, first served. Those in front hold permits that are booked
 * ahead and wait for their time; those behind wait outside, because nothing can be booked (windows,
 * logs) or not that far ahead. Only two of them ever have something to wait for: the first of all
 * for its time, and the first outside for its next try. So a queue needs one alarm.
 *
 * Here they come, leave and have their turn. How the store is asked for one is in asking.ts, and
 * what is held there in holding.ts.
 *
 * This is the queue of a store that answers at once and that nobody else shares. Waiting at other
 * stores is in late-queue.ts and shared-queue.ts, and comes with those stores.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Alarm } from '../../clock/alarms.ts'
import type { Charge } from '../settlement.ts'
import { type Part, renumbered } from '../step.ts'
import { AskingQueue } from './asking.ts'
import { paceUs } from './departures.ts'
import type { Answer } from './question.ts'
import type { QueuePlan } from './room.ts'
import { mayBook, type Waiter } from './waiter.ts'

export class Queue extends AskingQueue {
  #entered = 0
  #alarm: Alarm | undefined

  /** How many have neither got their turn nor left. */
  get size(): number {
    return this.line.length + this.asking.length
  }

  /**
   * The queue is empty, and is forgotten. An idle one may still hear from the store, when another
   * has long taken its place.
   */
  endIfIdle(): void {
    const { queues } = this.room
    if (this.size === 0 && queues.get(this.id) === this) queues.delete(this.id)
  }

  enter(waiter: Waiter): void {
    const { room, line } = this
    waiter.number = this.#entered++
    waiter.isOneTooMany = room.waiters > room.maxWaiting
    this.asking.insert(waiter)
    // A timer may be late: callers that are due go first.
    if (line.length > 0) this.goOn()
    const isFull = this.isFullFor(waiter)
    if (!waiter.canBeBehindOthers || !this.mustStandOutside(waiter)) this.ask('take', waiter, isFull)
    else {
      if (!isFull) {
        const leastUs = line.leastUs(waiter.parts)
        if (leastUs > 0) waiter.notBeforeUs = this.nowUs() + leastUs
        line.standOutside(waiter)
      }
      // Behind others nothing may be taken: the question is only whether it is worth waiting.
      if (isFull || waiter.deadlineUs < Number.POSITIVE_INFINITY) this.ask('ask', waiter, isFull)
    }
    this.goOn()
  }

  /**
   * Takes a waiter out who does not want to wait any longer. Its permits move all waiters behind it
   * up: `goOn` when all have left.
   */
  leave(waiter: Waiter): void {
    const { state, parts } = waiter
    const before = state === 'booked' && mayBook(parts) && this.standsFast ? this.line.permitsBefore(waiter) : undefined
    this.takeOut(waiter).state = 'gone'
    if (state !== 'booked') return
    if (before === undefined) {
      this.handOn(parts, waiter.answer as Answer)
      return
    }
    this.retryAtUs = 0
    this.give(this.book.giveUpHole(parts, before))
  }

  /** The deadline of a waiter has come. */
  timeOut(waiter: Waiter): void {
    // At the deadline is still in time, if that is when it may try again.
    this.goOn()
    // A booked waiter is served in time: it was booked no further than its deadline, unless the
    // event loop stood still.
    if (waiter.state === 'gone' || (waiter.state === 'booked' && !this.departures.isBehind)) return
    this.leave(waiter)
    waiter.refuse('TIMEOUT')
    this.goOn()
  }

  /**
   * A charge that was made beside the queue is given back before its time, in whole or in part:
   * like a waiter that leaves, it hands its permits to the waiters, and the latest are given back.
   * False where none can use them, or its time has come: then it is settled by itself.
   */
  takeOver(parts: readonly Part[], charges: readonly Charge[]): boolean {
    const { first, isMixed } = this.line
    if (first?.state !== 'booked' || !mayBook(first.parts)) return false
    if (parts.some(({ cost }, k) => cost > 0 && charges[k]?.numbers !== first.parts[k]?.rule.numbers)) return false
    const booked = this.book.bookingsOf(parts, charges)
    const nowUs = this.nowUs()
    if (!booked.some((each) => each !== undefined && nowUs < each.charge.dueUs + each.offsetUs)) return false
    const isOneOfThem = !isMixed && first.asksForTheSameAs(parts)
    if (!isOneOfThem && !this.book.isLedBy(booked)) return false
    this.book.add(booked)
    this.retryAtUs = 0
    this.giveUpLatest(parts)
    this.goOn()
    return true
  }

  /** Something may have become free: the first outside tries again. */
  tryAgain(): void {
    this.retryAtUs = 0
    this.isToldAgain = true
    this.goOn()
  }

  /**
   * Permits that were in use before all bookings were given back, so many of each limit: the booked
   * ones move up.
   */
  moveUp(costs: readonly number[]): void {
    this.book.moveUp(costs)
    this.tryAgain()
  }

  /** The key was forgotten, and with it what was booked: everybody asks anew, in order. */
  startAnew(): void {
    this.book.forget()
    this.line.allOutside()
    this.tryAgain()
  }

  /** Gives back everything that is booked: everybody waits outside until told to try again. */
  unbook(): void {
    for (const { state, parts, answer } of this.line) {
      if (state === 'booked') this.giveBack(parts, answer as Answer)
    }
    this.line.allOutside()
  }

  /** New numbers are in force: everybody asks anew, in order. */
  renumber(plan: QueuePlan): void {
    this.plan = plan
    for (const waiter of this.#all()) waiter.parts = renumbered(waiter.parts, plan.scope.limits)
    this.tryAgain()
  }

  /** Ends every wait, and gives back what was booked. */
  close(reason: unknown): void {
    this.unbook()
    for (const waiter of this.#all()) this.takeOut(waiter).fail(reason)
    this.#setAlarm()
  }

  /**
   * Serves those that are due, lets the first outside try if it is time, and sets the alarm for
   * what comes next.
   */
  goOn(): void {
    if (this.#alarm !== undefined) this.departures.woke(this.#alarm.atUs, this.nowUs())
    this.#serveDue()
    for (let next = this.nextToTry(); next !== undefined; next = this.nextToTry()) {
      this.ask('take', next, false)
      this.#serveDue()
    }
    this.#setAlarm()
  }

  #all(): Waiter[] {
    return [...this.line, ...this.asking]
  }

  /** Whether a caller is before it that it must not overtake. */
  protected mustStandOutside(_waiter: Waiter): boolean {
    return this.line.firstOutside !== undefined
  }

  /**
   * Whether nobody may move up. Between what is held here lie bookings of others, and with
   * different costs a waiter would get permits from before and behind them: too many at one time. A
   * hole is lost then.
   */
  protected get standsFast(): boolean {
    return this.line.isMixed && this.book.hasGaps
  }

  /** The caller outside that may try now. */
  protected nextToTry(): Waiter | undefined {
    const { firstOutside } = this.line
    if (firstOutside === undefined) return undefined
    const atUs = this.triesAtUs(firstOutside)
    // The clock is read only where it matters.
    return atUs === 0 || (atUs < Number.POSITIVE_INFINITY && atUs <= this.nowUs()) ? firstOutside : undefined
  }

  /** When the first outside may ask. */
  protected triesAtUs(_first: Waiter): number {
    return this.retryAtUs
  }

  #serveDue(): void {
    for (let { first } = this.line; first?.state === 'booked'; { first } = this.line) {
      const { parts } = first
      const nowUs = this.nowUs()
      const dueUs = this.#dueUs(first)
      if (this.departures.fromUs(dueUs) > nowUs) return
      const delayUs = this.#delayUs(first)
      this.line.remove(first)
      if (mayBook(parts)) this.book.spend(parts)
      this.departures.left(dueUs, nowUs, paceUs(parts))
      first.serve(delayUs, nowUs)
    }
  }

  /** When the first waiter may act: when the earliest permits of every limit may. */
  #dueUs({ parts, answer }: Waiter): number {
    return mayBook(parts) ? this.book.dueUs(parts) : (answer as Answer).bookedForUs
  }

  /**
   * How long after the store decided that is, by the store's time. It may be less than was
   * answered: a caller before it left.
   */
  #delayUs({ parts, answer }: Waiter): number {
    const { bookedForUs, answeredUs, verdicts } = answer as Answer
    return mayBook(parts) ? this.book.dueUs(parts, true) - (verdicts[0] as Verdict).enteredUs : bookedForUs - answeredUs
  }

  #setAlarm(): void {
    const { first, firstOutside } = this.line
    const dueUs = first?.state === 'booked' ? this.departures.fromUs(this.#dueUs(first)) : Number.POSITIVE_INFINITY
    const nextUs = firstOutside?.state === 'outside' ? Math.min(dueUs, this.triesAtUs(firstOutside)) : dueUs
    const { alarms } = this.room
    if (this.#alarm !== undefined) {
      if (this.#alarm.place >= 0 && this.#alarm.atUs === nextUs) return
      alarms.stop(this.#alarm)
    }
    this.#alarm = nextUs < Number.POSITIVE_INFINITY ? alarms.set(nextUs, () => this.goOn()) : undefined
  }
}
