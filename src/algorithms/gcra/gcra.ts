/**
 * GCRA: one number, the theoretical arrival time (TAT), the moment at which the key is idle again. See gcra.md.
 *
 * State: [tatUs, tatPart], where the part counts over `rule.permits`, the unit in which one permit's interval is exact.
 */
import { type Algorithm, type EncodedState, type Limit, limitOf } from '../algorithm.ts'
import { mulDiv, remainder } from '../arithmetic.ts'
import { carryOver, drainTimeUs, type LevelRule, leftOf, level, levelOfTime, levelRule, levelRuleOf } from '../level.ts'
import { notOurs, onlyOptionsOf, paceOf, permitsOf, type Rate } from '../rate.ts'

const TAT = 0
const PART = 1

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
      clamp(written, s, i, nowUs)
      renumber(written, rule, s, i, nowUs)
    }
    return clamp(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    let us = debtUs(s, i, nowUs) - rule.toleranceUs
    let part = debtPart(s, i, nowUs) - rule.tolerancePart
    if (cost === 1) {
      us += rule.intervalUs
      part += rule.intervalPart
    } else {
      us += mulDiv(cost, rule.periodUs, rule.permits)
      part += remainder[0] as number
    }
    // The part lies between -permits and 2 x permits; any of it beyond a whole microsecond is waited out as one more.
    if (part > 0) us += part > rule.permits ? 2 : 1
    return Math.max(us, 0)
  },

  take(rule, s, i, nowUs, cost) {
    const idle = (s[i + TAT] as number) < nowUs
    const us = (idle ? nowUs : (s[i + TAT] as number)) + mulDiv(cost, rule.periodUs, rule.permits)
    const part = (idle ? 0 : (s[i + PART] as number)) + (remainder[0] as number)
    const carry = part >= rule.permits ? 1 : 0
    s[i + TAT] = us + carry
    s[i + PART] = part - carry * rule.permits
  },

  tryTake(rule, s, i, nowUs, cost) {
    clamp(rule, s, i, nowUs)
    const idle = (s[i + TAT] as number) < nowUs
    let us = idle ? nowUs : (s[i + TAT] as number)
    let part = idle ? 0 : (s[i + PART] as number)
    if (cost === 1) {
      us += rule.intervalUs
      part += rule.intervalPart
    } else {
      us += mulDiv(cost, rule.periodUs, rule.permits)
      part += remainder[0] as number
    }
    if (part >= rule.permits) {
      us += 1
      part -= rule.permits
    }
    const latestUs = nowUs + rule.toleranceUs
    if (us > latestUs || (us === latestUs && part > rule.tolerancePart)) return false
    s[i + TAT] = us
    s[i + PART] = part
    return true
  },

  give(rule, s, i, nowUs, cost, ofUs) {
    if (isIdle(s, i, nowUs) || (ofUs >= 0 && nowUs - ofUs >= rule.windowUs)) return false
    const us = mulDiv(cost, rule.periodUs, rule.permits)
    moveEarlier(rule, s, i, nowUs, us, remainder[0] as number)
    return true
  },

  cancel(rule, s, i, nowUs, cost, ticket) {
    if (isIdle(s, i, nowUs) || !liesAhead(rule, ticket, nowUs)) return false
    let us = mulDiv(cost, rule.periodUs, rule.permits)
    let part = remainder[0] as number
    const afterUs = (s[i + TAT] as number) - (ticket[TAT] as number)
    const afterPart = (s[i + PART] as number) - (ticket[PART] as number)
    if (afterUs > 0 || (afterUs === 0 && afterPart > 0)) {
      us -= afterUs
      part -= afterPart
      if (part < 0) {
        us -= 1
        part += rule.permits
      }
      if (part >= rule.permits) {
        us += 1
        part -= rule.permits
      }
      if (us < 0 || (us === 0 && part === 0)) return false
    }
    moveEarlier(rule, s, i, nowUs, us, part)
    return true
  },

  dueUs(rule, ticket) {
    const us = (ticket[TAT] as number) - rule.toleranceUs
    return (ticket[PART] as number) > rule.tolerancePart ? us + 1 : us
  },

  shorten(rule, ticket, cost) {
    const us = (ticket[TAT] as number) - mulDiv(cost, rule.periodUs, rule.permits)
    const part = (ticket[PART] as number) - (remainder[0] as number)
    return Float64Array.of(part < 0 ? us - 1 : us, part < 0 ? part + rule.permits : part)
  },

  remaining(rule, s, i, nowUs) {
    levelOfTime(rule, debtUs(s, i, nowUs), debtPart(s, i, nowUs))
    return leftOf(rule)
  },

  resetUs(_rule, s, i, nowUs) {
    return debtUs(s, i, nowUs) + (debtPart(s, i, nowUs) > 0 ? 1 : 0)
  },

  encode(rule, s, i) {
    return `${s[i + TAT]} ${rule.numbers}${s[i + PART] === 0 ? '' : ` ${s[i + PART]}`}`
  },

  decode(encoded: EncodedState, s, i) {
    const match = typeof encoded === 'string' ? /^(\d+) (\d+ \d+ \d+)(?: (\d+))?$/.exec(encoded) : null
    if (match === null) throw notOurs('gcra', encoded, "must be 'TAT burst permits periodUs [part]'")
    s[i + TAT] = Number(match[1])
    s[i + PART] = Number(match[3] ?? 0)
    return match[2] as string
  },

  ruleOf(figures, maxAheadUs) {
    return levelRuleOf(gcraAlgorithm, figures, maxAheadUs)
  },
}

