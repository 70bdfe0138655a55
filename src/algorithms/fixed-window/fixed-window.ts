/**
 * Fixed window: time is cut into windows, and each admits so many. See fixed-window.md.
 *
 * State: [startUs, count, atUs]: the window that was counted in, how many it admitted, and when that was written. A count of 0 is
 * no window at all: it equals a key that was never used.
 */
import { type Algorithm, type EncodedState, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, notOurs, onlyOptionsOf, permitsOf, refused } from '../rate.ts'

const START = 0
const COUNT = 1
const AT = 2

export interface FixedWindowOptions {
  /** How many one window admits: whole permits, 1 to 1e9. */
  readonly limit: number
  /** How long a window is: milliseconds or `'10s'`, 1 microsecond to 366 days. */
  readonly window: Duration
  /**
   * Where windows begin. `'epoch'` (default): at whole multiples since 1970, the same for all keys. `'first'`: with the first call of a
   * key. A number: milliseconds after the epoch's windows; `{ window: '1d', anchor: -8 * 3_600_000 }` is midnight in UTC+8.
   */
  readonly anchor?: 'epoch' | 'first' | number
}

/** So many per calendar window: the cheapest count, and the one people can check by hand. */
export function fixedWindow(options: FixedWindowOptions): FixedWindowLimit {
  onlyOptionsOf('fixedWindow', options, ['limit', 'window', 'anchor'])
  const { limit, window, anchor = 'epoch' } = options
  const windowUs = durationUs(window, 'fixedWindow window')
  const figures = [permitsOf(limit, 'fixedWindow limit'), windowUs, anchor === 'first' ? 1 : 0, offsetUs(anchor, windowUs)]
  return limitOf({ type: 'fixedWindow', limit, window, anchor }, (maxAheadUs) => fixedWindowAlgorithm.ruleOf(figures, maxAheadUs))
}

export type FixedWindowLimit = Limit & {
  readonly type: 'fixedWindow'
  readonly limit: number
  readonly window: Duration
  readonly anchor: 'epoch' | 'first' | number
}

/** Where in an epoch window the windows of this anchor begin. */
function offsetUs(anchor: 'epoch' | 'first' | number, windowUs: number): number {
  if (anchor === 'epoch' || anchor === 'first') return 0
  const us = typeof anchor === 'number' ? Math.round(anchor * 1000) : Number.NaN
  if (us / 1000 !== anchor || Math.abs(us) > Number.MAX_SAFE_INTEGER) {
    throw refused('fixedWindow anchor', anchor, "must be 'epoch', 'first' or milliseconds, whole to the microsecond")
  }
  const rest = us % windowUs
  return rest < 0 ? rest + windowUs : rest
}

export interface FixedWindowRule extends Rule {
  /** Whether a window begins with the first call of a key. */
  readonly fromFirst: boolean
  readonly offsetUs: number
}

export const fixedWindowAlgorithm: Algorithm<FixedWindowRule> = {
  type: 'fixedWindow',
  bookable: false,

  words: () => 3,

  fresh(_rule, s, i, nowUs) {
    write(s, i, nowUs, 0, nowUs)
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      repair(written, s, i, nowUs)
      const count = Math.min(counted(written, s, i, nowUs), rule.capacity)
      const dateUs = datedUs(rule, s[i + AT] as number, nowUs)
      write(s, i, windowStartUs(rule, dateUs), count, dateUs)
    }
    return repair(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    return counted(rule, s, i, nowUs) + cost <= rule.capacity ? 0 : untilEndUs(rule, s, i, nowUs)
  },

  take,

  tryTake(rule, s, i, nowUs, cost) {
    const count = s[i + COUNT] as number
    // In the window that was counted in, with the clock running forward, there is only the count to look at.
    if (count === 0 || (s[i + AT] as number) > nowUs || nowUs - (s[i + START] as number) >= rule.windowUs) {
      return tryTakeAnew(rule, s, i, nowUs, cost)
    }
    if (count + cost > rule.capacity) return false
    s[i + COUNT] = count + cost
    s[i + AT] = nowUs
    return true
  },

  enteredUs: (s, i) => s[i + AT] as number,

  give(rule, s, i, nowUs, cost, ofUs) {
    const count = counted(rule, s, i, nowUs)
    const startUs = s[i + START] as number
    if (count === 0 || (ofUs >= 0 && (ofUs < startUs || ofUs >= startUs + rule.windowUs))) return false
    write(s, i, startUs, Math.max(0, count - cost), effectiveUs(s, i, nowUs))
    return true
  },

  cancel: () => false,

  remaining(rule, s, i, nowUs) {
    return Math.max(0, rule.capacity - counted(rule, s, i, nowUs))
  },

  resetUs(rule, s, i, nowUs) {
    // An empty key is idle once its time no longer stands still.
    return counted(rule, s, i, nowUs) === 0 ? effectiveUs(s, i, nowUs) - nowUs : untilEndUs(rule, s, i, nowUs)
  },

  encode(rule, s, i) {
    return `${s[i + COUNT]} ${s[i + START]} ${s[i + AT]} ${rule.numbers}`
  },

  ruleOf(figures, maxAheadUs) {
    const [capacity, windowUs, first, offset] = figures as [number, number, number, number]
    return Object.freeze({
      algorithm: fixedWindowAlgorithm,
      capacity,
      figures: Object.freeze([...figures]),
      numbers: figures.join(' '),
      windowUs,
      maxAheadUs,
      fromFirst: first === 1,
      offsetUs: offset,
    })
  },
}

