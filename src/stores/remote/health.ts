import type { SluiceError } from '../../errors.ts'

/** How the store of a limiter is. */
export interface Health {
  /**
   * `down`: it failed or did not answer in time, and the failure policy decides until it answers
   * again. In a cluster: some node of it, and the policy decides about that node's keys.
   */
  readonly state: 'up' | 'down'
  /** Since when, by the limiter's clock; 0 if it has never been down. */
  readonly sinceMs: number
  /** Why it is down; undefined when it is up. */
  readonly error: SluiceError | undefined
}

export interface HealthEvent extends Health {
  /** The name of the limiter. */
  readonly limiter: string
}

export const UP_SINCE_EVER: Health = Object.freeze({ state: 'up', sinceMs: 0, error: undefined })
