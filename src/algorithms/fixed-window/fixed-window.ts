/**
 * Fixed window: time is cut into windows, and each admits so many. See fixed-window.md.
 *
 * State: [startUs, endUs, count, atUs]: when the window that is counted in was first charged and when it ends, how many it admitted, and when that was
 * written. The end is kept, because calls under other numbers may have moved it: of two ends the
 * later one stays. A count of 0 is no window at all: it equals a key that was never used.
 */
import { type Algorithm, type Format, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, invalid, MAX_COUNT, MAX_PERIOD_US, MAX_PERMITS, onlyOptionsOf, permitsOf } from '../rate.ts'

const START = 0
const END = 1
const COUNT = 2
const AT = 3
const WORDS = 4

export interface FixedWindowOptions {
  /** How many one window admits: whole permits, 0 (nothing passes) to 1e9. */
  readonly limit: number
  /** How long a window is, `'10s'`: 1 microsecond to 366 days. */
  readonly window: Duration
  /**
   * Where windows begin. `'epoch'` (default): at whole multiples since 1970, the same for all keys.
   * `'first'`: with the first call of a key. A number: milliseconds after the epoch's windows;
   * `{ window: '1d', anchor: -8 * 3_600_000 }` is midnight in UTC+8.
   */
  readonly anchor?: 'epoch' | 'first' | number
}

/** So many per calendar window: the cheapest count, and the one people can check by hand. */
export function fixedWindow(options: FixedWindowOptions): FixedWindowLimit {
  onlyOptionsOf('fixedWindow', options, ['limit', 'window', 'anchor'])
  const { limit, window, anchor = 'epoch' } = options
  const windowUs = durationUs(window, 'fixedWindow window')
  const figures = [permitsOf(limit, 'fixedWindow limit', 0), windowUs, anchor === 'first' ? 1 : 0, offsetUs(anchor, windowUs)]
  return limitOf({ type: 'fixedWindow', limit, window, anchor }, fixedWindowAlgorithm.ruleOf(figures))
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
    throw invalid('fixedWindow anchor', anchor, "must be 'epoch', 'first' or milliseconds, whole to the microsecond")
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
  spaced: false,
  endsAtOnce: true,

  isLimit(figures) {
    const windowUs = figures[1] as number
    const offset = figures[3] as number
    const isWindow = windowUs >= 1 && windowUs <= MAX_PERIOD_US && (figures[0] as number) <= MAX_PERMITS
    return isWindow && (figures[2] === 0 ? offset < windowUs : figures[2] === 1 && offset === 0)
  },

  isState: (_own, s, i) => (s[i + COUNT] as number) <= MAX_COUNT,

  ruleOf(figures) {
    return Object.freeze({
      algorithm: fixedWindowAlgorithm,
      capacity: figures[0] as number,
      figures,
      numbers: figures.join(' '),
      windowUs: figures[1] as number,
      words: WORDS,
      freshWords: WORDS,
      mostUsed: MAX_COUNT,
      fromFirst: figures[2] === 1,
      offsetUs: figures[3] as number,
    })
  },

  /**
   * A state dated more than one window ahead is re-dated: what was counted is counted in the
   * present window.
   */
  repair(own, s, i, nowUs) {
    const lengthUs = Math.max(own.windowUs, (s[i + END] as number) - (s[i + START] as number))
    if ((s[i + AT] as number) - nowUs <= lengthUs) return false
    s[i + START] = nowUs
    s[i + END] = windowStartUs(own, nowUs) + lengthUs
    s[i + AT] = nowUs
    return true
  },

  used,

  untilUs(own, s, i, nowUs, room) {
    return used(own, s, i, nowUs) <= room ? 0 : (s[i + END] as number) - nowUs
  },

  resetUs(own, s, i, nowUs) {
    // An empty key is idle once its time no longer stands still.
    return used(own, s, i, nowUs) === 0 ? effectiveUs(s, i, nowUs) - nowUs : (s[i + END] as number) - nowUs
  },

  /**
   * The window that is counted in ends no sooner than the caller's: other numbers may have ended it
   * in between two of the caller's windows.
   */
  charge(own, to, s, i, nowUs, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    const count = used(own, s, i, nowUs)
    const startUs = to.fromFirst && count > 0 ? (s[i + START] as number) : windowStartUs(to, atUs)
    const endUs = startUs + to.windowUs
    if (count === 0) s[i + START] = atUs
    if (count === 0 || endUs > (s[i + END] as number)) s[i + END] = endUs
    s[i + COUNT] = count + cost
    s[i + AT] = atUs
    return atUs - nowUs
  },

  giveBack(own, s, i, nowUs, cost, ofUs, _charge) {
    const count = used(own, s, i, nowUs)
    if (count === 0 || (ofUs >= 0 && (ofUs < (s[i + START] as number) || ofUs >= (s[i + END] as number)))) return -1
    const given = Math.min(count, cost)
    s[i + COUNT] = count - given
    s[i + AT] = effectiveUs(s, i, nowUs)
    return given
  },

  fields: (_own, s, i) => ({
    count: s[i + COUNT] as number,
    startUs: s[i + START] as number,
    endUs: s[i + END] as number,
    atUs: s[i + AT] as number,
  }),
}

export const fixedWindowFormat: Format = { format: 4, algorithm: fixedWindowAlgorithm, figures: 4 }

/** An earlier reading of the clock counts as the time of writing. */
function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/** The count of the present window: 0 once the window that was counted in has ended. */
function used(_own: FixedWindowRule, s: Float64Array, i: number, nowUs: number): number {
  return nowUs >= (s[i + END] as number) ? 0 : (s[i + COUNT] as number)
}

/**
 * The start of the window that a time lies in. Before the first whole window it is negative, which
 * is a time like any other.
 */
function windowStartUs(rule: FixedWindowRule, atUs: number): number {
  if (rule.fromFirst) return atUs
  return Math.floor((atUs - rule.offsetUs) / rule.windowUs) * rule.windowUs + rule.offsetUs
}
