/**
 * Sliding log: every admission is remembered until it is one window old. See sliding-log.md.
 *
 * State: [first, held, total, the sum of the last entry in the ring, room, the time of the newest
 * and its count, the time of the oldest, the sum before it, atUs, then a ring of `room` entries of
 * (sum, timeUs)].
 * `held` entries are in use. The newest stands in the head, the others in the ring from place
 * `first` on, oldest first. `total` is the sum of their counts; some may have left the window
 * already, they are dropped with the next charge. Admissions of the same microsecond are one entry.
 *
 * The ring is cut into segments. The sum of an entry is that of the counts from the beginning of
 * its segment up to it, so its count is the difference to the entry before it, and what many
 * entries count is read from the last of each segment.
 *
 * So a decision reads a few entries, however many there are: those that have left are found by
 * searching times, what they counted by a few sums. Where none has left it reads none. A charge
 * moves the newest into the ring, and so writes one entry; what changes the newest writes none. An
 * entry that was given back and is not the newest stays as one that counts nothing.
 */
import { type Algorithm, type Format, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, invalid, MAX_PERIOD_US, onlyOptionsOf } from '../rate.ts'
import { moveWords } from '../words.ts'

const FIRST = 0
const HELD = 1
const TOTAL = 2
/** The sum of the last entry in the ring, if there is one. */
const LAST_SUM = 3
const ROOM = 4
const NEWEST = 5
const NEWEST_COUNT = 6
const OLDEST = 7
/** The sum of the entries before the oldest in its segment. */
const SUM_BEFORE = 8
const AT = 9
const ENTRIES = 10
const ENTRY_WORDS = 2
/**
 * A refund writes so many sums at most; to sum a whole log up takes one reading for each segment.
 */
const SEGMENT = 256
/** A ring of more than so many places shrinks when less than a quarter of it is in use. */
const SMALL = 64

/**
 * A log keeps 16 bytes for each permit in use, and has room for twice its limit: at this limit 4 MB
 * for one key, with the room behind the entries.
 */
const MAX_LOG = 100_000
/** More places than any ring has. */
const MOST_ROOM = 300_000

export interface SlidingLogOptions {
  /**
   * How many any window admits at most: whole permits, 0 (nothing passes) to 100,000. Each
   * admission held takes 16 bytes, equal microseconds together.
   */
  readonly limit: number
  /** How long the window is, `'10s'`: 1 microsecond to 366 days. */
  readonly window: Duration
}

/**
 * Never more than `limit` in any window, wherever one looks: exact, at the price of remembering
 * every admission.
 */
export function slidingLog(options: SlidingLogOptions): SlidingLogLimit {
  onlyOptionsOf('slidingLog', options, ['limit', 'window'])
  const { limit, window } = options
  if (!Number.isInteger(limit) || limit < 0 || limit > MAX_LOG) {
    throw invalid('slidingLog limit', limit, 'must be a whole number from 0 to 100,000, because every admission is kept')
  }
  const figures = [limit, durationUs(window, 'slidingLog window')]
  return limitOf({ type: 'slidingLog', limit, window }, slidingLogAlgorithm.ruleOf(figures))
}

export type SlidingLogLimit = Limit & { readonly type: 'slidingLog'; readonly limit: number; readonly window: Duration }

