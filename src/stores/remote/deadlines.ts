/**
 * Every question to a store is answered, or given up, in time. Only time in which the event loop runs counts: while a process stands still
 * (a long computation, a machine that sleeps) it neither writes questions nor reads answers, and the store cannot be blamed for that.
 *
 * The time of a question is cut into slices, each with a timer. A timer that fires late says that the loop stood still for so long, and its
 * slice counts no longer than it should have taken. So a question is given up after its time and that of the standstills, and, where the
 * last slice was one of them, after one slice more: timers fire before answers are read.
 */
import { Alarms } from '../../clock/alarms.ts'
import type { Clock } from '../../clock/clock.ts'
import { SluiceError } from '../../errors.ts'
import type { Asker, Step } from '../store.ts'

/** Asks, and has the asker told. */
export type Ask<T> = (step: Step, asker: Asker<T>) => void

/** One that is told in time, and of a failure also when the question was asked. */
export interface TimedAsker<T> {
  answered(answer: T): void
  failed(error: unknown, sentUs: number): void
}

const SLICES = 4
/** A timer that fires so late says that nothing else could run either. */
const STOOD_STILL_US = 10_000

export class Deadlines {
  readonly clock: Clock
  readonly timeoutUs: number
  readonly sliceUs: number
  readonly alarms: Alarms

  /** `timeoutUs`: how long a question may take; Infinity for as long as it does. */
  constructor(clock: Clock, timeoutUs: number) {
    this.clock = clock
    this.timeoutUs = timeoutUs
    this.sliceUs = Math.min(timeoutUs, Math.max(Math.ceil(timeoutUs / SLICES), STOOD_STILL_US))
    // A timer for each decision that is alone would cost more than its way through here.
    this.alarms = new Alarms(clock, true, true)
  }

  /** Asks, and tells the asker, once and in time. */
  ask<T>(ask: Ask<T>, step: Step, asker: TimedAsker<T>): void {
    const question = new Question(this, step, asker)
    this.alarms.add(question)
    try {
      ask(step, question)
    } catch (error) {
      // A store that others wrote may throw where it should reject.
      question.failed(error)
    }
  }

  close(): void {
    this.alarms.close()
  }
}

/** A question that is under way: who is told, and the alarm of the slice that runs. The first that happens stops the alarm. */
class Question<T> implements Asker<T> {
  declare atUs: number
  declare place: number
  declare readonly sentUs: number
  /** What is left behind the slice that runs; negative once there was one more. */
  declare leftUs: number
  declare readonly deadlines: Deadlines
  declare readonly step: Step
  declare readonly asker: TimedAsker<T>

  constructor(deadlines: Deadlines, step: Step, asker: TimedAsker<T>) {
    const sentUs = deadlines.clock.nowUs()
    this.atUs = sentUs + deadlines.sliceUs
    this.place = -1
    this.sentUs = sentUs
    this.leftUs = deadlines.timeoutUs - deadlines.sliceUs
    this.deadlines = deadlines
    this.step = step
    this.asker = asker
  }

  answered(answer: T): void {
    if (this.deadlines.alarms.stop(this)) this.asker.answered(answer)
  }

  failed(error: unknown): void {
    if (this.deadlines.alarms.stop(this)) this.asker.failed(error, this.sentUs)
  }

  /** The end of a slice. */
  ring(): void {
    const { clock, timeoutUs, sliceUs, alarms } = this.deadlines
    const nowUs = clock.nowUs()
    const lateUs = nowUs - this.atUs
    const stoodStill = lateUs > STOOD_STILL_US
    if (!stoodStill) this.leftUs -= lateUs
    if (this.leftUs < 0 || (this.leftUs === 0 && !stoodStill)) {
      this.step.isGivenUp = true
      this.asker.failed(timedOut(timeoutUs), this.sentUs)
      return
    }
    const nextUs = this.leftUs > 0 ? Math.min(this.leftUs, sliceUs) : sliceUs
    this.leftUs -= nextUs
    this.atUs = nowUs + nextUs
    alarms.add(this)
  }
}

function timedOut(timeoutUs: number): SluiceError {
  return new SluiceError(
    'STORE',
    `the store did not answer within ${timeoutUs / 1000} ms (storeTimeoutMs); it may have charged the decision all the same`,
  )
}
