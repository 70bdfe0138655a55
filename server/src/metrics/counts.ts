/** What one limiter has done since the service started. A decision is counted once: Prometheus and the live stream both read it here. */
import type { Outcome } from '../sluice.ts'

/** What only grows. */
export type Counted = Outcome | 'degraded' | 'shadowed' | 'storeErrors' | 'outages'

export type Counts = Record<Counted, number> & {
  readonly waits: {
    count: number
    sumMs: number
    /** Since the live stream looked last. */
    maxMs: number
  }
}

/** `shadowed`: of those that were not allowed, the ones that were let through because the limiter is in shadow. */
export function noCounts(): Counts {
  const waits = { count: 0, sumMs: 0, maxMs: 0 }
  return { allowed: 0, limited: 0, impossible: 0, degraded: 0, shadowed: 0, storeErrors: 0, outages: 0, waits }
}

export function countWait({ waits }: Counts, ms: number): void {
  waits.count += 1
  waits.sumMs += ms
  waits.maxMs = Math.max(waits.maxMs, ms)
}
