/**
 * Leaky bucket: every permit is water poured into a bucket that leaks at a steady pace; what does not fit is refused. See leaky-bucket.md.
 *
 * State: a bucket (../bucket.ts) whose level is the water. As a meter it decides like a token bucket; as a queue it also says how long
 * to wait for the water that was there before (`delayMs`), so that departures are evenly spaced.
 */
import { type Algorithm, type EncodedState, figuresNamed, type Limit, limitOf } from '../algorithm.ts'
import { mulDiv, remainder } from '../arithmetic.ts'
import { bucket, cancelAhead, effectiveUs, readBucket, writeBucket } from '../bucket.ts'
import { drainedInUs, type LevelRule, level, levelRule, levelRuleOf, reachedUs } from '../level.ts'
import { notOurs, onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

export interface LeakyBucketOptions {
  /** How much water the bucket holds, and so how many may stand in the queue: whole permits, 1 to 1e9. */
  readonly capacity: number
  /** The pace at which it leaks: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10 million per second. */
  readonly leak: Rate
}

/** A queue that drains at a steady pace: whoever honours `delayMs` leaves it evenly spaced. */
export function leakyBucket(options: LeakyBucketOptions): LeakyBucketLimit {
  onlyOptionsOf('leakyBucket', options, ['capacity', 'leak'])
  const pace = paceOf(options.leak, 'leakyBucket leak')
  const capacity = permitsOf(options.capacity, 'leakyBucket capacity')
  const compile = (maxAheadUs: number) => levelRule(leakyBucketAlgorithm, capacity, pace, maxAheadUs)
  compile(0)
  return limitOf({ type: 'leakyBucket', capacity: options.capacity, leak: options.leak }, compile)
}

export type LeakyBucketLimit = Limit & { readonly type: 'leakyBucket'; readonly capacity: number; readonly leak: Rate }

export const leakyBucketAlgorithm: Algorithm<LevelRule> = {
  ...bucket,
  type: 'leakyBucket',

  /** Whoever pours in now acts when the water that is there already has leaked. No water, no delay, even while time stands still. */
  delayUs(_rule, s, i, nowUs) {
    const atUs = effectiveUs(s, i, nowUs)
    const leakedInUs = drainedInUs(s, i, atUs)
    return leakedInUs === 0 ? 0 : leakedInUs + atUs - nowUs
  },

  /** Its time comes when only its own water is left of what was there. */
  cancel(rule, s, i, nowUs, cost, ticket) {
    const costUs = mulDiv(cost, rule.periodUs, rule.permits)
    return cancelAhead(rule, s, i, nowUs, cost, ticket, costUs, remainder[0] as number)
  },

  dueUs(rule, ticket, cost) {
    const costUs = mulDiv(cost, rule.periodUs, rule.permits)
    return reachedUs(ticket, costUs, remainder[0] as number)
  },

  encode(rule, s, i) {
    const atUs = readBucket(rule, s, i)
    return { water: `${level[0]}`, part: `${level[1]}`, time: `${atUs}`, limit: rule.numbers }
  },

  ruleOf(figures, maxAheadUs) {
    return levelRuleOf(leakyBucketAlgorithm, figures, maxAheadUs)
  },
}

/** Reads what `encode` wrote: puts down its words and returns the numbers it was written under. Throws on anything else. */
export function decodeLeakyBucket(encoded: EncodedState, s: Float64Array, i: number): string {
  const { water = '', part = '', time = '', limit = '' } = typeof encoded === 'string' ? {} : encoded
  if (![water, part, time].every((text) => /^\d+$/.test(text)) || !/^\d+ \d+ \d+$/.test(limit)) {
    throw notOurs('leakyBucket', encoded, 'must be a hash of water, part, time and limit')
  }
  const [, permits, periodUs] = figuresNamed(limit) as [number, number, number]
  writeBucket({ permits, periodUs }, s, i, Number(water), Number(part), Number(time))
  return limit
}
