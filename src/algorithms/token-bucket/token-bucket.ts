/**
 * Token bucket: tokens flow in at a steady pace up to the capacity, and each permit takes one out. See token-bucket.md.
 *
 * State: [used, usedPart, atUs]. What is kept is the tokens that are missing, because that is what must survive when the capacity
 * changes; people see tokens (`encode`). The part counts over `rule.periodUs`.
 */
import { type Algorithm, type EncodedState, figuresNamed, type Limit, limitOf } from '../algorithm.ts'
import {
  carryOver,
  cutToCeiling,
  drain,
  drainTimeUs,
  type LevelRule,
  leftOf,
  level,
  levelRule,
  levelRuleOf,
  setLevel,
  subtract,
} from '../level.ts'
import { onlyKnown, paceOf, permitsOf, type Rate, refused } from '../rate.ts'

const USED = 0
const PART = 1
const AT = 2

export interface TokenBucketOptions {
  /** How many tokens an idle bucket holds, and so admits at once: whole, 1 to 1e9. */
  readonly capacity: number
  /** The pace at which tokens come back: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10 million per second. */
  readonly refill: Rate
}

/** A steady refill with a bucket to save up in. */
export function tokenBucket(options: TokenBucketOptions): TokenBucketLimit {
  onlyKnown(options, ['capacity', 'refill', 'type'], 'tokenBucket')
  const pace = paceOf(options.refill, 'tokenBucket refill')
  const capacity = permitsOf(options.capacity, 'tokenBucket capacity')
  const compile = (maxAheadUs: number) => levelRule(tokenBucketAlgorithm, capacity, pace, maxAheadUs)
  compile(0)
  return limitOf({ type: 'tokenBucket', capacity: options.capacity, refill: options.refill }, compile)
}

export type TokenBucketLimit = Limit & { readonly type: 'tokenBucket'; readonly capacity: number; readonly refill: Rate }

export const tokenBucketAlgorithm: Algorithm<LevelRule> = {
  type: 'tokenBucket',
  bookable: true,

  words: () => 3,

  fresh(_rule, s, i, nowUs) {
    write(s, i, 0, 0, nowUs)
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      repair(written, s, i, nowUs)
      usedAt(written, s, i, nowUs)
      carryOver(written, rule)
      write(s, i, level[0] as number, level[1] as number, effectiveUs(s, i, nowUs))
    }
    return repair(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    usedAt(rule, s, i, nowUs)
    const over = (level[0] as number) + cost - rule.capacity
    const part = level[1] as number
    if (over < 0 || (over === 0 && part === 0)) return 0
    return effectiveUs(s, i, nowUs) - nowUs + drainTimeUs(rule, over, part)
  },

  take(rule, s, i, nowUs, cost) {
    usedAt(rule, s, i, nowUs)
    write(s, i, (level[0] as number) + cost, level[1] as number, effectiveUs(s, i, nowUs))
  },

  give(rule, s, i, nowUs, cost, ofUs) {
    if (ofUs >= 0 && nowUs - ofUs >= rule.windowUs) return false
    return giveBack(rule, s, i, nowUs, cost, 0)
  },

  cancel(rule, s, i, nowUs, cost, ticket) {
    const effective = effectiveUs(s, i, nowUs)
    drain(rule, ticket[USED] as number, ticket[PART] as number, effective - (ticket[AT] as number))
    const markWhole = level[0] as number
    const markPart = level[1] as number
    if (markWhole < rule.capacity || (markWhole === rule.capacity && markPart === 0)) return false
    usedAt(rule, s, i, nowUs)
    subtract(rule, level[0] as number, level[1] as number, markWhole, markPart)
    subtract(rule, cost, 0, level[0] as number, level[1] as number)
    return giveBack(rule, s, i, nowUs, level[0] as number, level[1] as number)
  },

  remaining(rule, s, i, nowUs) {
    usedAt(rule, s, i, nowUs)
    return leftOf(rule)
  },

  resetUs(rule, s, i, nowUs) {
    usedAt(rule, s, i, nowUs)
    return effectiveUs(s, i, nowUs) - nowUs + drainTimeUs(rule, level[0] as number, level[1] as number)
  },

  encode(rule, s, i) {
    const part = s[i + PART] as number
    const tokens = rule.capacity - (s[i + USED] as number) - (part > 0 ? 1 : 0)
    return { tokens: `${tokens}`, part: `${part > 0 ? rule.periodUs - part : 0}`, time: `${s[i + AT]}`, limit: rule.numbers }
  },

  decode(encoded: EncodedState, s, i) {
    const { tokens, part, time, limit } = fieldsOf(encoded)
    const written = levelRuleOf(tokenBucketAlgorithm, figuresNamed(limit), 0)
    const missingPart = Number(part)
    write(
      s,
      i,
      written.capacity - Number(tokens) - (missingPart > 0 ? 1 : 0),
      missingPart > 0 ? written.periodUs - missingPart : 0,
      Number(time),
    )
    return limit
  },

  ruleOf(figures, maxAheadUs) {
    return levelRuleOf(tokenBucketAlgorithm, figures, maxAheadUs)
  },
}

function write(s: Float64Array, i: number, used: number, part: number, atUs: number): void {
  s[i + USED] = used
  s[i + PART] = part
  s[i + AT] = atUs
}

/** An earlier reading of the clock counts as the time of writing: time stands still until the clock has caught up. */
function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  const atUs = s[i + AT] as number
  return Math.max(atUs, nowUs)
}

/** Leaves in `level` what is in use now. */
function usedAt(rule: LevelRule, s: Float64Array, i: number, nowUs: number): void {
  drain(rule, s[i + USED] as number, s[i + PART] as number, nowUs - (s[i + AT] as number))
}

function giveBack(rule: LevelRule, s: Float64Array, i: number, nowUs: number, whole: number, part: number): boolean {
  usedAt(rule, s, i, nowUs)
  if ((whole === 0 && part === 0) || (level[0] === 0 && level[1] === 0)) return false
  subtract(rule, level[0] as number, level[1] as number, whole, part)
  write(s, i, level[0] as number, level[1] as number, effectiveUs(s, i, nowUs))
  return true
}

/** A state dated more than one window ahead is re-dated to now, and one above the ceiling is cut down to it. */
function repair(rule: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  const redated = (s[i + AT] as number) - nowUs > rule.windowUs
  if (redated) s[i + AT] = nowUs
  setLevel(s[i + USED] as number, s[i + PART] as number)
  if (!cutToCeiling(rule)) return redated
  write(s, i, level[0] as number, level[1] as number, s[i + AT] as number)
  return true
}

function fieldsOf(encoded: EncodedState): { tokens: string; part: string; time: string; limit: string } {
  const { tokens = '', part = '', time = '', limit = '' } = typeof encoded === 'string' ? {} : encoded
  const ours = /^-?\d+$/.test(tokens) && /^\d+$/.test(part) && /^\d+$/.test(time) && /^\d+ \d+ \d+$/.test(limit)
  if (!ours) throw refused('tokenBucket state', encoded, 'must be a hash of tokens, part, time and limit')
  return { tokens, part, time, limit }
}
