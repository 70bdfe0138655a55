/**
 * GCRA: one number, the theoretical arrival time (TAT), the moment at which the key is idle again. See gcra.md.
 *
 * State: a level (../level.ts) and nothing else: [tatUs, part].
 */
import { type Algorithm, type EncodedState, type Limit, limitOf } from '../algorithm.ts'
import {
  charge,
  chargeIfFits,
  cutToCeiling,
  drainedInUs,
  fitsInUs,
  giveBack,
  giveBackTo,
  type LevelRule,
  left,
  levelRule,
  levelRuleOf,
  PART,
  reachedUs,
  renumber,
  shorten,
  TAT,
} from '../level.ts'
import { notOurs, onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

export interface GcraOptions {
  /** The steady pace: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10 million per second. */
  readonly rate: Rate
  /** What an idle key admits at once: whole permits, 1 to 1e9. */
  readonly burst: number
}

/** A steady pace with a burst, in one number per key: the default choice. */
export function gcra(options: GcraOptions): GcraLimit {
  onlyOptionsOf('gcra', options, ['rate', 'burst'])
  const pace = paceOf(options.rate, 'gcra rate')
  const capacity = permitsOf(options.burst, 'gcra burst')
  const compile = (maxAheadUs: number) => levelRule(gcraAlgorithm, capacity, pace, maxAheadUs)
  compile(0)
  return limitOf({ type: 'gcra', rate: options.rate, burst: options.burst }, compile)
}

export type GcraLimit = Limit & { readonly type: 'gcra'; readonly rate: Rate; readonly burst: number }

export const gcraAlgorithm: Algorithm<LevelRule> = {
  type: 'gcra',
  bookable: true,

  words: () => 2,

  fresh(_rule, s, i, nowUs) {
    s[i + TAT] = nowUs
    s[i + PART] = 0
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      cutToCeiling(written, s, i, nowUs)
      renumber(written, rule, s, i, nowUs)
    }
    return cutToCeiling(rule, s, i, nowUs) || renumbered
  },

  waitUs: fitsInUs,

  take: charge,

  tryTake: chargeIfFits,

  enteredUs: (_s, _i, nowUs) => nowUs,

  give(rule, s, i, nowUs, cost, ofUs) {
    if (ofUs >= 0 && nowUs - ofUs >= rule.windowUs) return false
    return giveBack(rule, s, i, nowUs, cost)
  },

  cancel(rule, s, i, nowUs, cost, ticket) {
    const aheadUs = (ticket[TAT] as number) - nowUs
    const part = ticket[PART] as number
    // Its time has come when its TAT lies no more than the tolerance ahead.
    if (aheadUs < rule.toleranceUs || (aheadUs === rule.toleranceUs && part <= rule.tolerancePart)) return false
    return giveBackTo(rule, s, i, nowUs, cost, aheadUs, part)
  },

  dueUs: (rule, ticket) => reachedUs(ticket, rule.toleranceUs, rule.tolerancePart),

  shorten,

  remaining: left,

  resetUs: (_rule, s, i, nowUs) => drainedInUs(s, i, nowUs),

  encode(rule, s, i) {
    return `${s[i + TAT]} ${rule.numbers}${s[i + PART] === 0 ? '' : ` ${s[i + PART]}`}`
  },

  ruleOf(figures, maxAheadUs) {
    return levelRuleOf(gcraAlgorithm, figures, maxAheadUs)
  },
}

/** Reads what `encode` wrote: puts down its words and returns the numbers it was written under. Throws on anything else. */
export function decodeGcra(encoded: EncodedState, s: Float64Array, i: number): string {
  const match = typeof encoded === 'string' ? /^(\d+) (\d+ \d+ \d+)(?: (\d+))?$/.exec(encoded) : null
  if (match === null) throw notOurs('gcra', encoded, "must be 'TAT burst permits periodUs [part]'")
  s[i + TAT] = Number(match[1])
  s[i + PART] = Number(match[3] ?? 0)
  return match[2] as string
}
