/**
 * GCRA: one number, the theoretical arrival time (TAT), the moment at which the key is idle again.
 * See gcra.md.
 *
 * State: a level (../level.ts). Only a level above the capacity, booked ahead, carries its date,
 * until it is written again below it; otherwise the date is -1. Without a date an earlier reading
 * of the clock sees a higher level, up to the capacity that the state was written under.
 */
import { type Algorithm, type Format, type Limit, limitOf } from '../algorithm.ts'
import {
  cutToCapacity,
  dateIfBooked,
  isBelowCapacity,
  isDated,
  isWithinCapacity,
  type LevelRule,
  levelCancel,
  levelCharge,
  levelDueUs,
  levelFields,
  levelGiveBack,
  levelGiveRest,
  levelRepair,
  levelResetUs,
  levelRule,
  levelUntilUs,
  levelUsed,
  reachedUs,
  shorten,
} from '../level.ts'
import { levelFigures, onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

export interface GcraOptions {
  /**
   * The steady pace: `'10/s'`, `'100/min'`, `'5/10s'` or `{ permits, per }`. At most 10 million per
   * second.
   */
  readonly rate: Rate
  /** The permits that an idle key admits at once: whole, 1 to 1e9. */
  readonly burst: number
}

/** A steady pace with a burst, in one number per key: the default choice. */
export function gcra(options: GcraOptions): GcraLimit {
  onlyOptionsOf('gcra', options, ['rate', 'burst'])
  const pace = paceOf(options.rate, 'gcra rate')
  const capacity = permitsOf(options.burst, 'gcra burst')
  const rule = gcraAlgorithm.ruleOf(levelFigures(capacity, pace))
  return limitOf({ type: 'gcra', rate: options.rate, burst: options.burst }, rule)
}

export type GcraLimit = Limit & { readonly type: 'gcra'; readonly rate: Rate; readonly burst: number }

export const gcraAlgorithm: Algorithm<LevelRule> = {
  type: 'gcra',
  bookable: true,
  spaced: false,

  ruleOf: (figures) => levelRule(gcraAlgorithm, figures),

  repair(own, s, i, nowUs) {
    // Mostly the level is below the capacity. Then it needs no date, and one that it has is not
    // ahead of now by a window: a TAT is never before its date.
    return !isBelowCapacity(own, s, i, nowUs) && redate(own, s, i, nowUs)
  },

  used: levelUsed,
  untilUs: levelUntilUs,
  resetUs: levelResetUs,
  dueUs: levelDueUs,

  charge(own, to, s, i, nowUs, cost) {
    const lateUs = levelCharge(own, to, s, i, nowUs, cost)
    dateIfBooked(to, s, i, nowUs)
    return lateUs
  },

  giveBack(own, s, i, nowUs, cost, ofUs, booked) {
    const given =
      booked === undefined
        ? levelGiveBack(own, s, i, nowUs, cost, ofUs)
        : levelCancel(own, s, i, nowUs, cost, booked, booked.rule.toleranceUs, booked.rule.tolerancePart)
    if (given >= 0) dateIfBooked(own, s, i, nowUs)
    return given
  },

  giveRest(own, s, i, nowUs, cost, left) {
    const given = levelGiveRest(own, s, i, nowUs, cost, left)
    if (given >= 0) dateIfBooked(own, s, i, nowUs)
    return given
  },

  actUs: (rule, ticket) => reachedUs(ticket, rule.toleranceUs, rule.tolerancePart),
  shorten,

  fields: (_own, s, i) => levelFields(s, i),
}

export const gcraFormat: Format = { format: 1, algorithm: gcraAlgorithm, figures: 3 }

function redate(own: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  if (!isDated(s, i)) return !isWithinCapacity(own, s, i, nowUs) && cutToCapacity(own, s, i, nowUs)
  if (!levelRepair(own, s, i, nowUs)) return false
  dateIfBooked(own, s, i, nowUs)
  return true
}