function isIdle(s: Float64Array, i: number, nowUs: number): boolean {
  const us = (s[i + TAT] as number) - nowUs
  return us < 0 || (us === 0 && s[i + PART] === 0)
}

/** How far the TAT lies ahead of now, never below zero, as a pair. */
function debtUs(s: Float64Array, i: number, nowUs: number): number {
  const us = (s[i + TAT] as number) - nowUs
  return Math.max(us, 0)
}

function debtPart(s: Float64Array, i: number, nowUs: number): number {
  return (s[i + TAT] as number) >= nowUs ? (s[i + PART] as number) : 0
}

/** Whether a reservation is still to come: its TAT lies more than the tolerance ahead. */
function liesAhead(rule: LevelRule, ticket: Float64Array, nowUs: number): boolean {
  const us = (ticket[TAT] as number) - nowUs - rule.toleranceUs
  return us > 0 || (us === 0 && (ticket[PART] as number) > rule.tolerancePart)
}

/** Moves the TAT (us, part) earlier, but not before now. */
function moveEarlier(rule: LevelRule, s: Float64Array, i: number, nowUs: number, us: number, part: number): void {
  const borrow = (s[i + PART] as number) < part ? 1 : 0
  const tatUs = (s[i + TAT] as number) - us - borrow
  const past = tatUs < nowUs
  s[i + PART] = past ? 0 : (s[i + PART] as number) - part + borrow * rule.permits
  s[i + TAT] = past ? nowUs : tatUs
}

/** No honest TAT lies further ahead than a full burst and the longest booking: one that does comes from a clock that stepped back. */
function clamp(rule: LevelRule, s: Float64Array, i: number, nowUs: number): boolean {
  const furthestUs = nowUs + rule.toleranceUs + rule.maxAheadUs
  const tatUs = s[i + TAT] as number
  if (tatUs < furthestUs || (tatUs === furthestUs && (s[i + PART] as number) <= rule.tolerancePart)) return false
  s[i + TAT] = furthestUs
  s[i + PART] = rule.tolerancePart
  return true
}

function renumber(written: LevelRule, rule: LevelRule, s: Float64Array, i: number, nowUs: number): void {
  levelOfTime(written, debtUs(s, i, nowUs), debtPart(s, i, nowUs))
  carryOver(written, rule)
  const whole = level[0] as number
  const part = level[1] as number
  const upUs = drainTimeUs(rule, whole, part)
  const restPart = remainder[0] as number
  s[i + TAT] = nowUs + upUs - (restPart > 0 ? 1 : 0)
  s[i + PART] = restPart
}