export const slidingLogAlgorithm: Algorithm = {
  type: 'slidingLog',
  bookable: false,
  spaced: false,
  maxCapacity: MAX_LOG,

  /** Callers that wait claim up to twice their limit and one. */
  isLimit(figures) {
    const windowUs = figures[1] as number
    return windowUs >= 1 && windowUs <= MAX_PERIOD_US && roomFor(2 * (figures[0] as number)) <= MOST_ROOM
  },

  ruleOf(figures) {
    const capacity = figures[0] as number
    const mostUsed = 2 * Math.max(1, capacity)
    return Object.freeze({
      algorithm: slidingLogAlgorithm,
      capacity,
      figures,
      numbers: figures.join(' '),
      windowUs: figures[1] as number,
      words: wordsIn(roomFor(mostUsed)),
      freshWords: ENTRIES,
      mostUsed,
    })
  },

  /**
   * A state whose places lie outside of its ring is damaged: no number of words is enough for it. A
   * log keeps its entries under a smaller limit, so its ring may be larger than that has room for.
   */
  neededWords(s, i) {
    const held = s[i + HELD] as number
    const first = s[i + FIRST] as number
    const room = s[i + ROOM] as number
    if (room > MOST_ROOM || held - 1 > room || (held > 0 && first > 0 && first >= room)) return Number.POSITIVE_INFINITY
    return wordsIn(held <= room ? room : Math.max(room, roomFor(Math.min(held, s[i + TOTAL] as number))))
  },

  heldWords: (s, i) => wordsIn(s[i + ROOM] as number),

  /**
   * A state dated more than one window ahead is re-dated: what counted then counts as admitted now.
   */
  repair(own, s, i, nowUs) {
    const atUs = s[i + AT] as number
    if (atUs - nowUs <= own.windowUs) return false
    gather(s, i, nowUs, used(own, s, i, atUs))
    return true
  },

  used,

  untilUs(own, s, i, nowUs, room) {
    // So many have to leave.
    const most = (s[i + TOTAL] as number) - room
    if (most <= 0) return 0
    const left = leftBy(own, s, i, nowUs)
    const gone = sumOfOldest(s, i, left)
    return gone >= most ? 0 : timeOf(s, i, entryReaching(s, i, left, gone, most)) + own.windowUs - nowUs
  },

  resetUs(own, s, i, nowUs) {
    const atUs = effectiveUs(s, i, nowUs)
    const goneUs = (s[i + NEWEST] as number) + own.windowUs
    // An empty key is idle once its time no longer stands still.
    return ((s[i + HELD] as number) > 0 && goneUs > atUs ? goneUs : atUs) - nowUs
  },

  /**
   * The entries keep their times, under a smaller limit too. Those that have left the state's
   * window or the caller's are dropped.
   */
  charge(own, to, s, i, nowUs, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    dropLeft(own, s, i, nowUs)
    if (own !== to) dropLeft(to, s, i, nowUs)
    add(to, s, i, atUs, cost)
    s[i + AT] = atUs
    return atUs - nowUs
  },

  giveBack(own, s, i, nowUs, cost, ofUs, _charge) {
    const left = leftBy(own, s, i, nowUs)
    const entry = ofUs < 0 ? (s[i + HELD] as number) - 1 : entryOf(s, i, left, ofUs)
    if (entry < left) return -1
    dropLeft(own, s, i, nowUs)
    const before = s[i + TOTAL] as number
    if (ofUs < 0) giveNewest(s, i, cost)
    else giveEntry(s, i, entry - left, cost)
    s[i + AT] = effectiveUs(s, i, nowUs)
    return before - (s[i + TOTAL] as number)
  },

  fields(_own, s, i) {
    const fields: Record<string, number> = { atUs: s[i + AT] as number }
    for (let entry = 0; entry < (s[i + HELD] as number); entry++) {
      const count = countOf(s, i, entry)
      if (count > 0) fields[`${timeOf(s, i, entry)}`] = count
    }
    return fields
  },
}

export const slidingLogFormat: Format = { format: 10, algorithm: slidingLogAlgorithm, figures: 2 }

/**
 * The places of a ring for so many entries: a quarter more, so that it does not have to be made
 * anew often.
 */
function roomFor(entries: number): number {
  return entries + Math.floor(entries / 4)
}

function wordsIn(room: number): number {
  return ENTRIES + room * ENTRY_WORDS
}

function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/**
 * Where an entry stands in the ring. Entries are counted from the oldest that is held. The newest
 * has the place that it gets when another comes.
 */
function placeOf(s: Float64Array, i: number, entry: number): number {
  const place = (s[i + FIRST] as number) + entry
  return place < (s[i + ROOM] as number) ? place : place - (s[i + ROOM] as number)
}

function sumAt(s: Float64Array, i: number, place: number): number {
  return s[i + ENTRIES + place * ENTRY_WORDS] as number
}

function timeAt(s: Float64Array, i: number, place: number): number {
  return s[i + ENTRIES + place * ENTRY_WORDS + 1] as number
}

/** The sum of the entries before a place in its segment. */
function sumBefore(s: Float64Array, i: number, place: number): number {
  if (place === (s[i + FIRST] as number)) return s[i + SUM_BEFORE] as number
  return place % SEGMENT === 0 ? 0 : sumAt(s, i, place - 1)
}

function countAt(s: Float64Array, i: number, place: number): number {
  return sumAt(s, i, place) - sumBefore(s, i, place)
}

function timeOf(s: Float64Array, i: number, entry: number): number {
  return entry === (s[i + HELD] as number) - 1 ? (s[i + NEWEST] as number) : timeAt(s, i, placeOf(s, i, entry))
}

