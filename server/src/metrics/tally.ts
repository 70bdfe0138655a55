/**
 * Counters of one limiter since the service started, in plain numbers. A decision is counted once:
 * Prometheus and the live stream both read it here. It is written at every decision and read once
 * in a while, so it is made for writing: the counters of a metrics library look their labels up
 * each time.
 */
import type { Outcome, RateChange, Recorder } from '../sluice.ts'
import { DURATION_BOUNDS_S, WAIT_BOUNDS_S } from '../sluice.ts'

/** Why a rate follows the load. */
const REASONS = ['more load', 'less load']

export class Tally implements Recorder {
  readonly results: Record<Outcome, number> = { allowed: 0, limited: 0, impossible: 0 }
  /** What was charged: within the limits, or as debt. */
  readonly charges: Record<Outcome, number> = { allowed: 0, limited: 0, impossible: 0 }
  degradedDecisions = 0
  /**
   * Of those that were not allowed, the ones that were let through because the limiter is in
   * shadow.
   */
  shadowed = 0
  /** Allowed, with little left. */
  nearLimit = 0
  storeErrors = 0
  outages = 0
  readonly durations = new Buckets(DURATION_BOUNDS_S)
  readonly waits = new Buckets(WAIT_BOUNDS_S)
  /** Of limits that follow the load, how often each was changed, by reason. */
  readonly limitChanges = new Map<string, Map<string, number>>()
  /** Since the live stream looked last. */
  longestWaitSeconds = 0

  decided(result: Outcome): void {
    this.results[result] += 1
  }

  charged(result: Outcome): void {
    this.charges[result] += 1
  }

  degraded(): void {
    this.degradedDecisions += 1
  }

  took(seconds: number): void {
    this.durations.add(seconds)
  }

  waited(seconds: number): void {
    this.waits.add(seconds)
    this.longestWaitSeconds = Math.max(this.longestWaitSeconds, seconds)
  }

  /** From now on its changes are counted, also while there are none. */
  follows(limit: string): void {
    if (!this.limitChanges.has(limit)) this.limitChanges.set(limit, new Map(REASONS.map((reason) => [reason, 0])))
  }

  limitMoved({ limit, reason }: RateChange): void {
    const changes = this.limitChanges.get(limit)
    changes?.set(reason, (changes.get(reason) ?? 0) + 1)
  }

  storeFailed(): void {
    this.storeErrors += 1
  }

  storeWentDown(): void {
    this.outages += 1
  }
}

/** A histogram. */
export class Buckets {
  readonly bounds: readonly number[]
  /** How many fell in each, and at the end beyond all. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = Array(bounds.length + 1).fill(0)
  }

  get count(): number {
    return this.counts.reduce((sum, count) => sum + count, 0)
  }

  add(value: number): void {
    let k = 0
    while (k < this.bounds.length && value > (this.bounds[k] as number)) k += 1
    this.counts[k] = (this.counts[k] as number) + 1
    this.sum += value
  }
}
