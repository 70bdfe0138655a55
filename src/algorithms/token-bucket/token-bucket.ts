/**
 * Token bucket: tokens flow in at a steady pace up to the capacity, and each permit takes one out. See token-bucket.md.
 *
 * State: a bucket (../bucket.ts) whose level is the tokens that are missing. People see the tokens that are there.
 */
import { type Algorithm, type EncodedState, figuresNamed, type Limit, limitOf } from '../algorithm.ts'
import { bucket, readBucket, writeBucket } from '../bucket.ts'
import { type LevelRule, level, levelRule, levelRuleOf } from '../level.ts'
import { notOurs, onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

export interface TokenBucketOptions {
  /** How many tokens an idle bucket holds, and so admits at once: whole, 1 to 1e9. */
  readonly capacity: number
  /** The pace at which tokens come back: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10 million per second. */
  readonly refill: Rate
}

/** A steady refill with a bucket to save up in. */
export function tokenBucket(options: TokenBucketOptions): TokenBucketLimit {
  onlyOptionsOf('tokenBucket', options, ['capacity', 'refill'])
  const pace = paceOf(options.refill, 'tokenBucket refill')
  const capacity = permitsOf(options.capacity, 'tokenBucket capacity')
  const compile = (maxAheadUs: number) => levelRule(tokenBucketAlgorithm, capacity, pace, maxAheadUs)
  compile(0)
  return limitOf({ type: 'tokenBucket', capacity: options.capacity, refill: options.refill }, compile)
}

export type TokenBucketLimit = Limit & { readonly type: 'tokenBucket'; readonly capacity: number; readonly refill: Rate }

export const tokenBucketAlgorithm: Algorithm<LevelRule> = {
  ...bucket,
  type: 'tokenBucket',

  encode(rule, s, i) {
    const atUs = readBucket(rule, s, i)
    const [used, part] = level as unknown as [number, number]
    const tokens = rule.capacity - used - (part > 0 ? 1 : 0)
    return { tokens: `${tokens}`, part: `${part > 0 ? rule.periodUs - part : 0}`, time: `${atUs}`, limit: rule.numbers }
  },

  ruleOf(figures, maxAheadUs) {
    return levelRuleOf(tokenBucketAlgorithm, figures, maxAheadUs)
  },
}

/** Reads what `encode` wrote: puts down its words and returns the numbers it was written under. Throws on anything else. */
export function decodeTokenBucket(encoded: EncodedState, s: Float64Array, i: number): string {
  const { tokens, part, time, limit } = fieldsOf(encoded)
  const [capacity, permits, periodUs] = figuresNamed(limit) as [number, number, number]
  if (part > 0) writeBucket({ permits, periodUs }, s, i, capacity - tokens - 1, periodUs - part, time)
  else writeBucket({ permits, periodUs }, s, i, capacity - tokens, 0, time)
  return limit
}

function fieldsOf(encoded: EncodedState): { tokens: number; part: number; time: number; limit: string } {
  const { tokens = '', part = '', time = '', limit = '' } = typeof encoded === 'string' ? {} : encoded
  const ours = /^-?\d+$/.test(tokens) && /^\d+$/.test(part) && /^\d+$/.test(time) && /^\d+ \d+ \d+$/.test(limit)
  if (!ours) throw notOurs('tokenBucket', encoded, 'must be a hash of tokens, part, time and limit')
  return { tokens: Number(tokens), part: Number(part), time: Number(time), limit }
}
