/**
 * What one limiter has done, in plain numbers. It is written at every decision and read once in a while, so it is made for writing: the counters
 * of a metrics library look their labels up each time.
 */
import type { Outcome, Recorder } from '../sluice.ts'
import { DURATION_BOUNDS_S, WAIT_BOUNDS_S } from '../sluice.ts'

export class Tally implements Recorder {
  readonly results: Record<Outcome, number> = { allowed: 0, limited: 0, impossible: 0 }
  degradedDecisions = 0
  storeErrors = 0
  outages = 0
  readonly durations = new Buckets(DURATION_BOUNDS_S)
  readonly waits = new Buckets(WAIT_BOUNDS_S)

  decided(result: Outcome): void {
    this.results[result] += 1
  }

  degraded(): void {
    this.degradedDecisions += 1
  }

  took(seconds: number): void {
    this.durations.add(seconds)
  }

  waited(seconds: number): void {
    this.waits.add(seconds)
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

  add(value: number): void {
    let k = 0
    while (k < this.bounds.length && value > (this.bounds[k] as number)) k += 1
    this.counts[k] = (this.counts[k] as number) + 1
    this.sum += value
  }
}
