/**
 * Sliding window: the window is cut into sub-windows (slots) that are counted one by one; the
 * oldest counts by the part of it that the window still overlaps. See sliding-window.md.
 *
 * State: [atUs, slot, full, counts of slots + 1 slots]. `slot` is the number of the slot that `atUs` lies in. The counts are a ring: that of slot n
 * stands at n modulo slots + 1, so that nothing has to move when a slot passes. `full` is the sum
 * of all counts but the oldest one's, so that a decision does not have to add them up: it reads two
 * counts and writes one, and those of the slots that have passed since.
 *
 * A slot is a whole number of microseconds: time / slotUs is the slot's number and leaves the
 * offset.
 */
import { shown } from '../../errors.ts'
import { type Algorithm, type Format, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { mulAddDivUp, mulDiv } from '../arithmetic.ts'
import { type Duration, durationUs, invalid, MAX_COUNT, MAX_PERIOD_US, MAX_PERMITS, onlyOptionsOf, permitsOf } from '../rate.ts'
import { clearWords } from '../words.ts'

const AT = 0
const SLOT = 1
const FULL = 2
const COUNTS = 3

const DEFAULT_SLOTS = 10
const MAX_SLOTS = 100

export interface SlidingWindowOptions {
  /**
   * How many are admitted in a window: whole permits, 0 (nothing passes) to 1e9. In any
   * `window - window / slots` never more than that.
   */
  readonly limit: number
  /** How long the window is, `'10s'`: 1 microsecond to 366 days. */
  readonly window: Duration
  /**
   * Into how many sub-windows it is cut: 1 to 100, each a whole number of microseconds. Default:
   * 10, or the next smaller count that divides the window. More are smoother and take 8 bytes per
   * key each.
   */
  readonly slots?: number
}

/** A window that slides in small steps: no burst at the boundary, at a fixed cost per key. */
export function slidingWindow(options: SlidingWindowOptions): SlidingWindowLimit {
  onlyOptionsOf('slidingWindow', options, ['limit', 'window', 'slots'])
  const { limit, window } = options
  const windowUs = durationUs(window, 'slidingWindow window')
  const slots = options.slots === undefined ? nearestBelow(DEFAULT_SLOTS, windowUs) : slotsOf(options.slots, windowUs, window)
  const figures = [permitsOf(limit, 'slidingWindow limit', 0), windowUs, slots]
  return limitOf({ type: 'slidingWindow', limit, window, slots }, slidingWindowAlgorithm.ruleOf(figures))
}

function slotsOf(slots: number, windowUs: number, window: Duration): number {
  if (!Number.isInteger(slots) || slots < 1 || slots > MAX_SLOTS) {
    throw invalid('slidingWindow slots', slots, `must be a whole number from 1 to ${MAX_SLOTS}`)
  }
  if (windowUs % slots === 0) return slots
  const [fewer, more] = [nearestBelow(slots, windowUs), nearestAbove(slots, windowUs)]
  const nearest = more === undefined ? `${fewer} does` : `the nearest that do are ${fewer} and ${more}`
  throw invalid('slidingWindow slots', slots, `must cut the window ${shown(window)} into whole microseconds: ${nearest}`)
}

/** The largest count up to this one that divides the window. */
function nearestBelow(slots: number, windowUs: number): number {
  let count = slots
  while (windowUs % count !== 0) count -= 1
  return count
}

function nearestAbove(slots: number, windowUs: number): number | undefined {
  for (let count = slots + 1; count <= MAX_SLOTS; count++) if (windowUs % count === 0) return count
  return undefined
}

export type SlidingWindowLimit = Limit & {
  readonly type: 'slidingWindow'
  readonly limit: number
  readonly window: Duration
  readonly slots: number
}

export interface SlidingWindowRule extends Rule {
  readonly slots: number
  readonly slotUs: number
}

/**
 * The result of the last `look`: the present slot, how far into it, and the counts of the slots in
 * full and of the oldest one.
 */
const seen: Float64Array = new Float64Array(4)
const SEEN_SLOT = 0
const SEEN_OFFSET = 1
const SEEN_FULL = 2
const SEEN_OLDEST = 3

export const slidingWindowAlgorithm: Algorithm<SlidingWindowRule> = {
  type: 'slidingWindow',
  bookable: false,
  spaced: false,

  isLimit(figures) {
    const windowUs = figures[1] as number
    const slots = figures[2] as number
    const isWindow = windowUs >= 1 && windowUs <= MAX_PERIOD_US && (figures[0] as number) <= MAX_PERMITS
    return isWindow && slots >= 1 && slots <= MAX_SLOTS && windowUs % slots === 0
  },

  isState: (_own, s, i) => (s[i + FULL] as number) <= MAX_COUNT,

  ruleOf(figures) {
    const slots = figures[2] as number
    const slotUs = Math.floor((figures[1] as number) / slots)
    return Object.freeze({
      algorithm: slidingWindowAlgorithm,
      capacity: figures[0] as number,
      figures,
      numbers: figures.join(' '),
      // A charge is felt until its slot, the oldest by then, has left the window.
      windowUs: (slots + 1) * slotUs,
      words: COUNTS + slots + 1,
      freshWords: COUNTS + slots + 1,
      mostUsed: MAX_COUNT,
      slots,
      slotUs,
    })
  },

  /**
   * A state dated more than one window ahead is re-dated: what was in use then is counted in the
   * present slot.
   */
  repair(own, s, i, nowUs) {
    const atUs = s[i + AT] as number
    if (atUs - nowUs <= own.windowUs) return false
    gather(own, s, i, nowUs, used(own, s, i, atUs))
    return true
  },

  used,

  untilUs(own, s, i, nowUs, room) {
    // The sum in the window when it was written is the most that can be in it now, whatever the
    // time.
    if ((s[i + FULL] as number) + (s[placeOf(own, i, (s[i + SLOT] as number) - own.slots)] as number) <= room) return 0
    look(own, s, i, nowUs)
    const beside = room - (seen[SEEN_FULL] as number)
    const oldest = seen[SEEN_OLDEST] as number
    if (beside >= oldest || (beside >= 0 && beside >= weighed(own, oldest, seen[SEEN_OFFSET] as number))) return 0
    return firstFitUs(own, s, i, room) - nowUs
  },

  /** When the newest count has left. An empty key is idle once its time no longer stands still. */
  resetUs(own, s, i, nowUs) {
    const atUs = effectiveUs(s, i, nowUs)
    return Math.max(atUs, newestLeavesUs(own, s, i)) - nowUs
  },

  /** Under other slots everything that is in use goes into the present one. */
  charge(own, to, s, i, nowUs, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    moveTo(own, to, s, i, nowUs, atUs)
    const present = placeOf(to, i, s[i + SLOT] as number)
    s[present] = (s[present] as number) + cost
    s[i + FULL] = (s[i + FULL] as number) + cost
    return atUs - nowUs
  },

  giveBack(own, s, i, nowUs, cost, ofUs, _charge) {
    look(own, s, i, nowUs)
    const present = seen[SEEN_SLOT] as number
    const newest = ofUs < 0 ? present : slotAt(own, ofUs)
    const oldest = ofUs < 0 ? present - own.slots : newest
    if (newest > present || oldest < present - own.slots) return -1
    if ((ofUs < 0 ? (seen[SEEN_FULL] as number) + (seen[SEEN_OLDEST] as number) : countOf(own, s, i, newest)) === 0) return -1
    advance(own, s, i, effectiveUs(s, i, nowUs), present)
    return takeOut(own, s, i, cost, oldest, newest)
  },

  fields(own, s, i) {
    const fields: Record<string, number> = { atUs: s[i + AT] as number }
    for (let slot = (s[i + SLOT] as number) - own.slots; slot <= (s[i + SLOT] as number); slot++) {
      const count = s[placeOf(own, i, slot)] as number
      if (count > 0) fields[`${slot}`] = count
    }
    return fields
  },
}

export const slidingWindowFormat: Format = { format: 7, algorithm: slidingWindowAlgorithm, figures: 3 }

function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/**
 * Where the count of a slot stands. Not by `%`, which is a call of a function in C for numbers that
 * are no small integers to V8.
 */
function placeOf(own: SlidingWindowRule, i: number, slot: number): number {
  const places = own.slots + 1
  return i + COUNTS + slot - Math.floor(slot / places) * places
}

/** The number of the slot that a time lies in. */
function slotAt(rule: SlidingWindowRule, timeUs: number): number {
  return Math.floor(timeUs / rule.slotUs)
}

/** Sees the window as it is now, without changing anything. */
function look(own: SlidingWindowRule, s: Float64Array, i: number, nowUs: number): void {
  const atUs = effectiveUs(s, i, nowUs)
  const slot = slotAt(own, atUs)
  seen[SEEN_SLOT] = slot
  seen[SEEN_OFFSET] = atUs - slot * own.slotUs
  seen[SEEN_FULL] = fullFrom(own, s, i, slot)
  seen[SEEN_OLDEST] = countOf(own, s, i, slot - own.slots)
}

/**
 * The sum of the counts in the window of a later slot, the oldest one's left out: what has left is
 * subtracted.
 */
function fullFrom(own: SlidingWindowRule, s: Float64Array, i: number, slot: number): number {
  const written = s[i + SLOT] as number
  if (slot - written >= own.slots) return 0
  let full = s[i + FULL] as number
  for (let left = written - own.slots + 1; left <= slot - own.slots; left += 1) full -= s[placeOf(own, i, left)] as number
  return full
}

/**
 * The weight of a count when only the rest of its slot, behind the offset, is still in the window.
 * Rounded up.
 */
function weighed(own: SlidingWindowRule, count: number, offset: number): number {
  return count === 0 ? 0 : mulAddDivUp(count, own.slotUs - offset, 0, own.slotUs)
}

function used(own: SlidingWindowRule, s: Float64Array, i: number, nowUs: number): number {
  // Written now, as after a charge: if nothing fades, there is nothing to compute.
  if ((s[i + AT] as number) >= nowUs && (s[placeOf(own, i, (s[i + SLOT] as number) - own.slots)] as number) === 0)
    return s[i + FULL] as number
  look(own, s, i, nowUs)
  return (seen[SEEN_FULL] as number) + weighed(own, seen[SEEN_OLDEST] as number, seen[SEEN_OFFSET] as number)
}

/**
 * When no more than `room` is in use: within some slot from the present one on, as its oldest count
 * fades.
 */
function firstFitUs(own: SlidingWindowRule, s: Float64Array, i: number, room: number): number {
  let full = seen[SEEN_FULL] as number
  let slot = seen[SEEN_SLOT] as number
  // By then every count has left. Bytes that were damaged in a store may claim a sum that the
  // counts do not have.
  const last = slot + own.slots + 1
  while (slot < last) {
    const leaving = slot - own.slots
    const oldest = countOf(own, s, i, leaving)
    if (full <= room) {
      if (full + oldest <= room) return slot * own.slotUs
      const fadedTo = mulDiv(room - full, own.slotUs, oldest)
      if (fadedTo > 0) return (slot + 1) * own.slotUs - fadedTo
    }
    // In the next slot this one's successor is the oldest and no longer full.
    full -= countOf(own, s, i, leaving + 1)
    slot += 1
  }
  return last * own.slotUs
}

/**
 * Moves the state to a time and its slot: the slots that have passed are empty, in place of those
 * that left the window.
 */
function advance(own: SlidingWindowRule, s: Float64Array, i: number, atUs: number, slot: number): void {
  s[i + AT] = atUs
  if (slot === s[i + SLOT]) return
  s[i + FULL] = fullFrom(own, s, i, slot)
  for (let passed = Math.max((s[i + SLOT] as number) + 1, slot - own.slots); passed <= slot; passed += 1) s[placeOf(own, i, passed)] = 0
  s[i + SLOT] = slot
}

/** When the newest slot that has a count leaves the window; 0 if there is none. */
function newestLeavesUs(own: SlidingWindowRule, s: Float64Array, i: number): number {
  const latest = s[i + SLOT] as number
  for (let slot = latest; slot >= latest - own.slots; slot -= 1) {
    if ((s[placeOf(own, i, slot)] as number) > 0) return (slot + own.slots + 1) * own.slotUs
  }
  return 0
}

/** Writes the state under `to`, as of `atUs`. */
function moveTo(own: SlidingWindowRule, to: SlidingWindowRule, s: Float64Array, i: number, nowUs: number, atUs: number): void {
  if (own.slots === to.slots && own.slotUs === to.slotUs) {
    advance(own, s, i, atUs, slotAt(own, atUs))
  } else {
    gather(to, s, i, atUs, used(own, s, i, nowUs))
  }
}

/** Starts anew at `atUs` with everything that is used in the slot of that time. */
function gather(to: SlidingWindowRule, s: Float64Array, i: number, atUs: number, permits: number): void {
  s[i + AT] = atUs
  s[i + SLOT] = slotAt(to, atUs)
  s[i + FULL] = permits
  clearWords(s, i + COUNTS, to.slots + 1)
  s[placeOf(to, i, s[i + SLOT] as number)] = permits
}

/** The count of a slot of the window. Slots that have not been written yet have none. */
function countOf(own: SlidingWindowRule, s: Float64Array, i: number, slot: number): number {
  return slot > (s[i + SLOT] as number) ? 0 : (s[placeOf(own, i, slot)] as number)
}

/** Takes `cost` out of the slots from the newest to the oldest. Answers how much that was. */
function takeOut(own: SlidingWindowRule, s: Float64Array, i: number, cost: number, oldest: number, newest: number): number {
  let left = cost
  for (let slot = newest; slot >= oldest && left > 0; slot -= 1) {
    const place = placeOf(own, i, slot)
    const given = Math.min(left, s[place] as number)
    s[place] = (s[place] as number) - given
    if (slot > (s[i + SLOT] as number) - own.slots) s[i + FULL] = (s[i + FULL] as number) - given
    left -= given
  }
  return cost - left
}