function countOf(s: Float64Array, i: number, entry: number): number {
  return entry === (s[i + HELD] as number) - 1 ? (s[i + NEWEST_COUNT] as number) : countAt(s, i, placeOf(s, i, entry))
}

function put(s: Float64Array, i: number, place: number, timeUs: number, sum: number): void {
  s[i + ENTRIES + place * ENTRY_WORDS] = sum
  s[i + ENTRIES + place * ENTRY_WORDS + 1] = timeUs
}

function addToSum(s: Float64Array, i: number, place: number, count: number): void {
  s[i + ENTRIES + place * ENTRY_WORDS] = sumAt(s, i, place) + count
}

/** How many entries from a place on stand behind each other in one segment, out of so many. */
function runFrom(s: Float64Array, i: number, place: number, entries: number): number {
  return Math.min(entries, Math.min(SEGMENT - (place % SEGMENT), (s[i + ROOM] as number) - place))
}

/** Whether any entry has left the window: those at or before now - window. */
function hasLeft(rule: Rule, s: Float64Array, i: number, nowUs: number): boolean {
  return (s[i + HELD] as number) > 0 && (s[i + OLDEST] as number) + rule.windowUs <= Math.max(s[i + AT] as number, nowUs)
}

/**
 * How many of the oldest entries have left the window. Mostly few, so they are searched for from
 * there.
 */
function leftBy(rule: Rule, s: Float64Array, i: number, nowUs: number): number {
  if (!hasLeft(rule, s, i, nowUs)) return 0
  const leftUs = effectiveUs(s, i, nowUs) - rule.windowUs
  const held = s[i + HELD] as number
  if ((s[i + NEWEST] as number) <= leftUs) return held
  // `low` has left and `high` has not.
  let low = 0
  let high = 1
  while (high < held - 1 && timeAt(s, i, placeOf(s, i, high)) <= leftUs) {
    low = high
    high = Math.min(2 * high + 1, held - 1)
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (timeAt(s, i, placeOf(s, i, middle)) <= leftUs) low = middle
    else high = middle
  }
  return high
}

/** The sum of so many of the oldest entries. */
function sumOfOldest(s: Float64Array, i: number, entries: number): number {
  if (entries === (s[i + HELD] as number)) return s[i + TOTAL] as number
  let sum = 0
  let entry = 0
  while (entry < entries) {
    const place = placeOf(s, i, entry)
    const run = runFrom(s, i, place, entries - entry)
    sum += sumAt(s, i, place + run - 1) - sumBefore(s, i, place)
    entry += run
  }
  return sum
}

/**
 * The first entry at which the oldest ones count `most`, from one on before which they count `sum`:
 * the newest, if the others do not.
 */
function entryReaching(s: Float64Array, i: number, from: number, sum: number, most: number): number {
  const newest = (s[i + HELD] as number) - 1
  if (from === newest) return newest
  let entry = from
  let place = placeOf(s, i, entry)
  let missing = most - sum + sumBefore(s, i, place)
  if (sumAt(s, i, place) >= missing) return entry
  let run = runFrom(s, i, place, newest - entry)
  while (sumAt(s, i, place + run - 1) < missing) {
    missing -= sumAt(s, i, place + run - 1)
    entry += run
    if (entry === newest) return newest
    place = placeOf(s, i, entry)
    run = runFrom(s, i, place, newest - entry)
  }
  let low = 0
  let high = run - 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (sumAt(s, i, place + middle) < missing) low = middle + 1
    else high = middle
  }
  return entry + low
}

/**
 * How many permits still count: the total, without what the entries counted that are held but have
 * left the window.
 */
function used(rule: Rule, s: Float64Array, i: number, nowUs: number): number {
  return hasLeft(rule, s, i, nowUs) ? (s[i + TOTAL] as number) - sumOfOldest(s, i, leftBy(rule, s, i, nowUs)) : (s[i + TOTAL] as number)
}

function dropLeft(rule: Rule, s: Float64Array, i: number, nowUs: number): void {
  if (!hasLeft(rule, s, i, nowUs)) return
  const left = leftBy(rule, s, i, nowUs)
  const kept = (s[i + HELD] as number) - left
  s[i + TOTAL] = (s[i + TOTAL] as number) - sumOfOldest(s, i, left)
  if (kept > 1) beginAt(s, i, placeOf(s, i, left))
  else begin(s, i, s[i + NEWEST] as number)
  s[i + HELD] = kept
}

