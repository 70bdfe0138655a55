/**
 * Leaky bucket: every permit is water poured into a level that leaks at a steady pace; what does
 * not fit is refused. See leaky-bucket.md.
 *
 * State: a level (../level.ts) whose level is the water. As a meter it decides like a token bucket;
 * as a queue it also says how long to wait for the water that was there before (`delayMs`), so that
 * departures are evenly spaced.
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

export interface LeakyBucketOptions {
  /**
   * How much water the bucket holds, and so how many may stand in the queue: whole permits, 0
   * (nothing passes) to 1e9.
   */
  readonly capacity: number
  /**
   * The pace at which it leaks: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10
   * million per second.
   */
  readonly leak: Rate
}

/** A queue that drains at a steady pace: callers that wait out `delayMs` leave it evenly spaced. */
export function leakyBucket(options: LeakyBucketOptions): LeakyBucketLimit {
  onlyOptionsOf('leakyBucket', options, ['capacity', 'leak'])
  const pace = paceOf(options.leak, 'leakyBucket leak', 'capacity')
  const capacity = permitsOf(options.capacity, 'leakyBucket capacity', 0)
  const rule = keptRule(leakyBucketAlgorithm, capacity, pace)
  return limitOf({ type: 'leakyBucket', capacity: options.capacity, leak: options.leak }, rule)
}

export type LeakyBucketLimit = Limit & { readonly type: 'leakyBucket'; readonly capacity: number; readonly leak: Rate }

export const leakyBucketAlgorithm: Algorithm<LevelRule> = {
  type: 'leakyBucket',
  bookable: true,
  spaced: true,

  isLimit: isLevel,
  isState: isLevelState,
  bookedAhead,
  ruleOf: (figures) => levelRule(leakyBucketAlgorithm, figures),
  repair: levelRepair,
  used: levelUsed,
  untilUs: levelUntilUs,
  movesInUs: levelMovesInUs,
  resetUs: levelResetUs,

  charge: levelCharge,
  giveBack: levelGiveBack,

  fields(own, s, i) {
    const { whole, part, atUs } = levelInPermits(own, s, i)
    return { water: whole, part, atUs }
  },
}

export const leakyBucketFormat: Format = { format: 3, algorithm: leakyBucketAlgorithm, figures: 3 }
