/**
 * Gathers releases into windows. A window ends with a release, never by a timer: while nothing ends
 * there is nothing to learn, and nothing keeps a process alive.
 */
import type { Window } from './governor.ts'

/** The event of a released permit. */
export interface Release {
  readonly heldMs: number
  readonly outcome: 'ok' | 'dropped' | 'ignored'
  /** How many were in flight, this one included. */
  readonly inflight: number
}

/** Fewer say too little. */
const LEAST_SAMPLES = 20
/** The mean latency of a window should be known this well: its standard error as a share of it. */
const WANTED_ERROR = 0.08
const COARSE_ERROR = 0.2
/**
 * A window is at least so many times as long as calls take: what it shows then belongs to the limit
 * that is in place.
 */
const LEAST_STAYS = 3
const COARSE_LEAST_STAYS = 2
/** And begins so many times as long after the limit has changed. */
const SETTLE_STAYS = 2
const COARSE_SETTLE_STAYS = 1
/** However few calls there are, a window ends when it is so many times as long as it should be. */
const MOST_LENGTHS = 10

export class Windows {
  readonly #lengthMs: number
  #startMs: number
  #lastMs: number
  #ok = 0
  #dropped = 0
  #sumMs = 0
  #squares = 0
  #inflight = 0
  /** The mean latency of the last window. */
  #stayMs = 0
  #isCoarse = true

  constructor(lengthMs: number, nowMs: number) {
    this.#lengthMs = lengthMs
    this.#startMs = nowMs
    this.#lastMs = nowMs
  }

  /** Answers the window that ends with this release, if one does. */
  add({ heldMs, outcome, inflight }: Release, nowMs: number): Window | undefined {
    if (outcome === 'ignored') return undefined
    // After a pause, and after a clock that stepped back, times of before say nothing.
    if (nowMs < this.#lastMs || nowMs - this.#lastMs > this.#mostMs) this.#begin(nowMs)
    this.#lastMs = nowMs
    if (nowMs < this.#startMs) return undefined
    // The end of an outage: one window shows it, and another what comes after.
    if (outcome === 'ok' && this.#ok === 0 && this.#dropped > 0) this.#begin(nowMs)
    this.#inflight = Math.max(this.#inflight, inflight)
    if (outcome === 'ok') {
      this.#ok += 1
      this.#sumMs += heldMs
      this.#squares += heldMs * heldMs
    } else this.#dropped += 1
    return this.#isOver(nowMs) ? this.#ended(nowMs) : undefined
  }

  /**
   * The limit has changed: calls that were let in before say nothing about it, so the next window
   * begins when most of them have ended.
   */
  limitChanged(nowMs: number): void {
    this.#begin(nowMs + (this.#isCoarse ? COARSE_SETTLE_STAYS : SETTLE_STAYS) * this.#stayMs)
  }

  /** Whether short windows will do. */
  set isCoarse(isCoarse: boolean) {
    this.#isCoarse = isCoarse
  }

  get #meanMs(): number {
    return this.#ok === 0 ? 0 : this.#sumMs / this.#ok
  }

  #leastMs(meanMs: number): number {
    if (this.#isCoarse) return Math.max(this.#lengthMs / 2, COARSE_LEAST_STAYS * meanMs)
    return Math.max(this.#lengthMs, LEAST_STAYS * meanMs)
  }

  get #mostMs(): number {
    return Math.max(MOST_LENGTHS * this.#lengthMs, LEAST_STAYS * this.#stayMs)
  }

  #isOver(nowMs: number): boolean {
    const lengthMs = nowMs - this.#startMs
    const meanMs = this.#meanMs
    if (lengthMs < this.#leastMs(meanMs)) return false
    return lengthMs >= this.#mostMs || (this.#ok + this.#dropped >= LEAST_SAMPLES && this.#isKnown(meanMs))
  }

  #isKnown(meanMs: number): boolean {
    if (this.#ok < LEAST_SAMPLES) return this.#ok === 0
    if (this.#stayMs === 0) return true
    const error = this.#isCoarse ? COARSE_ERROR : WANTED_ERROR
    const variance = this.#squares / this.#ok - meanMs * meanMs
    return variance <= this.#ok * (error * meanMs) ** 2
  }

  #ended(nowMs: number): Window | undefined {
    const latencyMs = this.#meanMs
    const isFirst = this.#stayMs === 0 && latencyMs > 0
    const window = {
      atMs: nowMs,
      durationMs: nowMs - this.#startMs,
      ok: this.#ok,
      dropped: this.#dropped,
      latencyMs,
      inflight: this.#inflight,
    }
    if (latencyMs > 0) this.#stayMs = latencyMs
    this.#begin(nowMs)
    // Of the calls that began together the short ones end first: the first window would show them
    // alone.
    return isFirst ? undefined : window
  }

  #begin(nowMs: number): void {
    this.#startMs = nowMs
    this.#ok = 0
    this.#dropped = 0
    this.#sumMs = 0
    this.#squares = 0
    this.#inflight = 0
  }
}
