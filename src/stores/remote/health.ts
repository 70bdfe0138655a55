import type { SluiceError } from '../../errors.ts'

/** How the store of a limiter is. */
export interface Health {
  /**
   * `down`: it failed or did not answer in time, and the failure policy decides until it answers
   * again. In a cluster: some node of it, and the policy decides about that node's keys.
   * `full`, of a store in memory: it had no room for a new key within the last minute or two, and
   * refused it, or let it pass uncounted (`onFull`).
   */
  readonly state: 'up' | 'full' | 'down'
  /** Since when, by the limiter's clock; 0 if it has never been anything but up. */
  readonly sinceMs: number
  /** Why it is down or full; undefined when it is up. */
  readonly error: SluiceError | undefined
}

export interface HealthEvent extends Health {
  /** The name of the limiter. */
  readonly limiter: string
}

export const UP_SINCE_EVER: Health = Object.freeze({ state: 'up', sinceMs: 0, error: undefined })
