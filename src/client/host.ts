/**
 * One host: its limits as far as they are known, and the line of calls to it. Calls go one after
 * the other through what may hold them up (a pause, a used-up quota, the limiter), so that only the
 * first of the line ever waits for time to pass, and no call overtakes. After a pause one call goes
 * ahead alone: only when it has been answered do the others follow, at the pace of the limiter.
 */
import type { Clock } from '../clock/clock.ts'
import { SluiceError } from '../errors.ts'
import type { Abortable } from '../limiter/input.ts'
import type { ToldLimit, ToldLimits } from './parse.ts'

export interface Patience {
  /** When the call gives up, by the clock. */
  readonly deadlineUs: number
  readonly signal: Abortable | undefined
}

/** The limiter that one call waits for, beside the limits of the host. */
export type AcquireTurn = (patience: Patience) => Promise<unknown>

/** A call that goes ahead alone. */
export interface Scout {
  readonly ended: Promise<void>
  end(): void
}

export class Host {
  readonly #clock: Clock
  readonly #maxPauseUs: number
  /** The calls before it: each waits for the one before to have started. */
  #line: Promise<void> = Promise.resolve()
  #inLine = 0
  #inFlight = 0
  /** Nothing starts before. */
  #openUs = 0
  /** What the host said is left, and until when that holds. */
  #left = Number.POSITIVE_INFINITY
  #leftUntilUs = 0
  /** Whether the next call goes alone, and the one that does. */
  #isCareful = false
  #scout: Scout | undefined

  constructor(clock: Clock, maxPauseMs: number) {
    this.#clock = clock
    this.#maxPauseUs = maxPauseMs * 1000
  }

  /** Whether there is nothing to remember. */
  get isIdle(): boolean {
    return !this.#isCareful && this.isOver
  }

  /** Whether no call is under way, and the answers of the host hold no longer. */
  get isOver(): boolean {
    return this.#inLine === 0 && this.#inFlight === 0 && this.#clock.nowUs() >= Math.max(this.#openUs, this.#leftUntilUs)
  }

