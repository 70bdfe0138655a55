/**
 * Asking a store that answers later, or that others share.
 *
 * Answers come out of order, and meanwhile others ask, leave, or get new numbers. Only when all
 * answers are there it is known which permits are the latest: what is to be given back waits for
 * that.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import { wallUs } from '../../clock/clock.ts'
import type { GuardedStore } from '../remote/guarded-store.ts'
import type { Settlement } from '../settlement.ts'
import { renumbered, type Step } from '../step.ts'
import { allAllowed, type Part } from '../store.ts'
import { giveUpPlaces, placesAfter } from './places.ts'
import type { Answer, Question, Took } from './question.ts'
import { Queue } from './queue.ts'
import type { Waiter } from './waiter.ts'

export class LateAskingQueue extends Queue {
  /** How many takes are on their way to the store or back. */
  protected onTheirWay = 0
  /** What those held who left while answers were awaited. */
  #left: (readonly Part[])[] = []
  /** What was taken under numbers that are no longer in force. */
  #outdated: { readonly parts: readonly Part[]; readonly took: Took }[] = []

  /** If an answer is awaited, the queue cannot be forgotten yet. */
  override endIfIdle(): void {
    if (this.onTheirWay === 0) super.endIfIdle()
  }

  override timeOut(waiter: Waiter): void {
    this.goOn()
    const { state, questions, sinceUs, deadlineUs } = waiter
    // With timeoutMs 0 the store's answer decides, however late it comes.
    waiter.isOverdue = deadlineUs === sinceUs && questions > 0 && (state === 'asking' || state === 'outside')
    if (!waiter.isOverdue) super.timeOut(waiter)
  }

  override startAnew(): void {
    this.#left = []
    this.#outdated = []
    super.startAnew()
  }

  protected override get standsFast(): boolean {
    // An answer on its way may lie behind bookings of others, too.
    const mayGetGaps = this.room.isShared && this.onTheirWay > 0
    return super.standsFast || (this.line.isMixed && mayGetGaps)
  }

  /**
   * Whether the first outside need not wait for others who asked before it: one of them may get
   * what is for it.
   */
  protected mayTry(first: Waiter): boolean {
    if (this.owes) return false
    // Waiters that are asking came before, except those that found the queue full.
    const asking = this.asking.first
    if (asking !== undefined && asking.number < first.number) return false
    return first.state === 'asking' || this.onTheirWay === 0
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
    const { op, isInLine, waiter, plan } = question
    waiter.questions -= 1
    const isTaken = op === 'take' && allAllowed(verdicts)
    if (isInLine && (plan !== this.plan || waiter.state === 'gone')) waiter.places = placesAfter(question, verdicts)
    if (waiter.state === 'gone') this.give(giveUpPlaces(waiter))
    if (plan !== this.plan) this.#answeredUnderOldNumbers(question, isTaken, verdicts)
    else if (isTaken || waiter.state === 'asking' || waiter.state === 'outside') super.answered(question, verdicts)
  }

  protected override failed(question: Question, error: unknown): void {
    question.waiter.questions -= 1
    super.failed(question, error)
  }

  protected override answerOf(verdicts: readonly Verdict[], askedUs?: number): Answer {
    return super.answerOf(verdicts, askedUs, this.nowUs())
  }

  /** While answers are awaited it is not known which permits are the latest. */
  protected override giveUpLatest(parts: readonly Part[]): void {
    if (this.onTheirWay > 0) this.#left.push(parts)
    else super.giveUpLatest(parts)
  }

  /** Permits of a fallback are not given back to the store. */
  protected override refund(parts: readonly Part[], took: Took): void {
    if (!took.verdicts[0]?.degraded) super.refund(parts, took)
  }

  /** A charge of the store is not given back to a fallback. */
  protected override give(all: readonly Settlement[]): void {
    const { store } = this.room
    if (store === undefined) {
      super.give(all)
      return
    }
    for (const { op, parts, aheadUs, ofUs } of all) {
      const step = this.step(op, parts, aheadUs, ofUs)
      if (!store.isDownFor(step)) store.ask(step, () => {}).catch(() => {})
    }
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
      this.onTheirWay -= takes
      act()
      if (this.onTheirWay === 0) this.giveBackLate()
      this.goOn()
      this.endIfIdle()
    }
    const answer = store.ask(step, (verdicts) => verdicts)
    // Only of what was asked an answer comes: a caller's clock may have thrown.
    this.onTheirWay += takes
    answer.then(
      (verdicts) => later(() => onAnswer(verdicts)),
      (error) => later(() => onFailure(error)),
    )
  }

  /** Whether something is to be given back as soon as all answers are there. */
  protected get owes(): boolean {
    return this.#left.length > 0 || this.#outdated.length > 0
  }

  /** All answers are there. */
  protected giveBackLate(): void {
    if (this.owes) this.retryAtUs = 0
    for (const parts of this.#left.splice(0)) super.giveUpLatest(parts)
    for (const { parts, took } of this.#outdated.splice(0)) this.refund(parts, took)
  }

  /** Permits taken under the old numbers are given back, and the waiter asks anew. */
  #answeredUnderOldNumbers({ waiter, parts }: Question, isTaken: boolean, verdicts: readonly Verdict[]): void {
    if (isTaken) this.#outdated.push({ parts: renumbered(parts, this.plan.scope.limits), took: { limits: parts, verdicts } })
    if (waiter.isOverdue && waiter.state !== 'gone' && waiter.state !== 'booked') this.takeOut(waiter).refuse('TIMEOUT')
    else if (waiter.state === 'asking') this.line.standOutside(waiter)
    this.retryAtUs = 0
  }
}