/** The oldest entry stands there from now on, behind one that was held until now. */
function beginAt(s: Float64Array, i: number, place: number): void {
  s[i + SUM_BEFORE] = sumBefore(s, i, place)
  s[i + OLDEST] = timeAt(s, i, place)
  s[i + FIRST] = place
}

/** The oldest entry, of this time, stands first in the ring, or is the newest. */
function begin(s: Float64Array, i: number, timeUs: number): void {
  s[i + FIRST] = 0
  s[i + OLDEST] = timeUs
  s[i + SUM_BEFORE] = 0
}

/** An entry of the ring, which counts so many, is the newest from now on. */
function endWith(s: Float64Array, i: number, entry: number, count: number): void {
  const place = placeOf(s, i, entry)
  s[i + NEWEST] = timeAt(s, i, place)
  s[i + NEWEST_COUNT] = count
  s[i + HELD] = entry + 1
  if (entry === 0) begin(s, i, s[i + NEWEST] as number)
  else s[i + LAST_SUM] = sumAt(s, i, placeOf(s, i, entry - 1))
}

/** Adds to the newest entry, if that is of this time, or makes one. No entry is of a later time. */
function add(to: Rule, s: Float64Array, i: number, timeUs: number, cost: number): void {
  if ((s[i + HELD] as number) > 0 && s[i + NEWEST] === timeUs) s[i + NEWEST_COUNT] = (s[i + NEWEST_COUNT] as number) + cost
  else append(to, s, i, timeUs, cost)
  if ((s[i + HELD] as number) === 1) begin(s, i, timeUs)
  s[i + TOTAL] = (s[i + TOTAL] as number) + cost
}

/** Makes an entry the newest. The one that was it moves into the ring. */
function append(to: Rule, s: Float64Array, i: number, timeUs: number, count: number): void {
  if ((s[i + HELD] as number) > 0) {
    makeRoom(to, s, i)
    const place = placeOf(s, i, (s[i + HELD] as number) - 1)
    const sum = (s[i + NEWEST_COUNT] as number) + (place % SEGMENT === 0 ? 0 : (s[i + LAST_SUM] as number))
    put(s, i, place, s[i + NEWEST] as number, sum)
    s[i + LAST_SUM] = sum
  }
  s[i + HELD] = (s[i + HELD] as number) + 1
  s[i + NEWEST] = timeUs
  s[i + NEWEST_COUNT] = count
}

/** The places that a ring may have when an entry is added under these numbers. */
function roomIn(to: Rule, s: Float64Array, i: number): number {
  return Math.floor((Math.min(s.length - i, to.words) - ENTRIES) / ENTRY_WORDS)
}

/** Makes room for one more entry in the ring, of a log that has a newest one. */
function makeRoom(to: Rule, s: Float64Array, i: number): void {
  const stored = (s[i + HELD] as number) - 1
  const room = s[i + ROOM] as number
  if (stored < room && (room <= SMALL || stored > room / 4)) return
  const most = roomIn(to, s, i)
  // A ring that grows needs nothing else if its entries stand in one piece.
  if (room >= most || stored < room || (s[i + FIRST] as number) > 0) straighten(s, i)
  s[i + ROOM] = Math.min(most, Math.max(stored < room ? 0 : room, roomFor(s[i + HELD] as number)))
}

/** Moves all entries of the ring to its front, without those that count nothing. */
function straighten(s: Float64Array, i: number): void {
  const stored = (s[i + HELD] as number) - 1
  const room = s[i + ROOM] as number
  const first = s[i + FIRST] as number
  // Counts in place of sums, from the newest on: each is a difference to what stands before it.
  for (let entry = stored - 1; entry >= 0; entry -= 1) {
    const place = placeOf(s, i, entry)
    addToSum(s, i, place, -sumBefore(s, i, place))
  }
  if (first + stored > room) {
    reverse(s, i, 0, first)
    reverse(s, i, first, room)
    reverse(s, i, 0, room)
  } else if (first > 0) moveWords(s, i + ENTRIES, i + ENTRIES + first * ENTRY_WORDS, stored * ENTRY_WORDS)
  let kept = 0
  let sum = 0
  for (let place = 0; place < stored; place += 1) {
    const count = sumAt(s, i, place)
    if (count > 0) {
      sum = kept % SEGMENT === 0 ? count : sum + count
      put(s, i, kept, timeAt(s, i, place), sum)
      kept += 1
    }
  }
  s[i + HELD] = kept + 1
  s[i + LAST_SUM] = sum
  begin(s, i, kept > 0 ? timeAt(s, i, 0) : (s[i + NEWEST] as number))
}