  /**
   * Waits its turn; gives the call to be handed in with its answer. A call that gives up leaves at
   * once; its place in the line is passed over.
   */
  async enter(acquire: AcquireTurn, patience: Patience): Promise<Scout | undefined> {
    const before = this.#line
    let started = () => {}
    this.#line = new Promise((resolve) => {
      started = resolve
    })
    this.#inLine += 1
    try {
      await this.#sooner(before, patience)
      return await this.#turn(acquire, patience)
    } finally {
      this.#inLine -= 1
      // A call that leaves from the middle of the line still stands between its neighbours.
      before.then(started)
    }
  }

  async #turn(acquire: AcquireTurn, patience: Patience): Promise<Scout | undefined> {
    for (let hasPermit = false; !hasPermit; ) {
      await this.#whenOpen(patience)
      await acquire(patience)
      // The host may have said something meanwhile. Then the permit is from before the pause, and
      // is let go: the pace begins anew.
      hasPermit = this.#isOpen
    }
    return this.#start()
  }

  get #isOpen(): boolean {
    return this.#scout === undefined && this.#holdUntilUs() <= this.#clock.nowUs()
  }

  async #whenOpen(patience: Patience): Promise<void> {
    while (!this.#isOpen) {
      if (this.#scout !== undefined) await this.#sooner(this.#scout.ended, patience)
      else await this.#until(this.#holdUntilUs(), patience)
    }
  }

  #holdUntilUs(): number {
    return Math.max(this.#openUs, this.#left <= 0 ? this.#leftUntilUs : 0)
  }

  #start(): Scout | undefined {
    if (this.#left <= 0) {
      // The quota has come back, and how much of it will be told by the answer.
      this.#left = Number.POSITIVE_INFINITY
      this.#isCareful = true
    }
    this.#left -= 1
    this.#inFlight += 1
    if (this.#isCareful) this.#scout = scout()
    return this.#scout
  }

  /** A call was answered: `isRefused` says that the host wants to be left alone. */
  learn(call: Scout | undefined, told: ToldLimits, isRefused: boolean): void {
    this.#inFlight -= 1
    const nowUs = this.#clock.nowUs()
    const tightest = tightestOf(told.limits)
    if (tightest !== undefined) {
      // Others on their way may not have been counted yet.
      this.#left = Math.max(0, (tightest.remaining as number) - this.#inFlight)
      this.#leftUntilUs = nowUs + this.#bounded(tightest.resetAfterMs as number)
    }
    // Only the one that went alone can say that it is over: others may have been answered before it
    // began.
    if (call !== undefined) this.#isCareful = false
    if (isRefused) {
      this.#isCareful = true
      this.#openUs = Math.max(this.#openUs, nowUs + this.#bounded(pauseMs(told, tightest)))
    }
    this.#end(call)
  }

  /** A call was not answered: that says nothing about limits, and another may go ahead. */
  fail(call: Scout | undefined): void {
    this.#inFlight -= 1
    this.#end(call)
  }

  #end(call: Scout | undefined): void {
    if (call === undefined) return
    this.#scout = undefined
    call.end()
  }

  #bounded(ms: number): number {
    return Math.min(Math.ceil(ms * 1000), this.#maxPauseUs)
  }

  /** Waits until a time, checking again: timers may fire early. */
  async #until(us: number, patience: Patience): Promise<void> {
    if (us > patience.deadlineUs) throw timedOut(us - this.#clock.nowUs())
    let stop = () => {}
    const rung = new Promise<void>((resolve) => {
      stop = this.#clock.setTimer(resolve, Math.max(1, us - this.#clock.nowUs()))
    })
    try {
      await this.#sooner(rung, patience)
    } finally {
      stop()
    }
  }

  /** A promise, unless the call gives up before. */
  async #sooner(promise: Promise<void>, { signal, deadlineUs }: Patience): Promise<void> {
    if (signal?.aborted) throw signal.reason
    if (signal === undefined && deadlineUs === Number.POSITIVE_INFINITY) return promise
    let giveUp: (reason: unknown) => void = () => {}
    const gaveUp = new Promise<never>((_, reject) => {
      giveUp = reject
    })
    const onAbort = () => giveUp(signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    const leftUs = deadlineUs - this.#clock.nowUs()
    const stop = deadlineUs === Number.POSITIVE_INFINITY ? () => {} : this.#clock.setTimer(() => giveUp(timedOut(0)), Math.max(1, leftUs))
    try {
      await Promise.race([promise, gaveUp])
    } finally {
      stop()
      signal?.removeEventListener('abort', onAbort)
    }
  }
}

function scout(): Scout {
  let end = () => {}
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  return { ended, end }
}

/** A host that refuses and does not say for how long. */
const DEFAULT_PAUSE_MS = 1000

function pauseMs({ retryAfterMs }: ToldLimits, tightest: ToldLimit | undefined): number {
  return retryAfterMs ?? (tightest?.remaining === 0 ? tightest.resetAfterMs : undefined) ?? DEFAULT_PAUSE_MS
}

/**
 * The limit with the least left, of those that say how much and until when; of several, the one
 * that lasts longest.
 */
function tightestOf(limits: readonly ToldLimit[]): ToldLimit | undefined {
  const known = limits.filter(({ remaining, resetAfterMs }) => remaining !== undefined && resetAfterMs !== undefined)
  const byRemaining = (a: ToldLimit, b: ToldLimit) => (a.remaining as number) - (b.remaining as number)
  return known.sort((a, b) => byRemaining(a, b) || (b.resetAfterMs as number) - (a.resetAfterMs as number))[0]
}

function timedOut(us: number): SluiceError {
  const wait = us > 0 ? `: the host asked to be left alone for another ${Math.ceil(us / 1000)} ms` : ''
  return new SluiceError('TIMEOUT', `the call cannot have its turn within timeoutMs${wait}`)
}
