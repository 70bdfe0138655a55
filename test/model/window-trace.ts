/** Traces of the windows: the same hard calls as for the levels, with numbers of their own. */
import { type Limit, RULE, type Rule } from '../../src/algorithms/algorithm.ts'
import { fixedWindow, slidingLog, slidingWindow } from '../../src/algorithms/all.ts'
import type { WindowKind, WindowNumbers } from '../../src/testing/window-oracle.ts'
import type { Random } from './random.ts'
import { limitName, type TraceScopes } from './run-trace.ts'
import { type SizedNumbers, Trace, type TraceOptions } from './trace.ts'

export type WindowTraceNumbers = WindowNumbers & SizedNumbers
export type WindowTrace = Trace<WindowKind, WindowTraceNumbers>

export const WINDOW_KINDS: readonly WindowKind[] = ['fixedWindow', 'slidingWindow', 'slidingLog']

const SECOND_US = 1_000_000
const DAY_US = 86_400 * SECOND_US
const MAX_WINDOW_US = 366 * DAY_US
const MAX_PERMITS = 1_000_000_000
/** A log of 100,000 is allowed, but a trace of 200 calls does not fill it. */
const LONGEST_LOG = 2_000
const MAX_SLOTS = 100
const MOST_COUNTED = 4_294_967_295

export function windowTrace(kind: WindowKind, seed: number, options: Pick<TraceOptions, 'forwardOnly'> = {}): WindowTrace {
  return new Trace<WindowKind, WindowTraceNumbers>(seed, [kind], {
    ...options,
    numbers: { some: (random) => someWindow(kind, random), varied: (random, numbers) => variedWindow(kind, random, numbers) },
  })
}

export function windowScopes(trace: WindowTrace, name: string): TraceScopes {
  const [kind] = trace.kinds as [WindowKind]
  return trace.palette.map(([numbers]) => ({
    name,
    limits: [{ name: limitName(0), rule: windowRule(kind, numbers as WindowTraceNumbers) }],
  }))
}

export function windowRule(kind: WindowKind, numbers: WindowNumbers): Rule {
  return windowLimit(kind, numbers)[RULE]
}

export function windowLimit(kind: WindowKind, { limit, lengthUs, anchor, slots }: WindowNumbers): Limit {
  const window = `${lengthUs}us` as const
  if (kind === 'fixedWindow') return fixedWindow({ limit, window, anchor: anchor === 'first' ? anchor : anchor / 1000 })
  return kind === 'slidingWindow' ? slidingWindow({ limit, window, slots }) : slidingLog({ limit, window })
}

export function someWindow(kind: WindowKind, random: Random): WindowTraceNumbers {
  const lengthUs = random.weighted<() => number>([
    [25, () => SECOND_US],
    [15, () => random.whole(1, 100)],
    [10, () => random.pick([1, 2, 7, 60, 61])],
    [25, () => random.magnitude(1, MAX_WINDOW_US)],
    [15, () => random.pick([60 * SECOND_US, 3_600 * SECOND_US, DAY_US])],
    [10, () => random.pick([MAX_WINDOW_US, MAX_WINDOW_US - 1])],
  ])()
  return sized(kind, { limit: someLimit(kind, random), lengthUs, anchor: someAnchor(random, lengthUs), slots: someSlots(random) })
}

function someLimit(kind: WindowKind, random: Random): number {
  if (random.chance(0.05)) return 0
  if (kind === 'slidingLog') return random.chance(0.9) ? random.whole(1, 50) : random.magnitude(1, LONGEST_LOG)
  return random.pick([random.whole(1, 12), random.whole(1, 100), random.magnitude(1, MAX_PERMITS), MAX_PERMITS])
}

function someSlots(random: Random): number {
  return random.pick([1, 2, 7, 10, 60, random.whole(1, 20), random.pick([3, MAX_SLOTS])])
}

function someAnchor(random: Random, lengthUs: number): WindowNumbers['anchor'] {
  return random.pick<WindowNumbers['anchor']>([0, 'first', random.whole(0, lengthUs - 1), lengthUs - 1])
}

/** Numbers near the first ones: what a live limiter is usually changed to. */
function variedWindow(kind: WindowKind, random: Random, numbers: WindowTraceNumbers): WindowTraceNumbers {
  const { limit, lengthUs, slots } = numbers
  return sized(kind, {
    ...numbers,
    ...random.pick<Partial<WindowNumbers>>([
      { limit: limit * 2 },
      { limit: Math.ceil(limit / 2) },
      { limit: limit + 1 },
      { limit: 0 },
      { lengthUs: lengthUs * 3 + 1 },
      { lengthUs: Math.ceil(lengthUs / 7) },
      // More slots of the same length.
      { lengthUs: lengthUs * 2, slots: slots * 2 },
      kind === 'slidingLog' ? { limit: 1 } : { slots: someSlots(random), anchor: someAnchor(random, lengthUs) },
    ]),
  })
}

/**
 * The nearest numbers that a limit accepts, with what does not concern this kind left the same
 * everywhere.
 */
function sized(kind: WindowKind, numbers: WindowNumbers): WindowTraceNumbers {
  const limit = Math.min(numbers.limit, kind === 'slidingLog' ? LONGEST_LOG : MAX_PERMITS)
  const slots = kind === 'slidingWindow' ? Math.min(numbers.slots, MAX_SLOTS) : 1
  const lengthUs = dividedBy(slots, Math.min(numbers.lengthUs, MAX_WINDOW_US))
  const anchor = kind !== 'fixedWindow' ? 0 : numbers.anchor === 'first' ? 'first' : numbers.anchor % lengthUs
  const windowUs = kind === 'slidingWindow' ? lengthUs + lengthUs / slots : lengthUs
  const mostUsed = kind === 'slidingLog' ? 2 * Math.max(limit, 1) : MOST_COUNTED
  return { limit, lengthUs, anchor, slots, capacity: limit, windowUs, mostUsed, mostAheadUs: MAX_WINDOW_US }
}

/** The next length, mostly below, that so many slots of whole microseconds fill. */
export function dividedBy(slots: number, lengthUs: number): number {
  return Math.max(slots, lengthUs - (lengthUs % slots))
}
