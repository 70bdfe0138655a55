/**
 * The queue of a store that answers later, or where others book in between. It comes with such
 * stores, so that a limiter in memory carries none of it.
 *
 * Answers come later and out of order: meanwhile others ask, leave, or get new numbers. Others book
 * in between: so a queue books only what it needs for the next moment (horizon.ts), and keeps what
 * a leaving waiter held for the next one.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { wallUs } from '../../clock/clock.ts'
import type { GuardedStore } from '../remote/guarded-store.ts'
import { renumbered, type Step } from '../step.ts'
import { allAllowed, type Part } from '../store.ts'
import { bookedOf } from './booked-permits.ts'
import { Horizon } from './horizon.ts'
import type { Line } from './line.ts'
import { Queue } from './queue.ts'
import type { Question, QueuePlan, Room } from './room.ts'
import { type Answer, mayBook, type Took, type Waiter } from './waiter.ts'

/**
 * How many of those outside ask a slow store at once: more of them where the horizon bounds them
 * too.
 */
const MOST_AT_ONCE = 32
const MOST_BOOKING = 128
/** How often the first caller of a process looks whether others have released something. */
const LOOK_US = 25_000

/** Permits held for no waiter in particular. */
interface Spare {
  readonly parts: readonly Part[]
  readonly answer: Took
}

export class LateQueue extends Queue {
  readonly #horizon: Horizon
  /**
   * Answers whose permits are held for no waiter in particular, because those who were answered
   * left: the next caller has them.
   */
  #spare: { readonly parts: readonly Part[]; readonly answer: Answer }[] = []
  /**
   * What those held who left while answers were awaited: only when all are there it is known which
   * permits are the latest.
   */
  #left: (readonly Part[])[] = []
  /** What was taken under numbers that are no longer in force. */
  #outdated: Spare[] = []
  /** How many takes are on their way to the store or back. */
  #onTheirWay = 0

  constructor(room: Room, id: string, planName: string | undefined, plan: QueuePlan) {
    super(room, id, planName, plan)
    this.#horizon = new Horizon(room.isShared)
  }

