/**
 * Vegas, as Netflix's concurrency-limits has it: the queue by the lowest latency that was seen,
 * kept between two numbers. What it took for the lowest latency is forgotten from time to time,
 * which lets it creep up under constant overload: for comparison.
 */
import { invalid } from '../algorithms/rate.ts'
import { type Bounds, checkBounds, clamped, type Governor, type GovernorState, type Window } from './governor.ts'

export interface VegasOptions extends Partial<Bounds> {
  /** The limit to begin with. Default 20. */
  readonly initial?: number | undefined
  /** How much of each change is made: above 0, at most 1; default 1. */
  readonly smoothing?: number | undefined
  /**
   * The queue below which the limit grows; default: 3 times the whole part of log10 of the limit,
   * at least 3.
   */
  readonly alpha?: ((limit: number) => number) | undefined
  /** The queue above which it falls; default: 6 times the same. */
  readonly beta?: ((limit: number) => number) | undefined
  /** The limit after a queue or a drop; default: less by the same. */
  readonly decrease?: ((limit: number) => number) | undefined
  /**
   * The base latency is measured anew after so many windows for each place of the limit; default
   * 22.5, the middle of what others draw at random.
   */
  readonly probeWindows?: number | undefined
}

export interface VegasState extends GovernorState {
  /** The limit before it is cut to a whole number. */
  readonly exact: number
  readonly baseMs: number
  readonly sinceProbe: number
}

const scaleOf = (limit: number) => Math.max(1, Math.trunc(Math.log10(limit)))

export function vegas(options: VegasOptions = {}): Governor<VegasState> {
  const { min = 1, max = 1_000, initial, smoothing = 1, probeWindows = 22.5 } = options
  const known = ['initial', 'smoothing', 'alpha', 'beta', 'decrease', 'probeWindows']
  const bounds = checkBounds('vegas', { ...options, min, max }, known)
  if (!(smoothing > 0 && smoothing <= 1)) throw invalid('vegas smoothing', smoothing, 'must be above 0 and at most 1')
  if (!(probeWindows > 0)) throw invalid('vegas probeWindows', probeWindows, 'must be above 0')
  const start = clamped(initial ?? 20, bounds)
  return {
    name: 'vegas',
    ...bounds,
    initial: { limit: start, exact: start, reason: 'start', baseMs: 0, sinceProbe: 0 },
    next(state, window) {
      const { latencyMs, ok, dropped } = window
      if (ok + dropped === 0) return state
      const sinceProbe = state.sinceProbe + 1
      // Drops alone have no latency: they lower the limit and say nothing about the base.
      const isMeasured = latencyMs > 0
      if (isMeasured && probeWindows * state.exact <= sinceProbe) return { ...state, baseMs: latencyMs, sinceProbe: 0, reason: 'measured' }
      if (isMeasured && (state.baseMs === 0 || latencyMs < state.baseMs))
        return { ...state, baseMs: latencyMs, sinceProbe, reason: 'faster' }
      const [wanted, reason] = wantedOf(state, window, options)
      const exact = (1 - smoothing) * state.exact + smoothing * clamped(wanted, bounds)
      return { ...state, exact, limit: clamped(Math.trunc(exact), bounds), sinceProbe, reason }
    },
  }
}

function wantedOf({ exact, baseMs }: VegasState, { latencyMs, inflight, dropped }: Window, options: VegasOptions): [number, string] {
  const whole = Math.trunc(exact)
  const scale = scaleOf(whole)
  const { alpha = () => 3 * scale, beta = () => 6 * scale, decrease = (limit: number) => limit - scale } = options
  const queue = Math.ceil(exact * (1 - baseMs / latencyMs))
  if (dropped > 0) return [decrease(exact), 'drops']
  if (inflight * 2 < exact) return [exact, 'not reached']
  if (queue <= scale) return [exact + beta(whole), 'no queue']
  if (queue < alpha(whole)) return [exact + scale, 'short queue']
  if (queue > beta(whole)) return [decrease(exact), 'queue']
  return [exact, 'at rest']
}
