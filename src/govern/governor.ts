/**
 * A governor is a pure function: from its knowledge and the figures of a window of time to its next
 * knowledge. It has no clock, no timer and no randomness, so that the same windows always give the
 * same limits.
 */

import { invalid, MAX_PERMITS, onlyKnown } from '../algorithms/rate.ts'

/** The figures of a limiter in a span of time. Calls whose outcome is 'ignored' are not in it. */
export interface Window {
  /** When it ended, in milliseconds. Any origin will do. */
  readonly atMs: number
  readonly durationMs: number
  /** How many calls ended well in it. */
  readonly ok: number
  /** How many were dropped: failed, timed out, or given up by who asked. */
  readonly dropped: number
  /** Mean time that the calls which ended well held their places; 0 if there were none. */
  readonly latencyMs: number
  /** The most that were in flight at a time. */
  readonly inflight: number
}

/** The knowledge of a governor. Governors add to it what they need. */
export interface GovernorState {
  /** The limit from now on, a whole number. */
  readonly limit: number
  /** Why it is what it is, in a word or two. */
  readonly reason: string
  /** Whether a short and noisy window will do next. Default false. */
  readonly isCoarse?: boolean
}

export interface Governor<S extends GovernorState = GovernorState> {
  readonly name: string
  /** The limit never leaves these. */
  readonly min: number
  readonly max: number
  /** Before anything was seen. */
  readonly initial: S
  next(state: S, window: Window): S
}

export interface Bounds {
  /** The lowest limit. Whole, 1 or more. */
  readonly min: number
  /** The highest limit. Whole, `min` or more. */
  readonly max: number
}

export function checkBounds(what: string, options: Bounds & { readonly initial?: number | undefined }, more: readonly string[]): Bounds {
  onlyKnown(options, ['min', 'max', ...more], what)
  const { min, max, initial } = options
  if (!isLimit(min)) throw invalid(`${what} min`, min, 'must be a whole number from 1 to 1,000,000,000')
  if (!isLimit(max) || max < min) throw invalid(`${what} max`, max, `must be a whole number from min (${min}) to 1,000,000,000`)
  if (initial !== undefined && (!isLimit(initial) || initial < min || initial > max)) {
    throw invalid(`${what} initial`, initial, `must be a whole number from min (${min}) to max (${max})`)
  }
  return { min, max }
}

function isLimit(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= MAX_PERMITS
}

export function checkLatency(what: string, ms: number): void {
  if (typeof ms !== 'number' || !(ms > 0)) throw invalid(what, ms, 'must be above 0 milliseconds, or Infinity')
}

export function clamped(limit: number, { min, max }: Bounds): number {
  return Math.max(min, Math.min(max, limit))
}