/** Turns the order of the places round from one to before another. */
function reverse(s: Float64Array, i: number, from: number, to: number): void {
  let low = from
  let high = to - 1
  while (low < high) {
    const timeUs = timeAt(s, i, low)
    const sum = sumAt(s, i, low)
    put(s, i, low, timeAt(s, i, high), sumAt(s, i, high))
    put(s, i, high, timeUs, sum)
    low += 1
    high -= 1
  }
}

/**
 * The first entry of this microsecond or a later one, from one on; the newest, if there is none.
 * Mostly it is one of the newest, so it is searched for from there.
 */
function entryFrom(s: Float64Array, i: number, from: number, timeUs: number): number {
  let high = (s[i + HELD] as number) - 1
  if ((s[i + NEWEST] as number) <= timeUs) return high
  // `high` is not earlier. In the end `low` is, or stands before the first.
  let step = 1
  let low = high - step
  while (low >= from && timeAt(s, i, placeOf(s, i, low)) >= timeUs) {
    high = low
    step = 2 * step
    low = high - step
  }
  low = Math.max(low, from - 1)
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (timeAt(s, i, placeOf(s, i, middle)) < timeUs) low = middle
    else high = middle
  }
  return high
}

/** The entry of exactly this microsecond, from one on, if it counts anything; -1 otherwise. */
function entryOf(s: Float64Array, i: number, from: number, timeUs: number): number {
  const entry = entryFrom(s, i, from, timeUs)
  return timeOf(s, i, entry) === timeUs && countOf(s, i, entry) > 0 ? entry : -1
}

/**
 * Takes `cost` out of the newest entries: what is left ends with the entry at which the oldest ones
 * count so much.
 */
function giveNewest(s: Float64Array, i: number, cost: number): void {
  const kept = Math.max(0, (s[i + TOTAL] as number) - cost)
  if (cost < (s[i + NEWEST_COUNT] as number)) s[i + NEWEST_COUNT] = (s[i + NEWEST_COUNT] as number) - cost
  else if (kept > 0) {
    const last = entryReaching(s, i, 0, 0, kept)
    endWith(s, i, last, kept - sumOfOldest(s, i, last))
  } else s[i + HELD] = 0
  s[i + TOTAL] = kept
}

/** Takes `cost` out of one entry, and no more than it counts. */
function giveEntry(s: Float64Array, i: number, entry: number, cost: number): void {
  addTo(s, i, entry, -Math.min(countOf(s, i, entry), cost))
  if (s[i + NEWEST_COUNT] === 0) dropEmptyNewest(s, i)
}

/**
 * Adds to what an entry counts: to its sum, and those of the entries behind it in its segment.
 */
function addTo(s: Float64Array, i: number, entry: number, count: number): void {
  const stored = (s[i + HELD] as number) - 1
  if (entry === stored) s[i + NEWEST_COUNT] = (s[i + NEWEST_COUNT] as number) + count
  else {
    const place = placeOf(s, i, entry)
    const run = runFrom(s, i, place, stored - entry)
    for (let at = place; at < place + run; at += 1) addToSum(s, i, at, count)
    if (entry + run === stored) s[i + LAST_SUM] = (s[i + LAST_SUM] as number) + count
  }
  s[i + TOTAL] = (s[i + TOTAL] as number) + count
}

/** The newest entry is the last one that counts something. */
function dropEmptyNewest(s: Float64Array, i: number): void {
  let entry = (s[i + TOTAL] as number) > 0 ? (s[i + HELD] as number) - 2 : -1
  while (entry >= 0 && countAt(s, i, placeOf(s, i, entry)) === 0) entry -= 1
  if (entry >= 0) endWith(s, i, entry, countAt(s, i, placeOf(s, i, entry)))
  else s[i + HELD] = 0
}

/** Starts anew at `atUs` with everything that is used as one entry. */
function gather(s: Float64Array, i: number, atUs: number, permits: number): void {
  begin(s, i, atUs)
  s[i + AT] = atUs
  s[i + HELD] = permits === 0 ? 0 : 1
  s[i + TOTAL] = permits
  s[i + ROOM] = 0
  s[i + NEWEST] = atUs
  s[i + NEWEST_COUNT] = permits
}
