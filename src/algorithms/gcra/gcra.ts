/**
 * GCRA: one number, the theoretical arrival time (TAT), the moment at which the key is idle again.
 * See gcra.md. State: a level (../level.ts).
 */
import { type Algorithm, type Format, type Limit, limitOf } from '../algorithm.ts'
import { bookedAhead, keptRule } from '../kept-pace.ts'
import {
  isLevel,
  isLevelState,
  type LevelRule,
  levelCharge,
  levelFields,
  levelGiveBack,
  levelMovesInUs,
  levelRepair,
  levelResetUs,
  levelRule,
  levelUntilUs,
  levelUsed,
} from '../level.ts'
import { onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

export interface GcraOptions {
  /**
   * The steady pace: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10 million per
   * second.
   */
  readonly rate: Rate
  /** The permits that an idle key admits at once: whole, 0 (nothing passes) to 1e9. */
  readonly burst: number
}

/** A steady pace with a burst, in one number per key: the default choice. */
export function gcra(options: GcraOptions): GcraLimit {
  onlyOptionsOf('gcra', options, ['rate', 'burst'])
  const pace = paceOf(options.rate, 'gcra rate', 'burst')
  const capacity = permitsOf(options.burst, 'gcra burst', 0)
  const rule = keptRule(gcraAlgorithm, capacity, pace)
  return limitOf({ type: 'gcra', rate: options.rate, burst: options.burst }, rule)
}

export type GcraLimit = Limit & { readonly type: 'gcra'; readonly rate: Rate; readonly burst: number }

export const gcraAlgorithm: Algorithm<LevelRule> = {
  type: 'gcra',
  bookable: true,
  spaced: false,

  isLimit: isLevel,
  isState: isLevelState,
  bookedAhead,
  ruleOf: (figures) => levelRule(gcraAlgorithm, figures),
  repair: levelRepair,
  used: levelUsed,
  untilUs: levelUntilUs,
  movesInUs: levelMovesInUs,
  resetUs: levelResetUs,
  charge: levelCharge,
  giveBack: levelGiveBack,

  fields: (_own, s, i) => levelFields(s, i),
}

export const gcraFormat: Format = { format: 1, algorithm: gcraAlgorithm, figures: 3 }
