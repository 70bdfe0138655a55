/**
 * A remote store behind a watchman. No step takes longer than the time it is given, whatever the client is doing. The first that fails, or is
 * not answered in time, opens the breaker: from then on the failure policy decides at once, so that an outage costs one wait and not one
 * for each call. Meanwhile the store is probed again and again, at longer and longer intervals and charging nothing, until
 * it answers; then the breaker closes.
 *
 * A step that was not answered may have been decided and charged all the same. It is never sent again.
 */
import type { Verdict } from '../../algorithms/decide.ts'
import type { Clock } from '../../clock/clock.ts'
import { SluiceError } from '../../errors.ts'
import type { AsyncStore, Lane, OnFailure, OnVerdicts, Scope, Step } from '../../stores/store.ts'
import { Alarms } from '../alarms.ts'
import { type Health, UP_SINCE_EVER } from './health.ts'
import type { Substitute } from './substitute.ts'

export interface Watch {
  readonly clock: Clock
  /** How long a step may take; Infinity for as long as it does. */
  readonly timeoutUs: number
  /** Who decides while the store is down; undefined: nobody, the failure is thrown. */
  readonly substitute: Substitute | undefined
  onHealth(health: Health): void
}

const PROBED_KEY = 'sluice-probe'
const FIRST_PAUSE_US = 100_000
const LONGEST_PAUSE_US = 5_000_000
/** A timer that fires so late says that nothing else could run either. */
const STOOD_STILL_US = 10_000
const GRACE_US = 1_000

export class GuardedStore implements AsyncStore {
  readonly mode = 'async'
  readonly shared: boolean
  readonly #store: AsyncStore
  readonly #watch: Watch
  readonly #alarms: Alarms
  #health: Health = UP_SINCE_EVER
  /** Since when the store is up: what was sent before says nothing about it. */
  #upUs = 0
  #pauseUs = FIRST_PAUSE_US
  #probeUs = 0
  #stopProbing: () => void = () => {}
  #isClosed = false
  readonly #submit: Ask<readonly Verdict[]> = (step, onVerdicts, onFailure) => {
    if (this.#store.submit === undefined) this.#store.apply(step).then(onVerdicts, onFailure)
    else this.#store.submit(step, onVerdicts, onFailure)
  }

  constructor(store: AsyncStore, watch: Watch) {
    this.#store = store
    this.shared = store.shared
    this.#watch = watch
    // A timer for each decision that is alone would cost more than its way through here.
    this.#alarms = new Alarms(watch.clock, true, true)
  }

  get health(): Health {
    return this.#health
  }

  /** The store's short way, while it is up: when it is down, the policy decides everything. */
  lane(scope: Scope): Lane | undefined {
    const lane = this.#store.lane?.(scope)
    if (lane === undefined) return undefined
    return {
      tryTake: (key, cost, nowUs) => (this.#health.error === undefined ? lane.tryTake(key, cost, nowUs) : undefined),
      take: (key, cost, nowUs) => (this.#health.error === undefined ? lane.take(key, cost, nowUs) : undefined),
    }
  }

  apply(step: Step): Promise<readonly Verdict[]> {
    return this.ask(step, (verdicts) => verdicts)
  }

  /** A promise of what `read` makes of the verdicts. */
  ask<T>(step: Step, read: (verdicts: readonly Verdict[]) => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const onVerdicts: OnVerdicts = (verdicts) => {
        try {
          resolve(read(verdicts))
        } catch (error) {
          reject(error)
        }
      }
      const { error } = this.#health
      if (isImpossible(step)) onVerdicts(impossible(step, this.#watch.clock.nowUs()))
      else if (error !== undefined) this.#instead(step, error, onVerdicts, reject)
      else this.#inTime(this.#submit, step, onVerdicts, (failure, sentUs) => this.#failed(step, failure, sentUs, onVerdicts, reject))
    })
  }

  /** Stops looking after the store. */
  close(): void {
    this.#isClosed = true
    this.#stopProbing()
    this.#alarms.close()
  }

  /** Asks, and calls one of the other two, once, and in time: whoever is first stops the alarm. */
  #inTime<T>(ask: Ask<T>, step: Step, onAnswer: (answer: T) => void, onFailure: (error: unknown, sentUs: number) => void): void {
    const { clock, timeoutUs } = this.#watch
    const sentUs = clock.nowUs()
    let alarm = this.#alarms.set(sentUs + timeoutUs, () => {
      const nowUs = clock.nowUs()
      const giveUp = () => onFailure(timedOut(timeoutUs), sentUs)
      // The process stood still, and the answer may be there unread.
      if (nowUs - sentUs - timeoutUs > STOOD_STILL_US) alarm = this.#alarms.set(nowUs + GRACE_US, giveUp)
      else giveUp()
    })
    const failed = (error: unknown) => {
      if (this.#alarms.stop(alarm)) onFailure(error, sentUs)
    }
    try {
      ask(
        step,
        (answer) => {
          if (this.#alarms.stop(alarm)) onAnswer(answer)
        },
        failed,
      )
    } catch (error) {
      // A store of somebody else's may throw where it should reject.
      failed(error)
    }
  }

  #failed(step: Step, error: unknown, sentUs: number, onVerdicts: OnVerdicts, reject: OnFailure): void {
    if (!isOfTheStore(error)) {
      reject(error)
      return
    }
    const failure = asStoreError(error)
    if (!failure.isolated && sentUs >= this.#upUs) this.#goDown(step, failure)
    this.#instead(step, failure, onVerdicts, reject)
  }

  /** Answers by the failure policy. What is to be forgotten cannot be by anybody else. */
  #instead(step: Step, error: SluiceError, onVerdicts: OnVerdicts, reject: OnFailure): void {
    const { substitute, clock } = this.#watch
    if (substitute === undefined || step.op === 'forget') {
      reject(error)
      return
    }
    const nowUs = clock.nowUs()
    // While a probe is under way, and where only this decision failed, nobody knows when: soon, but not at once.
    const leftUs = this.#probeUs - nowUs
    onVerdicts(substitute(step, nowUs, leftUs > 0 ? leftUs : FIRST_PAUSE_US))
  }

