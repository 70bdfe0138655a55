/**
 * Sliding window: the window is cut into sub-windows (slots) that are counted one by one; the oldest counts by the part of it that the
 * window still overlaps. See sliding-window.md.
 *
 * State: [atUs, slot, full, counts of slots + 1 slots]. `slot` is the number of the slot that `atUs` lies in; its count stands first, those of
 * the slots before it behind it. `full` is the sum of all counts but the oldest one's, so that a decision does not have to add them up.
 *
 * A slot is window / slots long, in lowest terms periodUs / perPeriod microseconds, so slot numbers and offsets are exact for any window:
 * time x perPeriod / periodUs is the slot's number and leaves the offset.
 */
import { type Algorithm, type EncodedState, figuresNamed, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { greatestCommonDivisor, MAX_EXACT, mulAddDivUp, mulDiv, remainder } from '../arithmetic.ts'
import { type Duration, durationUs, notOurs, onlyOptionsOf, permitsOf, refused } from '../rate.ts'

const AT = 0
const SLOT = 1
const FULL = 2
const COUNTS = 3

const DEFAULT_SLOTS = 10
const MAX_SLOTS = 1_000

export interface SlidingWindowOptions {
  /** How many are admitted in a window: whole permits, 1 to 1e9. In any `window - window / slots` never more than that. */
  readonly limit: number
  /** How long the window is: milliseconds or `'10s'`, 1 microsecond to 366 days. */
  readonly window: Duration
  /** Into how many sub-windows it is cut: whole, 1 to 1000, default 10, none shorter than a microsecond. More are smoother and take 8 bytes per key each. */
  readonly slots?: number
}

/** A window that slides in small steps: no burst at the boundary, at a fixed cost per key. */
export function slidingWindow(options: SlidingWindowOptions): SlidingWindowLimit {
  onlyOptionsOf('slidingWindow', options, ['limit', 'window', 'slots'])
  const { limit, window } = options
  const windowUs = durationUs(window, 'slidingWindow window')
  const slots = slotsOf(options.slots === undefined ? Math.min(DEFAULT_SLOTS, windowUs) : options.slots, windowUs)
  const figures = [permitsOf(limit, 'slidingWindow limit'), windowUs, slots]
  return limitOf({ type: 'slidingWindow', limit, window, slots }, (maxAheadUs) => slidingWindowAlgorithm.ruleOf(figures, maxAheadUs))
}

/** Slots shorter than a microsecond would tell nothing apart, and their numbers would not be exact. */
function slotsOf(slots: number, windowUs: number): number {
  if (!Number.isInteger(slots) || slots < 1 || slots > MAX_SLOTS) {
    throw refused('slidingWindow slots', slots, `must be a whole number from 1 to ${MAX_SLOTS}`)
  }
  if (slots > windowUs) throw refused('slidingWindow slots', slots, `must be at most one per microsecond of the window, ${windowUs}`)
  return slots
}

export type SlidingWindowLimit = Limit & {
  readonly type: 'slidingWindow'
  readonly limit: number
  readonly window: Duration
  readonly slots: number
}

export interface SlidingWindowRule extends Rule {
  readonly slots: number
  /** `perPeriod` slots take `periodUs`, in lowest terms. */
  readonly perPeriod: number
  readonly periodUs: number
}

/** What the last `look` saw. */
const seen = { slot: 0, offset: 0, full: 0, oldest: 0 }

export const slidingWindowAlgorithm: Algorithm<SlidingWindowRule> = {
  type: 'slidingWindow',
  bookable: false,

  words: (rule) => COUNTS + rule.slots + 1,

  fresh(rule, s, i, nowUs) {
    s[i + AT] = nowUs
    s[i + SLOT] = mulDiv(nowUs, rule.perPeriod, rule.periodUs)
    s.fill(0, i + FULL, i + COUNTS + rule.slots + 1)
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      repair(written, s, i, nowUs)
      const used = Math.min(usedAt(written, s, i, nowUs), rule.capacity)
      gather(rule, s, i, datedUs(rule, s[i + AT] as number, nowUs), used)
    }
    return repair(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    look(rule, s, i, nowUs)
    return seenToFit(rule, cost) ? 0 : firstFitUs(rule, s, i, rule.capacity - cost) - nowUs
  },

  take(rule, s, i, nowUs, cost) {
    look(rule, s, i, nowUs)
    advance(rule, s, i, nowUs)
    add(s, i, cost)
  },

  tryTake(rule, s, i, nowUs, cost) {
    const time = nowUs * rule.perPeriod
    const offset = time - (s[i + SLOT] as number) * rule.periodUs
    // In the slot that was counted in, with the clock running forward, nothing has left the window: sum and counts are the ones that stand here.
    // Both products are exact, because the larger is at most 2^53 - 1.
    if (offset >= rule.periodUs || time > MAX_EXACT || (s[i + AT] as number) > nowUs) return tryTakeAnew(rule, s, i, nowUs, cost)
    const full = s[i + FULL] as number
    const oldest = s[i + COUNTS + rule.slots] as number
    const room = rule.capacity - cost - full
    if (room < oldest && (room < 0 || room < weighed(rule, oldest, offset))) return false
    s[i + COUNTS] = (s[i + COUNTS] as number) + cost
    s[i + FULL] = full + cost
    s[i + AT] = nowUs
    return true
  },

  enteredUs: (s, i) => s[i + AT] as number,

  give(rule, s, i, nowUs, cost, ofUs) {
    look(rule, s, i, nowUs)
    const newest = ofUs < 0 ? seen.slot : mulDiv(ofUs, rule.perPeriod, rule.periodUs)
    const oldest = ofUs < 0 ? seen.slot - rule.slots : newest
    if (newest > seen.slot || oldest < seen.slot - rule.slots || heldBetween(s, i, oldest, newest) === 0) return false
    advance(rule, s, i, nowUs)
    giveBack(rule, s, i, cost, oldest, newest)
    return true
  },

  cancel: () => false,

  remaining(rule, s, i, nowUs) {
    return Math.max(0, rule.capacity - usedAt(rule, s, i, nowUs))
  },

  resetUs(rule, s, i, nowUs) {
    look(rule, s, i, nowUs)
    const latest = s[i + SLOT] as number
    for (let slot = latest; slot >= seen.slot - rule.slots && slot >= latest - rule.slots; slot--) {
      if ((s[placeOf(s, i, slot)] as number) > 0) return startUs(rule, slot + rule.slots + 1, 0) - nowUs
    }
    // An empty key is idle once its time no longer stands still.
    return effectiveUs(s, i, nowUs) - nowUs
  },

  encode(rule, s, i) {
    const fields: Record<string, string> = { time: `${s[i + AT]}`, limit: rule.numbers }
    for (let slot = (s[i + SLOT] as number) - rule.slots; slot <= (s[i + SLOT] as number); slot++) {
      const count = s[placeOf(s, i, slot)] as number
      if (count > 0) fields[`${slot}`] = `${count}`
    }
    return fields
  },

  ruleOf(figures, maxAheadUs) {
    const [capacity, lengthUs, slots] = figures as [number, number, number]
    const divisor = greatestCommonDivisor(slots, lengthUs)
    const perPeriod = slots / divisor
    const periodUs = lengthUs / divisor
    return Object.freeze({
      algorithm: slidingWindowAlgorithm,
      capacity,
      figures: Object.freeze([...figures]),
      numbers: figures.join(' '),
      // A charge is felt until its slot, the oldest by then, has left the window.
      windowUs: mulAddDivUp(slots + 1, periodUs, 0, perPeriod),
      maxAheadUs,
      slots,
      perPeriod,
      periodUs,
    })
  },
}

/** Reads what `encode` wrote: puts down its words and returns the numbers it was written under. Throws on anything else. */
export function decodeSlidingWindow(encoded: EncodedState, s: Float64Array, i: number): string {
  const { time = '', limit = '', ...slots } = typeof encoded === 'string' ? {} : encoded
  const foreign = notOurs.bind(undefined, 'slidingWindow', encoded, 'must be a hash of time, limit and the count of each slot')
  if (!/^\d+$/.test(time) || !/^[1-9]\d* [1-9]\d* [1-9]\d{0,3}$/.test(limit)) throw foreign()
  const rule = slidingWindowAlgorithm.ruleOf(figuresNamed(limit), 0)
  slidingWindowAlgorithm.fresh(rule, s, i, Number(time))
  for (const [slot, count] of Object.entries(slots)) {
    const age = (s[i + SLOT] as number) - Number(slot)
    if (!/^\d+$/.test(slot) || !/^\d+$/.test(count) || age < 0 || age > rule.slots) throw foreign()
    putCount(rule, s, i, Number(slot), Number(count))
  }
  return limit
}

function tryTakeAnew(rule: SlidingWindowRule, s: Float64Array, i: number, nowUs: number, cost: number): boolean {
  repair(rule, s, i, nowUs)
  look(rule, s, i, nowUs)
  if (!seenToFit(rule, cost)) return false
  advance(rule, s, i, nowUs)
  add(s, i, cost)
  return true
}

function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/** Where the count of a slot stands: the present one's first, the oldest one's last. */
function placeOf(s: Float64Array, i: number, slot: number): number {
  return i + COUNTS + (s[i + SLOT] as number) - slot
}

/** The first microsecond that lies at or behind an offset into a slot. */
function startUs(rule: SlidingWindowRule, slot: number, offset: number): number {
  return mulAddDivUp(slot, rule.periodUs, offset, rule.perPeriod)
}

/** Sees the window as it is now: which slot, how far into it, and the counts of the slots, without changing anything. */
function look(rule: SlidingWindowRule, s: Float64Array, i: number, nowUs: number): void {
  const slot = mulDiv(effectiveUs(s, i, nowUs), rule.perPeriod, rule.periodUs)
  seen.slot = slot
  seen.offset = remainder[0] as number
  seen.full = fullFrom(rule, s, i, slot)
  seen.oldest = slot - rule.slots <= (s[i + SLOT] as number) ? (s[placeOf(s, i, slot - rule.slots)] as number) : 0
}

/** The sum of the counts in the window of a later slot, the oldest one's left out: what has left is subtracted. */
function fullFrom(rule: SlidingWindowRule, s: Float64Array, i: number, slot: number): number {
  const written = s[i + SLOT] as number
  if (slot - written >= rule.slots) return 0
  let full = s[i + FULL] as number
  for (let left = written - rule.slots + 1; left <= slot - rule.slots; left++) full -= s[placeOf(s, i, left)] as number
  return full
}

/** What a count weighs when only the rest of its slot, behind the offset, is still in the window. Rounded up. */
function weighed(rule: SlidingWindowRule, count: number, offset: number): number {
  return count === 0 ? 0 : mulAddDivUp(count, rule.periodUs - offset, 0, rule.periodUs)
}

function usedAt(rule: SlidingWindowRule, s: Float64Array, i: number, nowUs: number): number {
  look(rule, s, i, nowUs)
  return seen.full + weighed(rule, seen.oldest, seen.offset)
}

/** Whether `cost` fits into what the last `look` saw. */
function seenToFit(rule: SlidingWindowRule, cost: number): boolean {
  const room = rule.capacity - cost - seen.full
  return room >= seen.oldest || (room >= 0 && room >= weighed(rule, seen.oldest, seen.offset))
}

/** When no more than `room` is in use: within some slot from the present one on, as its oldest count fades. */
function firstFitUs(rule: SlidingWindowRule, s: Float64Array, i: number, room: number): number {
  const written = s[i + SLOT] as number
  let full = seen.full
  for (let slot = seen.slot; ; slot++) {
    const leaving = slot - rule.slots
    const oldest = leaving <= written ? (s[placeOf(s, i, leaving)] as number) : 0
    if (full <= room) {
      if (full + oldest <= room) return startUs(rule, slot, 0)
      const fadedTo = mulDiv(room - full, rule.periodUs, oldest)
      if (fadedTo > 0) return startUs(rule, slot, rule.periodUs - fadedTo)
    }
    // In the next slot this one's successor is the oldest and no longer full.
    full -= leaving + 1 <= written ? (s[placeOf(s, i, leaving + 1)] as number) : 0
  }
}

/** Counts in the present slot. */
function add(s: Float64Array, i: number, cost: number): void {
  s[i + COUNTS] = (s[i + COUNTS] as number) + cost
  s[i + FULL] = (s[i + FULL] as number) + cost
}

/** Moves the state to what the last `look` saw: counts move back by the slots that have passed, and those that leave the window are gone. */
function advance(rule: SlidingWindowRule, s: Float64Array, i: number, nowUs: number): void {
  const written = s[i + SLOT] as number
  const passed = Math.min(seen.slot - written, rule.slots + 1)
  if (passed > 0) {
    const counts = i + COUNTS
    s.copyWithin(counts + passed, counts, counts + rule.slots + 1 - passed)
    s.fill(0, counts, counts + passed)
  }
  s[i + AT] = effectiveUs(s, i, nowUs)
  s[i + SLOT] = seen.slot
  s[i + FULL] = seen.full
}

/** Starts anew at `atUs` with everything that is used in the slot of that time. */
function gather(rule: SlidingWindowRule, s: Float64Array, i: number, atUs: number, used: number): void {
  slidingWindowAlgorithm.fresh(rule, s, i, atUs)
  putCount(rule, s, i, s[i + SLOT] as number, used)
}

function putCount(rule: SlidingWindowRule, s: Float64Array, i: number, slot: number, count: number): void {
  s[placeOf(s, i, slot)] = count
  if (slot > (s[i + SLOT] as number) - rule.slots) s[i + FULL] = (s[i + FULL] as number) + count
}

function heldBetween(s: Float64Array, i: number, oldest: number, newest: number): number {
  let held = 0
  for (let slot = oldest; slot <= newest && slot <= (s[i + SLOT] as number); slot++) held += s[placeOf(s, i, slot)] as number
  return held
}

/** Takes `cost` out of the slots from the newest to the oldest. */
function giveBack(rule: SlidingWindowRule, s: Float64Array, i: number, cost: number, oldest: number, newest: number): void {
  let left = cost
  for (let slot = newest; slot >= oldest && left > 0; slot--) {
    const place = placeOf(s, i, slot)
    const given = Math.min(left, s[place] as number)
    s[place] = (s[place] as number) - given
    if (slot > (s[i + SLOT] as number) - rule.slots) s[i + FULL] = (s[i + FULL] as number) - given
    left -= given
  }
}

/** What moves to new numbers keeps its date while it counts in full there, so that two sets of numbers in turn, with windows alike, cannot hold it for ever. */
function datedUs(rule: SlidingWindowRule, writtenUs: number, nowUs: number): number {
  const written = mulDiv(writtenUs, rule.perPeriod, rule.periodUs)
  return mulDiv(nowUs, rule.perPeriod, rule.periodUs) - written < rule.slots ? writtenUs : nowUs
}

/** A state dated more than one window ahead is re-dated: what was in use then is counted in the present slot. */
function repair(rule: SlidingWindowRule, s: Float64Array, i: number, nowUs: number): boolean {
  const atUs = s[i + AT] as number
  if (atUs - nowUs <= rule.windowUs) return false
  gather(rule, s, i, nowUs, usedAt(rule, s, i, atUs))
  return true
}
