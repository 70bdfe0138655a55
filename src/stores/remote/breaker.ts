/**
 * The circuit breaker of one part of a store. It opens with a failure, for all limiters, and stays
 * open until a probe is answered in time: the first is sent after 100 ms, each next one after a
 * pause twice as long, up to a second. The limiter whose call failed probes, on its clock; when it
 * is closed, or its clock stands still, another does.
 *
 * A probe that is answered late shows a store that is only slower than the prober's time. From then
 * on the breaker is open for limiters whose time is no longer than that, also when such a time runs
 * out again.
 */
import type { Clock } from '../../clock/clock.ts'
import type { SluiceError } from '../../errors.ts'
import type { Step } from '../step.ts'

/** Also how long a probe is waited for at most before the next. */
const LONGEST_PAUSE_US = 1_000_000
/** On a clock that runs, a pause and the wait for a probe are over by then. */
const OVERDUE_US = 3 * LONGEST_PAUSE_US
/** Where it is not known when the store is tried again: soon, but not at once. */
export const FIRST_PAUSE_US = 100_000

export interface Prober {
  readonly clock: Clock
  /** How long its calls may take. */
  readonly timeoutUs: number
  /**
   * Asks whether the store is well again. `onIll`: it failed, or did not answer within that time.
   * It may answer all the same, late.
   */
  probe(step: Step, withinUs: number, onAnswer: (isLate: boolean) => void, onIll: () => void): void
}

export class Breaker {
  /** Why it is open; undefined while it is closed. */
  error: SluiceError | undefined = undefined
  /** How often breakers of the store had closed when this one last did. */
  closings = 0
  readonly #onAnswer: () => void
  #prober: Prober | undefined = undefined
  #step: Step | undefined = undefined
  /** It is open for those whose time is no longer: Infinity for all. */
  #upToUs = Number.POSITIVE_INFINITY
  /** When it opened, and when the next probe is sent, by the prober's clock. */
  #openedUs = 0
  #probeUs = 0
  #pauseUs = FIRST_PAUSE_US
  #stopTimer: () => void = () => {}
  /** When members first asked since the next probe was put on a timer, each by its own clock. */
  #askedUs = new WeakMap<Prober, number>()

  /** `onAnswer`: it is closed, or open for fewer. */
  constructor(onAnswer: () => void) {
    this.#onAnswer = onAnswer
  }

  /** `step`: what failed, which says what to probe. */
  open(error: SluiceError, step: Step, prober: Prober, hasTimedOut: boolean): void {
    if (!hasTimedOut || prober.timeoutUs > this.#upToUs) this.#upToUs = Number.POSITIVE_INFINITY
    this.#openedUs = prober.clock.nowUs()
    this.error = error
    this.#step = step
    this.#pauseUs = FIRST_PAUSE_US
    this.#probeLater(prober)
  }

  close(): void {
    this.#stopTimer()
    this.error = undefined
    this.#step = undefined
    this.#prober = undefined
  }

  isOpenFor({ timeoutUs }: Prober): boolean {
    return this.error !== undefined && timeoutUs <= this.#upToUs
  }

  isProbedBy(prober: Prober): boolean {
    return this.#prober === prober
  }

  /** The next probes are this one's. */
  handTo(prober: Prober): void {
    this.#openedUs = prober.clock.nowUs() - this.openForUs()
    this.#probeLater(prober)
  }

  /** Its policy answered a call. If the next probe is overdue by its clock, it takes them over. */
  asked(member: Prober): void {
    const nowUs = member.clock.nowUs()
    const sinceUs = this.#askedUs.get(member) ?? nowUs
    this.#askedUs.set(member, sinceUs)
    if (nowUs - sinceUs >= OVERDUE_US) this.handTo(member)
  }

  /** For how long it has been open. */
  openForUs(): number {
    return this.#prober === undefined ? 0 : this.#prober.clock.nowUs() - this.#openedUs
  }

  /** How long until the store is tried again. */
  retryUs(): number {
    const leftUs = this.#prober === undefined ? 0 : this.#probeUs - this.#prober.clock.nowUs()
    return leftUs > 0 ? leftUs : FIRST_PAUSE_US
  }

  #probeLater(prober: Prober): void {
    this.#stopTimer()
    this.#askedUs = new WeakMap()
    this.#prober = prober
    const pauseUs = this.#pauseUs
    this.#pauseUs = Math.min(2 * pauseUs, LONGEST_PAUSE_US)
    // A process may end while its store is down.
    this.#stopTimer = prober.clock.setTimer(() => this.#probe(prober), pauseUs, false)
    this.#probeUs = prober.clock.nowUs() + pauseUs
  }

  #probe(prober: Prober): void {
    const { error } = this
    const withinUs = Math.min(prober.timeoutUs, LONGEST_PAUSE_US)
    // Of another outage a probe says nothing.
    const onAnswer = (isLate: boolean) => {
      if (this.error === error) this.#answered(prober, isLate && prober.timeoutUs === withinUs)
    }
    const onIll = () => {
      if (this.error === error && this.#prober === prober) this.#probeLater(prober)
    }
    try {
      prober.probe(this.#step as Step, withinUs, onAnswer, onIll)
    } catch (thrown) {
      // A caller's clock threw: the other limiters still wait for the store.
      onIll()
      throw thrown
    }
  }

  #answered({ timeoutUs }: Prober, isLate: boolean): void {
    if (isLate && timeoutUs === this.#upToUs) return
    if (isLate) this.#upToUs = timeoutUs
    else this.close()
    this.#onAnswer()
  }
}
