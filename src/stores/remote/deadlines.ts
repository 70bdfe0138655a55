/**
 * Every question to a store is answered, or given up, in time. Only time in which the event loop
 * runs counts: while a process stands still (a long computation, a machine that sleeps) it neither
 * writes questions nor reads answers, and the store cannot be blamed for that.
 *
 * Running time is measured in slices, each with a timer. A timer that fires late says that the loop
 * stood still for so long, and its slice counts no longer than it should have taken. So a question
 * is given up after its time and that of the standstills, and, where the last slices were some of
 * them, after one or two slices more: timers fire before answers are read.
 *
 * All questions have the same time, so they are due in the order in which they were asked: they are
 * a list, and each is added at its end.
 */
import type { Clock, StopTimer } from '../../clock/clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Step } from '../step.ts'

const SLICES = 4
/** A timer that fires so late says that nothing else could run either. */
const STOOD_STILL_US = 10_000

export class Deadlines {
  readonly #clock: Clock
  readonly #timeoutUs: number
  readonly #sliceUs: number
  /** The questions under way, the oldest first. */
  #first: AnyQuestion | undefined = undefined
  #last: AnyQuestion | undefined = undefined
  /**
   * The running time when the present slice began, when that was by the clock, and how long the
   * slice should take.
   */
  #ranUs = 0
  #sinceUs = 0
  #spanUs = 0
  #stopTimer: StopTimer | undefined = undefined
  #isClosed = false
  readonly #onSlice = () => this.#sliceEnded()

  /** `timeoutUs`: how long a question may take; Infinity for as long as it does. */
  constructor(clock: Clock, timeoutUs: number) {
    this.#clock = clock
    this.#timeoutUs = timeoutUs
    this.#sliceUs = Math.min(timeoutUs, Math.max(Math.ceil(timeoutUs / SLICES), STOOD_STILL_US))
  }

  /** To be called before a question is asked. */
  begin(question: AnyQuestion): void {
    const nowUs = this.#clock.nowUs()
    if (this.#first === undefined) this.#wake(nowUs)
    question.dueUs = this.#ranUs + this.#sliceSoFarUs(nowUs) + this.#timeoutUs
    question.isUnderWay = true
    question.before = this.#last
    if (this.#last === undefined) this.#first = question
    else this.#last.after = question
    this.#last = question
  }

  /**
   * A clock that stepped back says nothing, and a slice that is late counts no longer than one that
   * did not stand still.
   */
  #sliceSoFarUs(nowUs: number): number {
    return Math.min(Math.max(0, nowUs - this.#sinceUs), this.#spanUs + STOOD_STILL_US)
  }

  /** Whether a question was under way until now. */
  end(question: AnyQuestion): boolean {
    if (!question.isUnderWay) return false
    const { before, after } = question
    if (before === undefined) this.#first = after
    else before.after = after
    if (after === undefined) this.#last = before
    else after.before = before
    question.isUnderWay = false
    // A question that is over must not keep others from being swept.
    question.before = undefined
    question.after = undefined
    if (this.#first === undefined) this.#rest()
    return true
  }

  close(): void {
    this.#isClosed = true
    if (this.#first === undefined) this.#rest()
  }

  #wake(nowUs: number): void {
    if (this.#stopTimer !== undefined) this.#stopTimer.keepAlive?.(true)
    else {
      this.#sinceUs = nowUs
      this.#startSlice()
    }
  }

  /**
   * Nothing is under way. The timer runs on for the next question, where no process stays alive for
   * it: a timer for each would cost more than all else here.
   */
  #rest(): void {
    if (!this.#isClosed && this.#stopTimer?.keepAlive !== undefined) {
      this.#stopTimer.keepAlive(false)
      return
    }
    this.#stopTimer?.()
    this.#stopTimer = undefined
  }

  #startSlice(): void {
    const leftUs = this.#first === undefined ? 0 : this.#first.dueUs - this.#ranUs
    this.#spanUs = leftUs > 0 ? Math.min(leftUs, this.#sliceUs) : this.#sliceUs
    if (this.#spanUs < Number.POSITIVE_INFINITY) this.#stopTimer = this.#clock.setTimer(this.#onSlice, this.#spanUs, true)
  }

  #sliceEnded(): void {
    this.#stopTimer = undefined
    try {
      this.#countSlice()
    } finally {
      // Also if the clock or a caller has thrown. What was told of a failure may have asked anew.
      if (this.#first !== undefined && this.#stopTimer === undefined) this.#startSlice()
    }
  }

  #countSlice(): void {
    const nowUs = this.#clock.nowUs()
    const tookUs = Math.max(0, nowUs - this.#sinceUs)
    const stoodStill = tookUs - this.#spanUs > STOOD_STILL_US
    const beforeUs = this.#ranUs
    this.#ranUs += stoodStill ? this.#spanUs : tookUs
    this.#sinceUs = nowUs
    this.#giveUp(stoodStill ? beforeUs : this.#ranUs)
  }

  /** Those that were due by then. */
  #giveUp(ranUs: number): void {
    for (let next = this.#first; next !== undefined && next.dueUs <= ranUs; next = this.#first) {
      this.end(next)
      next.step.isGivenUp = true
      next.onFailure(timedOut(this.#timeoutUs))
    }
  }
}

/** A question about a step, whatever its answer is. */
type AnyQuestion = Question<never>

/**
 * A question to a store. What it is asked for says what becomes of its answer, or its failure: one
 * of the two is called, once and in time.
 */
export abstract class Question<T> {
  declare readonly step: Step
  /** When it is given up, in running time. */
  declare dueUs: number
  declare isUnderWay: boolean
  /** Those that were asked before and after it. */
  declare before: AnyQuestion | undefined
  declare after: AnyQuestion | undefined
  declare readonly deadlines: Deadlines

  constructor(step: Step, deadlines: Deadlines) {
    this.step = step
    this.dueUs = 0
    this.isUnderWay = false
    this.before = undefined
    this.after = undefined
    this.deadlines = deadlines
  }

  abstract onAnswer(answer: T): void
  abstract onFailure(error: unknown): void

  answered(answer: T): void {
    if (this.deadlines.end(this)) this.onAnswer(answer)
  }

  failed(error: unknown): void {
    if (this.deadlines.end(this)) this.onFailure(error)
  }
}

function timedOut(timeoutUs: number): SluiceError {
  return new SluiceError(
    'STORE',
    `the store did not answer within ${timeoutUs / 1000} ms (storeTimeoutMs); it may have charged the decision all the same`,
  )
}
