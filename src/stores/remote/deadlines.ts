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
import type { OnFailure, Step } from '../store.ts'

/** Calls one of the two. */
export type Ask<T> = (step: Step, onAnswer: (answer: T) => void, onFailure: OnFailure) => void

const SLICES = 4
/** A timer that fires so late says that nothing else could run either. */
const STOOD_STILL_US = 10_000

export class Deadlines {
  readonly #clock: Clock
  readonly #timeoutUs: number
  readonly #sliceUs: number
  readonly #alarms: Alarms

  /** `timeoutUs`: how long a question may take; Infinity for as long as it does. */
  constructor(clock: Clock, timeoutUs: number) {
    this.#clock = clock
    this.#timeoutUs = timeoutUs
    this.#sliceUs = Math.min(timeoutUs, Math.max(Math.ceil(timeoutUs / SLICES), STOOD_STILL_US))
    // A timer for each decision that is alone would cost more than its way through here.
    this.#alarms = new Alarms(clock, true, true)
  }

  /** Asks, and calls one of the other two, once and in time: the first that happens stops the alarm. */
  ask<T>(ask: Ask<T>, step: Step, onAnswer: (answer: T) => void, onFailure: (error: unknown, sentUs: number) => void): void {
    const clock = this.#clock
    const alarms = this.#alarms
    const sliceUs = this.#sliceUs
    const sentUs = clock.nowUs()
    // What is left behind the slice that runs; negative once there was one more.
    let leftUs = this.#timeoutUs - sliceUs
    const ring = () => {
      const nowUs = clock.nowUs()
      const lateUs = nowUs - alarm.atUs
      const stoodStill = lateUs > STOOD_STILL_US
      if (!stoodStill) leftUs -= lateUs
      if (leftUs < 0 || (leftUs === 0 && !stoodStill)) {
        step.isGivenUp = true
        onFailure(timedOut(this.#timeoutUs), sentUs)
        return
      }
      const nextUs = leftUs > 0 ? Math.min(leftUs, sliceUs) : sliceUs
      leftUs -= nextUs
      alarm = alarms.set(nowUs + nextUs, ring)
    }
    let alarm = alarms.set(sentUs + sliceUs, ring)
    const failed = (error: unknown) => {
      if (alarms.stop(alarm)) onFailure(error, sentUs)
    }
    try {
      ask(
        step,
        (answer) => {
          if (alarms.stop(alarm)) onAnswer(answer)
        },
        failed,
      )
    } catch (error) {
      // A store that others wrote may throw where it should reject.
      failed(error)
    }
  }

  close(): void {
    this.#alarms.close()
  }
}

function timedOut(timeoutUs: number): SluiceError {
  return new SluiceError(
    'STORE',
    `the store did not answer within ${timeoutUs / 1000} ms (storeTimeoutMs); it may have charged the decision all the same`,
  )
}
