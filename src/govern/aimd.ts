/**
 * Additive increase, multiplicative decrease, as Netflix's concurrency-limits has it. It rises
 * until calls time out: for comparison.
 */

import { invalid } from '../algorithms/rate.ts'
import { type Bounds, checkBounds, checkLatency, clamped, type Governor, type GovernorState } from './governor.ts'

export interface AimdOptions extends Partial<Bounds> {
  /** The limit to begin with. Default 20. */
  readonly initial?: number | undefined
  /** The share of the limit that is left after a drop: 0.5 or more, below 1; default 0.9. */
  readonly backoff?: number | undefined
  /** A call that takes longer counts as dropped, in milliseconds. Above 0; default 5,000. */
  readonly timeoutMs?: number | undefined
}

export function aimd(options: AimdOptions = {}): Governor {
  const { min = 20, max = 200, initial, backoff = 0.9, timeoutMs = 5_000 } = options
  const bounds = checkBounds('aimd', { ...options, min, max }, ['initial', 'backoff', 'timeoutMs'])
  checkLatency('aimd timeoutMs', timeoutMs)
  if (!(backoff >= 0.5 && backoff < 1)) throw invalid('aimd backoff', backoff, 'must be 0.5 or more, and below 1')
  const to = (limit: number, reason: string): GovernorState => ({ limit: clamped(limit, bounds), reason })
  return {
    name: 'aimd',
    ...bounds,
    initial: to(initial ?? 20, 'start'),
    next({ limit }, { dropped, latencyMs, inflight }) {
      if (dropped > 0 || latencyMs > timeoutMs) return to(Math.trunc(limit * backoff), dropped > 0 ? 'drops' : 'too slow')
      return 2 * inflight >= limit ? to(limit + 1, 'nothing dropped') : to(limit, 'not reached')
    },
  }
}
