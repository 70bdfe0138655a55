/**
 * Plays traffic against limits on a clock of its own and counts, per time slice, what is admitted
 * and what is refused.
 */
import type { Limit } from '../algorithms/algorithm.ts'
import { createLimiter } from '../limiter/limiter.ts'
import type { Traffic } from './traffic.ts'

export interface Contestant {
  readonly name: string
  readonly limit: Limit
  /** One line: what to look at. */
  readonly explanation: string
}

export interface Run {
  readonly name: string
  readonly explanation: string
  /**
   * Per slice, by the time at which they may act: a leaky bucket's admissions leave it later than
   * they came.
   */
  readonly admitted: readonly number[]
  /** Per slice, by the time at which they came. */
  readonly refused: readonly number[]
}

export function simulate(traffic: Traffic, { name, limit, explanation }: Contestant, slices: number): Run {
  let nowMs = 0
  const clock = { nowUs: () => Math.round(nowMs * 1000), setTimer: () => () => undefined }
  const limiter = createLimiter(limit, { clock })
  const admittedMs: number[] = []
  const refusedMs: number[] = []
  for (const atMs of traffic.arrivalsMs) {
    nowMs = atMs
    const { allowed, delayMs } = limiter.consume('key')
    if (allowed) admittedMs.push(atMs + delayMs)
    else refusedMs.push(atMs)
  }
  const { lengthMs } = traffic
  return { name, explanation, admitted: countsOf(admittedMs, lengthMs, slices), refused: countsOf(refusedMs, lengthMs, slices) }
}

/** How many fall into each slice of time; what comes later, into the last. */
export function countsOf(timesMs: readonly number[], lengthMs: number, slices: number): number[] {
  const counts = new Array<number>(slices).fill(0)
  for (const atMs of timesMs) {
    const slice = Math.min(slices - 1, Math.floor((atMs / lengthMs) * slices))
    counts[slice] = (counts[slice] as number) + 1
  }
  return counts
}
