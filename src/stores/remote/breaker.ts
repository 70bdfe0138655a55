/**
 * A circuit breaker. It opens with a failure, and is open until a probe is answered: the first is
 * sent after 100 ms, each next one after a pause twice as long, up to a second.
 */
import type { Clock } from '../../clock/clock.ts'
import type { SluiceError } from '../../errors.ts'

const LONGEST_PAUSE_US = 1_000_000
/** Where nobody knows when the store is tried again: soon, but not at once. */
export const FIRST_PAUSE_US = 100_000

/** Asks whether the store is well again, and calls one of the two, once. */
export type Probe = (onWell: () => void, onIll: () => void) => void

export class Breaker {
  /** Why it is open; undefined while it is closed. */
  error: SluiceError | undefined = undefined
  /** When it opened last. */
  openedUs = 0
  /** Since when it is closed: what was sent before says nothing about it. */
  closedUs = 0
  readonly #clock: Clock
  readonly #onClosed: () => void
  #pauseUs = FIRST_PAUSE_US
  #probeUs = 0
  #stopTimer: () => void = () => {}

  constructor(clock: Clock, onClosed: () => void) {
    this.#clock = clock
    this.#onClosed = onClosed
  }

  open(error: SluiceError, probe: Probe): void {
    this.error = error
    this.openedUs = this.#clock.nowUs()
    this.#pauseUs = FIRST_PAUSE_US
    this.#probeLater(probe)
  }

  /** How long until the store is tried again. */
  retryUs(nowUs: number): number {
    const leftUs = this.#probeUs - nowUs
    return leftUs > 0 ? leftUs : FIRST_PAUSE_US
  }

  /** No more probes. */
  stop(): void {
    this.#stopTimer()
  }

  #probeLater(probe: Probe): void {
    this.#probeUs = this.#clock.nowUs() + this.#pauseUs
    const onIll = () => this.#probeLater(probe)
    // A process may end while its store is down.
    this.#stopTimer = this.#clock.setTimer(() => probe(() => this.#close(), onIll), this.#pauseUs, false)
    this.#pauseUs = Math.min(2 * this.#pauseUs, LONGEST_PAUSE_US)
  }

  #close(): void {
    this.error = undefined
    this.closedUs = this.#clock.nowUs()
    this.#onClosed()
  }
}
