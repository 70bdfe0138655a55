/**
 * The waiters of one key, first come, first served. Those in front hold permits that are booked
 * ahead and wait for their time; those behind wait outside, because nothing can be booked (windows,
 * logs) or not that far ahead. Only two of them ever have something to wait for: the first of all
 * for its time, and the first outside for its next try. So a queue needs one alarm.
 *
 * This is the queue of a store that answers at once and that nobody else shares. Waiting at other
 * stores is in late-queue.ts and shared-queue.ts, and comes with those stores.
 */
import type { Ticket, Verdict } from '../../algorithms/decide.ts'
import type { Alarm } from '../../clock/alarms.ts'
import { chargesOf, giveBacks, type Settlement } from '../settlement.ts'
import { Part, renumbered, Step } from '../step.ts'
import { allAllowed, type OpenStates } from '../store.ts'
import { Book } from './book.ts'
import { type Booked, bookedOf } from './booked-permits.ts'
import { Departures, paceUs } from './departures.ts'
import { addCosts, Line } from './line.ts'
import type { Question, QueuePlan, Room } from './room.ts'
import { type Answer, mayBook, type Took, type Waiter, type WaitRefusal } from './waiter.ts'

/** How often the first in line asks again where leases may run out, to keep its place. */
const KEEP_PLACE_US = 500_000

export class Queue {
  declare readonly room: Room
  declare readonly planName: string | undefined
  declare protected plan: QueuePlan
  protected readonly line: Line = new Line()
  /** Those whose first question has not been answered yet, in the order in which they came. */
  protected readonly asking: Line = new Line()
  protected readonly book: Book = new Book()
  protected readonly departures: Departures = new Departures()
  /** When the first outside tries again. */
  protected retryAtUs = 0
  readonly #id: string
  #entered = 0
  /**
   * Whether something may have become free since the first in line asked: then it asks again as
   * soon as it is answered.
   */
  #isToldAgain = false
  #alarm: Alarm | undefined