  #goDown(step: Step, error: SluiceError): void {
    if (this.#health.state === 'down' || this.#isClosed) return
    this.#pauseUs = FIRST_PAUSE_US
    this.#probeLater(step)
    this.#turn('down', error)
  }

  #probeLater(step: Step): void {
    if (this.#isClosed) return
    const { clock } = this.#watch
    this.#probeUs = clock.nowUs() + this.#pauseUs
    // A process may end while its store is down.
    this.#stopProbing = clock.setTimer(() => this.#probe(step), this.#pauseUs, false)
    this.#pauseUs = Math.min(2 * this.#pauseUs, LONGEST_PAUSE_US)
  }

  #probe(step: Step): void {
    this.#inTime(
      (_, onAnswer, onFailure) => this.#probed(step).then(onAnswer, onFailure),
      step,
      () => this.#goUp(),
      (error) => (isOfTheStore(error) && !asStoreError(error).isolated ? this.#probeLater(step) : this.#goUp()),
    )
  }

  #probed(step: Step): Promise<unknown> {
    if (this.#store.probe !== undefined) return this.#store.probe(step)
    // About a key of its own: the numbers may have changed since, and a question about a key in use would move its state to the old ones.
    const parts = step.parts.map((part) => ({ ...part, key: PROBED_KEY, ticket: undefined }))
    const nowUs = step.nowUs === undefined ? undefined : this.#watch.clock.nowUs()
    return this.#store.apply({ ...step, op: 'ask', parts, aheadUs: -1, ofUs: -1, nowUs })
  }

  #goUp(): void {
    if (this.#isClosed) return
    this.#upUs = this.#watch.clock.nowUs()
    this.#turn('up', undefined)
  }

  #turn(state: Health['state'], error: SluiceError | undefined): void {
    this.#health = { state, sinceMs: this.#watch.clock.nowUs() / 1000, error }
    this.#watch.onHealth(this.#health)
  }
}

/** Calls one of the two. */
type Ask<T> = (step: Step, onAnswer: (answer: T) => void, onFailure: OnFailure) => void

/** Whether the store failed, and not the caller. */
function isOfTheStore(error: unknown): boolean {
  return !(error instanceof SluiceError) || error.code === 'STORE'
}

function asStoreError(error: unknown): SluiceError {
  if (error instanceof SluiceError) return error
  return new SluiceError('STORE', `the store failed: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
}

function timedOut(timeoutUs: number): SluiceError {
  return new SluiceError(
    'STORE',
    `the store did not answer within ${timeoutUs / 1000} ms (storeTimeoutMs); it may have charged the decision all the same`,
  )
}

/** No store needs to be asked about a cost that never fits. A clock of the caller's own is a test's, which wants to see the store's answer. */
function isImpossible({ op, parts, nowUs }: Step): boolean {
  return nowUs === undefined && (op === 'take' || op === 'ask') && parts.some(({ cost, rule }) => cost > rule.capacity)
}

/** What the key has left is not known here. */
function impossible({ parts }: Step, nowUs: number): Verdict[] {
  return parts.map(({ cost, rule }) => {
    const never = cost > rule.capacity
    return {
      outcome: never ? 'impossible' : 'allowed',
      remaining: 0,
      retryUs: never ? Number.POSITIVE_INFINITY : 0,
      resetUs: 0,
      delayUs: 0,
      atUs: nowUs,
      ticket: undefined,
    }
  })
}
