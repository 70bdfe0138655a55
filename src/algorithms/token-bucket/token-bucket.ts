/**
 * Token bucket: tokens flow in at a steady pace up to the capacity, and each permit takes one out.
 * See token-bucket.md.
 *
 * State: a level (../level.ts) whose level is the tokens that are missing. People see the tokens
 * that are there.
 */
import { type Algorithm, type Format, type Limit, limitOf } from '../algorithm.ts'
import { bookedAhead, keptRule } from '../kept-pace.ts'
import {
  isLevel,
  isLevelState,
  type LevelRule,
  levelCharge,
  levelGiveBack,
  levelInPermits,
  levelMovesInUs,
  levelRepair,
  levelResetUs,
  levelRule,
  levelUntilUs,
  levelUsed,
} from '../level.ts'
import { onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

export interface TokenBucketOptions {
  /** How many tokens an idle bucket holds and admits at once: whole, 0 (nothing passes) to 1e9. */
  readonly capacity: number
  /**
   * The pace at which tokens come back: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At
   * most 10 million per second.
   */
  readonly refill: Rate
}

/** A steady refill with a bucket to save up in. */
export function tokenBucket(options: TokenBucketOptions): TokenBucketLimit {
  onlyOptionsOf('tokenBucket', options, ['capacity', 'refill'])
  const pace = paceOf(options.refill, 'tokenBucket refill', 'capacity')
  const capacity = permitsOf(options.capacity, 'tokenBucket capacity', 0)
  const rule = keptRule(tokenBucketAlgorithm, capacity, pace)
  return limitOf({ type: 'tokenBucket', capacity: options.capacity, refill: options.refill }, rule)
}

export type TokenBucketLimit = Limit & { readonly type: 'tokenBucket'; readonly capacity: number; readonly refill: Rate }

export const tokenBucketAlgorithm: Algorithm<LevelRule> = {
  type: 'tokenBucket',
  bookable: true,
  spaced: false,

  isLimit: isLevel,
  isState: isLevelState,
  bookedAhead,
  ruleOf: (figures) => levelRule(tokenBucketAlgorithm, figures),
  repair: levelRepair,
  used: levelUsed,
  untilUs: levelUntilUs,
  movesInUs: levelMovesInUs,
  resetUs: levelResetUs,
  charge: levelCharge,
  giveBack: levelGiveBack,

  fields(own, s, i) {
    const { whole, part, atUs } = levelInPermits(own, s, i)
    const tokens = own.capacity - whole - (part > 0 ? 1 : 0)
    return { tokens, part: part > 0 ? own.periodUs - part : 0, atUs }
  },
}

export const tokenBucketFormat: Format = { format: 2, algorithm: tokenBucketAlgorithm, figures: 3 }