  constructor(room: Room, id: string, planName: string | undefined, plan: QueuePlan) {
    this.room = room
    this.#id = id
    this.planName = planName
    this.plan = plan
  }

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
    if (this.size === 0 && queues.get(this.#id) === this) queues.delete(this.#id)
  }

  enter(waiter: Waiter): void {
    const { room, line } = this
    waiter.number = this.#entered++
    waiter.isOneTooMany = room.waiters > room.maxWaiting
    this.asking.insert(waiter)
    // A timer may be late: callers that are due go first.
    if (line.length > 0) this.goOn()
    const isFull = this.#isFullFor(waiter)
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
    this.#giveAll(this.book.giveUpHole(parts, before, this.nowUs()))
  }

  /**
   * Ends a wait that could not begin: a caller's clock threw. If it throws again, what was booked
   * drains, but the waiter is in nobody's way.
   */
  giveUp(waiter: Waiter, reason: unknown): void {
    if (waiter.state === 'gone') return
    try {
      this.leave(waiter)
    } catch {}
    waiter.fail(reason)
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
   * A reservation that was made beside the queue is given up: like a waiter that leaves, it hands
   * its permits to the other waiters, and the latest are given back. False if nobody can use them:
   * then it is cancelled by itself.
   */
  takeOver(parts: readonly Part[], booked: readonly (Booked | undefined)[]): boolean {
    const { first, isMixed } = this.line
    if (first?.state !== 'booked' || !mayBook(first.parts)) return false
    if (parts.some(({ rule }, k) => rule.numbers !== first.parts[k]?.rule.numbers)) return false
    const isOneOfThem = !isMixed && first.asksForTheSameAs(parts)
    if (!isOneOfThem && !this.book.isLedBy(booked)) return false
    this.book.add(booked)
    this.releaseBooked(parts)
    this.goOn()
    return true
  }

  /** Something may have become free: the first outside tries again. */
  tryAgain(): void {
    this.retryAtUs = 0
    this.#isToldAgain = true
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
      if (state !== 'booked') continue
      if (mayBook(parts)) this.giveUpLatest(parts)
      else this.refund(parts, answer as Answer)
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

  protected nowUs(): number {
    return this.room.clock.nowUs()
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

  /** Asks the store. `mayNotWait`: takes only what can be acted on at once. */
  protected ask(op: 'take' | 'ask', waiter: Waiter, mayNotWait: boolean): void {
    const { parts } = waiter
    // -1 if its limits cannot be booked ahead.
    const aheadUs = mayBook(parts) ? (mayNotWait ? 0 : this.#aheadUs(waiter)) : -1
    // Behind the reading: one that throws must leave nobody who asks and gets no answer.
    if (op === 'take') waiter.state = 'asking'
    // No other caller may have released permits before the first outside.
    const isInLine = op === 'take' && waiter === this.line.firstOutside && waiter.awaitsRelease
    if (isInLine) this.#isToldAgain = false
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

  /**
   * With parts of its own, because the verdicts are written into them. `places`: of a caller in
   * line.
   */
  protected step(op: Step['op'], parts: readonly Part[], aheadUs: number, ofUs: number, places?: readonly (Ticket | undefined)[]): Step {
    const own = parts.map(({ limit, rule, key, cost, ticket }, k) => new Part(limit, rule, key, cost, places?.[k] ?? ticket))
    return new Step(op, this.plan.scope, own, aheadUs, ofUs, this.room.storeClock?.nowUs())
  }

  protected answered(question: Question, verdicts: readonly Verdict[]): void {
    if (question.isInLine) this.notePlaces(question, verdicts)
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
    const behind = parts.some(({ cost }) => cost === 0) ? this.whoIsBehind(waiter) : undefined
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

  protected notTaken({ op, askedUs, isInLine, waiter, parts, aheadUs }: Question, verdicts: readonly Verdict[]): void {
    const retryUs = longest(verdicts, (verdict) => verdict.retryUs)
    waiter.answer = this.answerOf(verdicts, askedUs)
    const { answeredUs } = waiter.answer
    const againUs = answeredUs + retryUs
    // A release may come at any moment: only the other limits are known to make it wait.
    const leastUs = longest(verdicts, (verdict, k) => (parts[k]?.rule.algorithm.untilReleased ? 0 : verdict.retryUs))
    // A reservation may be made from then on, to be acted on as far ahead as it may be booked.
    const earliestUs = Math.max(answeredUs + leastUs + (retryUs > 0 ? Math.max(aheadUs, 0) : 0), waiter.notBeforeUs)
    const isImpossible = verdicts.some(({ outcome }) => outcome === 'impossible')
    const refusal = isImpossible ? 'IMPOSSIBLE' : this.#refusal(waiter, earliestUs)
    if (refusal !== undefined) {
      this.takeOut(waiter).refuse(refusal)
      return
    }
    if (op === 'take' || waiter.line === this.asking) this.standOutside(waiter)
    const isFirst = waiter === this.line.firstOutside
    // Where others release, what one is told does not hold for those before it.
    if (isFirst || (op === 'take' && !waiter.awaitsRelease)) this.retryAtUs = againUs
    if (op !== 'take' || !isFirst || !waiter.awaitsRelease) return
    // The first outside that has no place in line yet asks for one at once.
    this.retryAtUs = isInLine && !this.#isToldAgain ? Math.min(againUs, this.looksAgainUs(parts)) : 0
  }

  /**
   * A grant uses its place in line up; one that is refused forever has none; and one that left
   * meanwhile gives its place up.
   */
  protected notePlaces({ waiter, parts }: Question, verdicts: readonly Verdict[]): void {
    if (verdicts[0]?.degraded) return
    const isRefused = !allAllowed(verdicts) && verdicts.every(({ outcome }) => outcome !== 'impossible')
    const before = waiter.places
    waiter.places = isRefused ? parts.map((part, k) => placeAfter(before?.[k], part, verdicts[k] as Verdict)) : undefined
    if (waiter.state === 'gone') this.leaveLine(waiter)
  }

  /** When the first in line asks again although nobody has released anything here. */
  protected looksAgainUs(parts: readonly Part[]): number {
    return parts.some(({ rule }) => rule.endless) ? Number.POSITIVE_INFINITY : this.nowUs() + KEEP_PLACE_US
  }

  /** Gives up the places in line that were not used up. */
  protected leaveLine(waiter: Waiter): void {
    const { places = [], parts } = waiter
    waiter.places = undefined
    places.forEach((place, k) => {
      if (place !== undefined) this.give(this.step('give', [parts[k] as Part], -1, place.words[0] as number))
    })
  }

  protected standOutside(waiter: Waiter): void {
    this.line.standOutside(waiter)
  }

  /** A store that answers at once was asked, and has answered, when it decided. */
  protected answerOf(verdicts: readonly Verdict[], askedUs: number = (verdicts[0] as Verdict).atUs, answeredUs: number = askedUs): Answer {
    const bookedForUs = answeredUs + longest(verdicts, ({ delayUs }) => delayUs)
    return { limits: this.plan.scope.limits, verdicts, answeredUs, bookedForUs, askedUs }
  }

  protected takeOut(waiter: Waiter): Waiter {
    // The first outside now may ask for less.
    if (waiter === this.line.firstOutside) this.retryAtUs = 0
    waiter.line?.remove(waiter)
    if (waiter.places !== undefined) this.leaveLine(waiter)
    return waiter
  }

  /**
   * Before whom of the booked ones a waiter stands: those whose time comes later. There are none,
   * unless answers came out of order, or it asks nothing of a limit that they wait for. Their
   * present time counts: it may have moved up.
   */
  protected whoIsBehind({ parts, answer }: Waiter): Waiter | undefined {
    const { bookedForUs, answeredUs, verdicts } = answer as Answer
    const forUs = (verdicts[0] as Verdict).atUs + bookedForUs - answeredUs
    const permits = parts.map(() => 0)
    let behind: Waiter | undefined
    for (let other = this.line.lastBooked; other !== undefined; other = other.before) {
      const isLater = mayBook(parts)
        ? this.book.isLaterThan(forUs, other.parts, permits)
        : (other.answer as Answer).bookedForUs > bookedForUs
      if (!isLater) break
      addCosts(permits, other)
      behind = other
    }
    return behind
  }

  /** The permits of a waiter that left are given back, and the first outside may try. */
  protected handOn(parts: readonly Part[], answer: Answer): void {
    this.retryAtUs = 0
    if (mayBook(parts)) this.releaseBooked(parts)
    else this.refund(parts, answer)
  }

  protected releaseBooked(parts: readonly Part[]): void {
    this.retryAtUs = 0
    this.giveUpLatest(parts)
  }

  protected giveUpLatest(parts: readonly Part[]): void {
    this.#giveAll(this.book.giveUpLatest(parts, this.nowUs()))
  }

  /**
   * Permits that were not booked (a window among the limits) are given back as of the moment they
   * were taken.
   */
  protected refund(parts: readonly Part[], { limits, verdicts }: Took): void {
    this.#giveAll(giveBacks(parts, chargesOf(limits, verdicts)))
  }

  /** If the store fails now, what was not given back drains. */
  protected give(step: Step): void {
    try {
      this.apply(step)
    } catch {}
  }

  #giveAll(all: readonly Settlement[]): void {
    for (const { op, parts, aheadUs, ofUs } of all) this.give(this.step(op, parts, aheadUs, ofUs))
  }

  protected apply(step: Step): readonly Verdict[] {
    ;(this.plan.states as OpenStates).apply(step, true)
    return step.parts.map(({ verdict }) => verdict)
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

  /** Why a waiter who may act at `earliestUs` at the earliest shall not wait for it. */
  #refusal(waiter: Waiter, earliestUs: number): WaitRefusal | undefined {
    if (earliestUs > waiter.deadlineUs || waiter.isOverdue) return 'TIMEOUT'
    return waiter.line === this.asking && this.#isFullFor(waiter) ? 'QUEUE_FULL' : undefined
  }

  #isFullFor({ isOneTooMany }: Waiter): boolean {
    return isOneTooMany || this.line.length >= this.room.maxQueue
  }
}

/** The place in line after an answer: the same, a new one, or none. */
function placeAfter(before: Ticket | undefined, { rule, cost }: Part, { given = -1, enteredUs }: Verdict): Ticket | undefined {
  if (!rule.algorithm.untilReleased || cost === 0 || given < 0) return undefined
  return given > 0 ? before : { numbers: rule.numbers, words: Float64Array.of(enteredUs) }
}

/** A plain loop, because it runs for every answer. */
function longest(verdicts: readonly Verdict[], usOf: (verdict: Verdict, k: number) => number): number {
  let longestUs = 0
  for (let k = 0; k < verdicts.length; k++) longestUs = Math.max(longestUs, usOf(verdicts[k] as Verdict, k))
  return longestUs
}
