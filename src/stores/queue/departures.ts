/**
 * When callers really left. Booked times assume an event loop that runs: if it stood still,
 * everybody who came due meanwhile would go at once. From then on callers are spaced as the limits
 * drain, until one is on time again.
 */
import type { Part } from '../store.ts'

/** Timers are late by a few milliseconds all the time: so much is caught up with. */
const LATENESS_US = 10_000

export class Departures {
  #isBehind = false
  #notBeforeUs = Number.NEGATIVE_INFINITY

  /** Whether callers leave later than they were booked for. */
  get isBehind(): boolean {
    return this.#isBehind
  }

  /** The queue was to wake at `alarmUs`. */
  woke(alarmUs: number, nowUs: number): void {
    if (nowUs - alarmUs > LATENESS_US) this.#isBehind = true
  }

  /** When a caller that is due then may leave. */
  fromUs(dueUs: number): number {
    return Math.max(dueUs, this.#notBeforeUs)
  }

  /**
   * A caller that was due then has left. `paceUs`: how long the limits take to drain what it took.
   */
  left(dueUs: number, nowUs: number, paceUs: number): void {
    if (!this.#isBehind) return
    this.#isBehind = nowUs - dueUs > LATENESS_US
    this.#notBeforeUs = this.#isBehind ? Math.max(nowUs - LATENESS_US, this.#notBeforeUs) + Math.ceil(paceUs) : Number.NEGATIVE_INFINITY
  }
}

/** How long the limits take to drain what the parts ask for. */
export function paceUs(parts: readonly Part[]): number {
  let longestUs = 0
  for (const { cost, rule } of parts) if (cost > 0) longestUs = Math.max(longestUs, (cost * rule.windowUs) / rule.capacity)
  return longestUs
}