  /** The queue is empty: if no answer is awaited, it can be forgotten. */
  override endIfIdle(): void {
    if (this.size > 0) return
    this.#releaseSpare()
    if (this.#onTheirWay === 0) super.endIfIdle()
  }

  override timeOut(waiter: Waiter): void {
    this.goOn()
    const { state, questions, sinceUs, deadlineUs } = waiter
    // With timeoutMs 0 the store's answer decides, however late it comes.
    waiter.isOverdue = deadlineUs === sinceUs && questions > 0 && (state === 'asking' || state === 'outside')
    if (!waiter.isOverdue) super.timeOut(waiter)
  }

  override startAnew(): void {
    this.#spare = []
    this.#left = []
    this.#outdated = []
    super.startAnew()
  }

  override unbook(): void {
    super.unbook()
    for (const { parts } of this.#spare.splice(0)) this.giveUpLatest(parts)
    this.#giveBackLate()
  }

  /**
   * Also whether permits are being given back, or the store has been asked for as much as it shall.
   */
  protected override mustStandOutside(waiter: Waiter): boolean {
    const [spare] = this.#spare
    if (spare !== undefined && !waiter.asksForTheSameAs(spare.parts)) this.#releaseSpare()
    if (super.mustStandOutside(waiter) || this.#owes) return true
    if (mayBook(waiter.parts)) return this.#spare.length === 0 && this.#opensUs(waiter) > this.nowUs()
    if (this.#onTheirWay === 0) return false
    // Without bookings the store could refuse the waiter before, which asks for more, and grant
    // this one.
    for (const other of this.asking) if (!waiter.asksForTheSameAs(other.parts)) return true
    return false
  }

  protected override get standsFast(): boolean {
    // An answer on its way may lie behind bookings of others, too.
    const mayGetGaps = this.room.isShared && this.#onTheirWay > 0
    return super.standsFast || (this.line.isMixed && mayGetGaps)
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

  protected override send(question: Question): void {
    const { store } = this.room
    question.waiter.questions += 1
    if (store === undefined) {
      super.send(question)
      return
    }
    try {
      this.#ask(store, question)
    } catch (error) {
      // A caller's clock threw: nothing was sent, and no answer will come.
      this.failed(question, error)
    }
  }

  #ask(store: GuardedStore, question: Question): void {
    const { op, waiter } = question
    question.askedWallUs = wallUs(this.room.clock)
    // A question for nothing, or for too much, takes nothing: no waiter has to wait for its answer.
    const takes = op === 'take' && waiter.canBeBehindOthers ? 1 : 0
    this.sendLater(
      store,
      this.stepFor(question),
      takes,
      (verdicts) => this.answered(question, verdicts),
      (error) => this.failed(question, error),
    )
  }

  protected override stepFor(question: Question): Step {
    question.askedUs = this.nowUs()
    return super.stepFor(question)
  }

  protected override answered(question: Question, verdicts: readonly Verdict[]): void {
    const { op, waiter, parts, plan } = question
    waiter.questions -= 1
    const isTaken = op === 'take' && allAllowed(verdicts)
    if (question.isInLine && (plan !== this.plan || waiter.state === 'gone')) this.notePlaces(question, verdicts)
    if (plan !== this.plan) this.#answeredUnderOldNumbers(question, isTaken, verdicts)
    else if (isTaken || waiter.state === 'asking' || waiter.state === 'outside') super.answered(question, verdicts)
    if (op === 'take') this.#horizon.answered(parts, verdicts)
  }

  protected override failed(question: Question, error: unknown): void {
    question.waiter.questions -= 1
    super.failed(question, error)
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
    const behind = waiter !== undefined && bookedForUs > nowUs ? this.whoIsBehind(waiter) : undefined
    // A fallback books nothing: its permits can be used at once.
    const isStore = !verdicts[0]?.degraded
    const isBooking = isStore && mayBook(parts)
    const mustWait = bookedForUs > nowUs || (isBooking && this.#goesBehind(parts, nowUs, waiter?.deadlineUs))
    if ((mustWait || waiter === undefined) && mayBook(parts)) this.book.add(bookedOf(parts, verdicts, nowUs))
    if (waiter !== undefined && mustWait) this.booked(waiter, this.#mayGoLast(waiter) ? undefined : behind)
    else if (waiter !== undefined) this.takeOut(waiter).serve(0, nowUs)
    else if (isStore) this.handOn(parts, answer)
  }

  protected override answerOf(verdicts: readonly Verdict[], askedUs?: number): Answer {
    return super.answerOf(verdicts, askedUs, this.nowUs())
  }

  /** A fallback books nothing ahead. */
  protected override notTaken(question: Question, verdicts: readonly Verdict[]): void {
    super.notTaken(verdicts[0]?.degraded ? { ...question, aheadUs: 0 } : question, verdicts)
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
    else if (isLost && allAskFor(line, this.asking, parts)) this.#spare.push({ parts, answer })
    else super.handOn(parts, answer)
  }

  /** While answers are awaited it is not known which permits are the latest. */
  protected override releaseBooked(parts: readonly Part[]): void {
    this.retryAtUs = 0
    if (this.#onTheirWay > 0) this.#left.push(parts)
    else super.releaseBooked(parts)
  }

  /** Permits of a fallback are not given back to the store. */
  protected override refund(parts: readonly Part[], answer: Took): void {
    if (!answer.verdicts[0]?.degraded) super.refund(parts, answer)
  }

  protected override give(step: Step): void {
    this.giveAndHear(step, () => {})
  }

  /** `takes`: 1 if what the answer says matters to others who ask. */
  protected sendLater(
    store: GuardedStore,
    step: Step,
    takes: 0 | 1,
    onAnswer: (verdicts: readonly Verdict[]) => void,
    onFailure: (error: unknown) => void,
  ): void {
    const later = (act: () => void) => {
      this.#onTheirWay -= takes
      act()
      if (this.#onTheirWay === 0) this.#giveBackLate()
      this.goOn()
      this.endIfIdle()
    }
    const answer = store.ask(step, (verdicts) => verdicts)
    // Only of what was asked an answer comes: a caller's clock may have thrown.
    this.#onTheirWay += takes
    answer.then(
      (verdicts) => later(() => onAnswer(verdicts)),
      (error) => later(() => onFailure(error)),
    )
  }

  /** Whether something is to be given back as soon as all answers are there. */
  get #owes(): boolean {
    return this.#left.length > 0 || this.#outdated.length > 0
  }

  /** All answers are there. */
  #giveBackLate(): void {
    if (this.#owes) this.retryAtUs = 0
    for (const parts of this.#left.splice(0)) this.giveUpLatest(parts)
    for (const { parts, answer } of this.#outdated.splice(0)) this.refund(parts, answer)
  }

  /** Permits taken under the old numbers are given back, and the waiter asks anew. */
  #answeredUnderOldNumbers({ waiter, parts }: Question, isTaken: boolean, verdicts: readonly Verdict[]): void {
    if (isTaken) this.#outdated.push({ parts: renumbered(parts, this.plan.scope.limits), answer: { limits: parts, verdicts } })
    if (waiter.isOverdue && waiter.state !== 'gone' && waiter.state !== 'booked') this.takeOut(waiter).refuse('TIMEOUT')
    else if (waiter.state === 'asking') this.line.standOutside(waiter)
    this.retryAtUs = 0
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

  /**
   * Whether the first outside need not wait for others who asked before it: one of them may get
   * what is for it.
   */
  protected mayTry(first: Waiter): boolean {
    if (this.#owes) return false
    // Waiters that are asking came before, except those that found the queue full.
    const asking = this.asking.first
    if (asking !== undefined && asking.number < first.number) return false
    return first.state === 'asking' || this.#onTheirWay === 0
  }

  #opensUs({ parts }: Waiter): number {
    return this.#horizon.opensUs(parts, this.book.dueFromEndUs(parts, 0), this.#onTheirWay)
  }

  /** Whether a waiter can have what another left: then it has it. */
  #hasSpare(waiter: Waiter): boolean {
    const spare = this.#spare.at(-1)
    if (spare === undefined || !waiter.asksForTheSameAs(spare.parts)) return false
    if (this.book.dueFromEndUs(spare.parts, this.#spare.length - 1) > waiter.deadlineUs) return false
    this.#spare.pop()
    this.#inherit(waiter, spare.answer)
    return true
  }

  #inherit(heir: Waiter, answer: Answer): void {
    heir.answer = answer
    this.line.standBooked(heir)
  }

  #releaseSpare(): void {
    for (const { parts } of this.#spare.splice(0)) this.releaseBooked(parts)
  }

  /**
   * Gives, and hears what the store says to it. A charge of the store is not given back to a
   * fallback.
   */
  protected giveAndHear(step: Step, onAnswer: (verdicts: readonly Verdict[]) => void): void {
    const { store } = this.room
    if (store !== undefined) {
      if (!store.isDownFor(step)) store.ask(step, onAnswer).catch(() => {})
      return
    }
    try {
      onAnswer(this.apply(step))
    } catch {}
  }
}

/** Whether all who are here ask for the same. */
function allAskFor({ isMixed, first }: Line, asking: Line, parts: readonly Part[]): boolean {
  return !isMixed && first?.asksForTheSameAs(parts) !== false && [...asking].every((waiter) => waiter.asksForTheSameAs(parts))
}

/**
 * The first who holds nothing, asks for the same and is still there at that time. `asking`: if
 * given, those who are asking right now may have it, too.
 */
function firstWithout({ firstOutside }: Line, parts: readonly Part[], forUs: number, asking: Line | undefined): Waiter | undefined {
  const mayHave = (waiter: Waiter) =>
    (asking !== undefined || waiter.state === 'outside') && waiter.deadlineUs >= forUs && waiter.asksForTheSameAs(parts)
  let outside = firstOutside
  while (outside !== undefined && !mayHave(outside)) outside = outside.behind
  if (asking === undefined) return outside
  for (const waiter of asking) {
    if (outside !== undefined && outside.number < waiter.number) break
    if (mayHave(waiter)) return waiter
  }
  return outside
}
