/** What one limiter has done since the service started. A decision is counted once: Prometheus and the live stream both read it here. */
import type { Outcome } from '../sluice.ts'

export type Counts = Record<Outcome, number> & {
  /** Of those that were not allowed, the ones that were let through because the limiter is in shadow. */
  shadowed: number
  storeErrors: number
  outages: number
  readonly waits: {
    count: number
    sumMs: number
    /** Since the live stream looked last. */
    maxMs: number
  }
}

export function noCounts(): Counts {
  return { allowed: 0, limited: 0, impossible: 0, shadowed: 0, storeErrors: 0, outages: 0, waits: { count: 0, sumMs: 0, maxMs: 0 } }
}
