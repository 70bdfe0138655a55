/**
 * The circuit breaker of one part of a store. It opens with a failure, and is open until a probe is
 * answered: the first is sent after 100 ms, each next one after a pause twice as long, up to a
 * second. The limiter whose call failed probes, on its clock; when it is closed, another does.
 */
import type { Clock } from '../../clock/clock.ts'
import type { SluiceError } from '../../errors.ts'
import type { Step } from '../step.ts'

const LONGEST_PAUSE_US = 1_000_000
/** Where it is not known when the store is tried again: soon, but not at once. */
export const FIRST_PAUSE_US = 100_000

export interface Prober {
  readonly clock: Clock
  /** Asks whether the store is well again, and calls one of the two, once. */
  probe(step: Step, onWell: () => void, onIll: () => void): void
}

export class Breaker {
  /** Why it is open; undefined while it is closed. */
  error: SluiceError | undefined = undefined
  /** How often breakers of the store had closed when this one last did. */
  closings = 0
  readonly #onWell: () => void
  #prober: Prober | undefined = undefined
  #step: Step | undefined = undefined
  /** When it opened, and when the next probe is sent, by the prober's clock. */
  #openedUs = 0
  #probeUs = 0
  #pauseUs = FIRST_PAUSE_US
  #stopTimer: () => void = () => {}

  constructor(onWell: () => void) {
    this.#onWell = onWell
  }

  /** `step`: what failed, which says what to probe. */
  open(error: SluiceError, step: Step, prober: Prober): void {
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

  isProbedBy(prober: Prober): boolean {
    return this.#prober === prober
  }

  /** The next probes are this one's. */
  handTo(prober: Prober): void {
    this.#stopTimer()
    this.#openedUs = prober.clock.nowUs() - this.openForUs()
    this.#probeLater(prober)
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
    this.#prober = prober
    const pauseUs = this.#pauseUs
    this.#pauseUs = Math.min(2 * pauseUs, LONGEST_PAUSE_US)
    // A process may end while its store is down.
    this.#stopTimer = prober.clock.setTimer(() => this.#probe(prober), pauseUs, false)
    this.#probeUs = prober.clock.nowUs() + pauseUs
  }

  #probe(prober: Prober): void {
    // What is heard from one that was closed meanwhile counts for nothing.
    const ifStillProbing = (act: () => void) => () => {
      if (this.#prober === prober) act()
    }
    const onIll = ifStillProbing(() => this.#probeLater(prober))
    try {
      prober.probe(this.#step as Step, ifStillProbing(this.#onWell), onIll)
    } catch (error) {
      // A caller's clock threw: the other limiters still wait for the store.
      onIll()
      throw error
    }
  }
}