/** Reads what `encode` wrote: puts down its words and returns the numbers it was written under. Throws on anything else. */
export function decodeFixedWindow(encoded: EncodedState, s: Float64Array, i: number): string {
  const match = typeof encoded === 'string' ? /^(\d+) (-?\d+) (\d+) (\d+ \d+ [01] \d+)$/.exec(encoded) : null
  if (match === null) throw notOurs('fixedWindow', encoded, "must be 'count start time limit window first offset'")
  write(s, i, Number(match[2]), Number(match[1]), Number(match[3]))
  return match[4] as string
}

function tryTakeAnew(rule: FixedWindowRule, s: Float64Array, i: number, nowUs: number, cost: number): boolean {
  repair(rule, s, i, nowUs)
  if (counted(rule, s, i, nowUs) + cost > rule.capacity) return false
  take(rule, s, i, nowUs, cost)
  return true
}

function take(rule: FixedWindowRule, s: Float64Array, i: number, nowUs: number, cost: number): void {
  const count = counted(rule, s, i, nowUs)
  const atUs = effectiveUs(s, i, nowUs)
  write(s, i, count === 0 ? windowStartUs(rule, atUs) : (s[i + START] as number), count + cost, atUs)
}

function write(s: Float64Array, i: number, startUs: number, count: number, atUs: number): void {
  s[i + START] = startUs
  s[i + COUNT] = count
  s[i + AT] = atUs
}

/** An earlier reading of the clock counts as the time of writing. */
function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/** What the present window has admitted: nothing, once the window that was counted in has ended. */
function counted(rule: FixedWindowRule, s: Float64Array, i: number, nowUs: number): number {
  return nowUs >= (s[i + START] as number) + rule.windowUs ? 0 : (s[i + COUNT] as number)
}

function untilEndUs(rule: FixedWindowRule, s: Float64Array, i: number, nowUs: number): number {
  return (s[i + START] as number) + rule.windowUs - nowUs
}

/** The start of the window that a time lies in. Before the first whole window it is negative, which is a time like any other. */
function windowStartUs(rule: FixedWindowRule, atUs: number): number {
  if (rule.fromFirst) return atUs
  return Math.floor((atUs - rule.offsetUs) / rule.windowUs) * rule.windowUs + rule.offsetUs
}

/** What moves to new numbers keeps its date while it counts there, so that two sets of numbers in turn, with windows alike, cannot hold it for ever. */
function datedUs(rule: FixedWindowRule, writtenUs: number, nowUs: number): number {
  return nowUs < windowStartUs(rule, writtenUs) + rule.windowUs ? writtenUs : nowUs
}

/** A state dated more than one window ahead is re-dated: what was counted is counted in the present window. */
function repair(rule: FixedWindowRule, s: Float64Array, i: number, nowUs: number): boolean {
  if ((s[i + AT] as number) - nowUs <= rule.windowUs) return false
  write(s, i, windowStartUs(rule, nowUs), s[i + COUNT] as number, nowUs)
  return true
}
