/** Whether the store of a limiter has room for new keys, as `health()` and `onHealth` tell it. */
import type { Clock, StopTimer } from '../clock/clock.ts'
import type { SluiceError } from '../errors.ts'
import { type Health, UP_SINCE_EVER } from '../stores/remote/health.ts'

/**
 * A table at its bound is full for one key and has room for the next. So it counts as full until a
 * whole span of this length has passed without a key for which there was no room.
 */
const SPAN_US = 60_000_000

export class Room {
  health: Health = UP_SINCE_EVER
  readonly #clock: Clock
  readonly #onHealth: (health: Health) => void
  #wasFull = false
  #stop: StopTimer | undefined = undefined

  constructor(clock: Clock, onHealth: (health: Health) => void) {
    this.#clock = clock
    this.#onHealth = onHealth
  }

  noteFull(why: SluiceError): void {
    this.#wasFull = true
    if (this.health.state === 'full') return
    this.#become('full', why)
    this.#look()
  }

  close(): void {
    this.#stop?.()
  }

  #look(): void {
    this.#wasFull = false
    this.#stop = this.#clock.setTimer(
      () => {
        if (this.#wasFull) this.#look()
        else this.#become('up', undefined)
      },
      SPAN_US,
      false,
    )
  }

  #become(state: 'up' | 'full', error: SluiceError | undefined): void {
    const health = { state, sinceMs: this.#clock.nowUs() / 1000, error }
    this.health = health
    // Listeners may ask the limiter, which is in the middle of a step.
    queueMicrotask(() => this.#onHealth(health))
  }
}
