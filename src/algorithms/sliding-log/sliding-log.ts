/**
 * Sliding log: every admission is remembered until it is one window old. See sliding-log.md.
 *
 * State: [atUs, first, held, total, room, the newest entry, the time of the oldest, the sum before it, then a ring of `room` entries of (timeUs,
 * sum)]. `held` entries are in use from place `first` on, oldest first, and `total` is the sum of
 * their counts; some may have left the window already, they are dropped with the next charge.
 * Admissions of the same microsecond are one entry.
 *
 * The ring is cut into segments. The sum of an entry is that of the counts from the beginning of
 * its segment up to it, so its count is the difference to the entry before it, and what many
 * entries count is read from the last of each segment.
 *
 * So a decision reads a few entries, however many there are: those that have left are found by
 * searching times, what they counted by a few sums. Where none has left it reads none. A charge
 * writes one entry. An entry that was given back and is not the newest stays as one that counts
 * nothing.
 */
import { type Algorithm, type Format, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, invalid, onlyOptionsOf } from '../rate.ts'
import { moveWords } from '../words.ts'

const AT = 0
const FIRST = 1
const HELD = 2
const TOTAL = 3
const ROOM = 4
const NEWEST = 5
const NEWEST_SUM = 6
const OLDEST = 7
/** The sum of the entries before the oldest in its segment. */
const SUM_BEFORE = 8
const ENTRIES = 9
const ENTRY_WORDS = 2
/**
 * A refund writes so many sums at most; to sum a whole log up takes one reading for each segment.
 */
const SEGMENT = 256
/** A ring of more than so many places shrinks when less than a quarter of it is in use. */
const SMALL = 64

/**
 * A log keeps 16 bytes per admission in memory: at this limit 2 MB for one key, with the room
 * behind the entries.
 */
const MAX_LOG = 100_000

export interface SlidingLogOptions {
  /**
   * How many any window admits at most: whole permits, 1 to 100,000. Each admission held takes
   * 16 bytes, equal microseconds together.
   */
  readonly limit: number
  /** How long the window is: milliseconds or `'10s'`, 1 microsecond to 366 days. */
  readonly window: Duration
}

/**
 * Never more than `limit` in any window, wherever one looks: exact, at the price of remembering
 * every admission.
 */
export function slidingLog(options: SlidingLogOptions): SlidingLogLimit {
  onlyOptionsOf('slidingLog', options, ['limit', 'window'])
  const { limit, window } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LOG) {
    throw invalid('slidingLog limit', limit, 'must be a whole number from 1 to 100,000, because every admission is kept')
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

  ruleOf(figures) {
    const capacity = figures[0] as number
    return Object.freeze({
      algorithm: slidingLogAlgorithm,
      capacity,
      figures,
      numbers: figures.join(' '),
      windowUs: figures[1] as number,
      // One more than it admits, for what is charged beyond that.
      words: wordsIn(Math.max(roomFor(capacity), capacity + 1)),
      freshWords: ENTRIES,
    })
  },

  /**
   * A state whose places lie outside of its ring is damaged: no number of words is enough for it.
   */
  neededWords(s, i) {
    const held = s[i + HELD] as number
    const room = s[i + ROOM] as number
    if (held > 0 && ((s[i + FIRST] as number) >= room || held > room)) return Number.POSITIVE_INFINITY
    return wordsIn(held < room ? room : Math.max(room, roomFor(Math.min(held, s[i + TOTAL] as number) + 1)))
  },

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
    return gone >= most ? 0 : timeAt(s, i, placeOf(s, i, entryReaching(s, i, left, gone, most))) + own.windowUs - nowUs
  },

  resetUs(own, s, i, nowUs) {
    const atUs = effectiveUs(s, i, nowUs)
    const goneUs = (s[i + NEWEST] as number) + own.windowUs
    // An empty key is idle once its time no longer stands still.
    return ((s[i + HELD] as number) > 0 && goneUs > atUs ? goneUs : atUs) - nowUs
  },

  /**
   * The entries keep their times. Those that have left the state's window or the caller's are
   * dropped.
   */
  charge(own, to, s, i, nowUs, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    moveTo(own, to, s, i, nowUs, atUs)
    add(to, s, i, atUs, cost)
    s[i + AT] = atUs
    return atUs - nowUs
  },

  chargeAt(own, to, s, i, nowUs, cost, ofUs) {
    const atUs = effectiveUs(s, i, nowUs)
    if (ofUs + to.windowUs <= atUs) return false
    moveTo(own, to, s, i, nowUs, atUs)
    add(to, s, i, Math.min(ofUs, atUs), cost)
    s[i + AT] = atUs
    return true
  },

  giveBack(own, s, i, nowUs, cost, ofUs, _booked) {
    if (ofUs < 0 ? used(own, s, i, nowUs) === 0 : heldOf(own, s, i, nowUs, ofUs) === 0) return -1
    dropLeft(own, s, i, nowUs)
    const before = s[i + TOTAL] as number
    if (ofUs < 0) giveNewest(s, i, cost)
    else giveEntry(s, i, entryFrom(s, i, 0, ofUs), cost)
    dropEmptyNewest(s, i)
    s[i + AT] = effectiveUs(s, i, nowUs)
    return before - (s[i + TOTAL] as number)
  },

  fields(_own, s, i) {
    const fields: Record<string, number> = { atUs: s[i + AT] as number }
    for (let entry = 0; entry < (s[i + HELD] as number); entry++) {
      const place = placeOf(s, i, entry)
      const count = countAt(s, i, place)
      if (count > 0) fields[`${timeAt(s, i, place)}`] = count
    }
    return fields
  },
}

export const slidingLogFormat: Format = { format: 8, algorithm: slidingLogAlgorithm, figures: 2 }

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

/** Where an entry stands in the ring. Entries are counted from the oldest that is held. */
function placeOf(s: Float64Array, i: number, entry: number): number {
  const place = (s[i + FIRST] as number) + entry
  return place < (s[i + ROOM] as number) ? place : place - (s[i + ROOM] as number)
}

function timeAt(s: Float64Array, i: number, place: number): number {
  return s[i + ENTRIES + place * ENTRY_WORDS] as number
}

function sumAt(s: Float64Array, i: number, place: number): number {
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

function put(s: Float64Array, i: number, place: number, timeUs: number, sum: number): void {
  s[i + ENTRIES + place * ENTRY_WORDS] = timeUs
  s[i + ENTRIES + place * ENTRY_WORDS + 1] = sum
}

function addToSum(s: Float64Array, i: number, place: number, count: number): void {
  s[i + ENTRIES + place * ENTRY_WORDS + 1] = sumAt(s, i, place) + count
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
 * The first entry at which the oldest ones count `most`, from one on before which they count `sum`.
 */
function entryReaching(s: Float64Array, i: number, from: number, sum: number, most: number): number {
  const held = s[i + HELD] as number
  let entry = from
  let place = placeOf(s, i, entry)
  let missing = most - sum + sumBefore(s, i, place)
  if (sumAt(s, i, place) >= missing) return entry
  let run = runFrom(s, i, place, held - entry)
  while (entry + run < held && sumAt(s, i, place + run - 1) < missing) {
    missing -= sumAt(s, i, place + run - 1)
    entry += run
    place = placeOf(s, i, entry)
    run = runFrom(s, i, place, held - entry)
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
  const held = s[i + HELD] as number
  s[i + TOTAL] = (s[i + TOTAL] as number) - sumOfOldest(s, i, left)
  s[i + HELD] = held - left
  if (left < held) beginAt(s, i, placeOf(s, i, left))
}

/** The oldest entry stands there from now on, behind one that was held until now. */
function beginAt(s: Float64Array, i: number, place: number): void {
  s[i + SUM_BEFORE] = sumBefore(s, i, place)
  s[i + OLDEST] = timeAt(s, i, place)
  s[i + FIRST] = place
}

function addToNewest(s: Float64Array, i: number, cost: number): void {
  addToSum(s, i, placeOf(s, i, (s[i + HELD] as number) - 1), cost)
  s[i + NEWEST_SUM] = (s[i + NEWEST_SUM] as number) + cost
}

/**
 * Drops what has left, by the numbers of the state and of the caller, and writes the state under
 * the caller's.
 */
function moveTo(own: Rule, to: Rule, s: Float64Array, i: number, nowUs: number, atUs: number): void {
  dropLeft(own, s, i, nowUs)
  if (own === to) return
  dropLeft(to, s, i, nowUs)
  if ((s[i + ROOM] as number) > roomIn(to, s, i)) fitInto(to, s, i, atUs)
}

/**
 * Adds to the entry of a time, or makes it. Debt does not make a log grow: it is added to the next
 * entry, or to the newest, which is of that time then.
 */
function add(to: Rule, s: Float64Array, i: number, timeUs: number, cost: number): void {
  const newestUs = (s[i + HELD] as number) > 0 ? (s[i + NEWEST] as number) : -1
  if (newestUs > timeUs) {
    addBefore(to, s, i, timeUs, cost)
    return
  }
  if (newestUs === timeUs) addToNewest(s, i, cost)
  else if ((s[i + TOTAL] as number) > to.capacity) mergeIntoNewest(s, i, timeUs, cost)
  else append(to, s, i, timeUs, cost)
  s[i + TOTAL] = (s[i + TOTAL] as number) + cost
}

function mergeIntoNewest(s: Float64Array, i: number, timeUs: number, cost: number): void {
  addToNewest(s, i, cost)
  const held = s[i + HELD] as number
  s[i + ENTRIES + placeOf(s, i, held - 1) * ENTRY_WORDS] = timeUs
  s[i + NEWEST] = timeUs
  if (held === 1) s[i + OLDEST] = timeUs
}

/** The same where the newest entry is of a later time. */
function addBefore(to: Rule, s: Float64Array, i: number, timeUs: number, cost: number): void {
  let entry = entryFrom(s, i, 0, timeUs)
  if ((s[i + TOTAL] as number) > to.capacity) {
    // An entry that was given back whole is removed. The newest has something.
    while (countAt(s, i, placeOf(s, i, entry)) === 0) entry += 1
  } else if (timeAt(s, i, placeOf(s, i, entry)) > timeUs) {
    makeRoom(s, i, roomIn(to, s, i))
    entry = entryFrom(s, i, 0, timeUs)
    insert(s, i, entry, timeUs)
  }
  giveEntry(s, i, entry, -cost)
  dropEmptyNewest(s, i)
}

/** Makes an entry that counts nothing before another: those from there on move one place on. */
function insert(s: Float64Array, i: number, at: number, timeUs: number): void {
  const held = s[i + HELD] as number
  for (let entry = held - 1; entry >= at; entry -= 1) {
    const place = placeOf(s, i, entry)
    const count = countAt(s, i, place)
    put(s, i, placeOf(s, i, entry + 1), timeAt(s, i, place), count)
  }
  put(s, i, placeOf(s, i, at), timeUs, 0)
  s[i + HELD] = held + 1
  // Counts have become sums again.
  for (let entry = at; entry <= held; entry += 1) {
    const place = placeOf(s, i, entry)
    addToSum(s, i, place, sumBefore(s, i, place))
  }
  if (at === 0) s[i + OLDEST] = timeUs
}

/** Adds an entry behind the newest. */
function append(to: Rule, s: Float64Array, i: number, timeUs: number, count: number): void {
  makeRoom(s, i, roomIn(to, s, i))
  const held = s[i + HELD] as number
  if (held === 0) begin(s, i, timeUs)
  const place = placeOf(s, i, held)
  const sum = place % SEGMENT === 0 ? count : (s[i + NEWEST_SUM] as number) + count
  put(s, i, place, timeUs, sum)
  s[i + HELD] = held + 1
  s[i + NEWEST] = timeUs
  s[i + NEWEST_SUM] = sum
}

/** An entry of this time stands first. */
function begin(s: Float64Array, i: number, timeUs: number): void {
  s[i + FIRST] = 0
  s[i + OLDEST] = timeUs
  s[i + SUM_BEFORE] = 0
}

/** The places that a ring may have: a smaller log has less room. */
function roomIn(to: Rule, s: Float64Array, i: number): number {
  return Math.floor((Math.min(s.length - i, to.words) - ENTRIES) / ENTRY_WORDS)
}

/** More entries than a smaller log has places for become one, as of now. */
function fitInto(to: Rule, s: Float64Array, i: number, atUs: number): void {
  straighten(s, i)
  const most = roomIn(to, s, i)
  if ((s[i + HELD] as number) > most) gather(s, i, atUs, s[i + TOTAL] as number)
  else s[i + ROOM] = most
}

/** Makes room for one more entry. `most`: the places that there may be. */
function makeRoom(s: Float64Array, i: number, most: number): void {
  const held = s[i + HELD] as number
  const room = s[i + ROOM] as number
  if (held < room && (room <= SMALL || held > room / 4)) return
  // A ring that grows needs nothing else if its entries stand in one piece.
  if (room >= most || held < room || (s[i + FIRST] as number) > 0) straighten(s, i)
  s[i + ROOM] = Math.min(most, Math.max(held < room ? 0 : room, roomFor((s[i + HELD] as number) + 1)))
}

/** Moves all entries to the front, without those that count nothing. */
function straighten(s: Float64Array, i: number): void {
  const held = s[i + HELD] as number
  const room = s[i + ROOM] as number
  const first = s[i + FIRST] as number
  // Counts in place of sums, from the newest on: each is a difference to what stands before it.
  for (let entry = held - 1; entry >= 0; entry -= 1) {
    const place = placeOf(s, i, entry)
    addToSum(s, i, place, -sumBefore(s, i, place))
  }
  if (first + held > room) {
    reverse(s, i, 0, first)
    reverse(s, i, first, room)
    reverse(s, i, 0, room)
  } else if (first > 0) moveWords(s, i + ENTRIES, i + ENTRIES + first * ENTRY_WORDS, held * ENTRY_WORDS)
  let kept = 0
  let sum = 0
  for (let place = 0; place < held; place += 1) {
    const count = sumAt(s, i, place)
    if (count > 0) {
      sum = kept % SEGMENT === 0 ? count : sum + count
      put(s, i, kept, timeAt(s, i, place), sum)
      kept += 1
    }
  }
  begin(s, i, timeAt(s, i, 0))
  s[i + HELD] = kept
  s[i + NEWEST_SUM] = sum
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
 * The first entry of this microsecond or a later one, from one on; behind the newest, if there is
 * none. Mostly it is one of the newest, so it is searched for from there, and the newest itself is
 * not read.
 */
function entryFrom(s: Float64Array, i: number, from: number, timeUs: number): number {
  let high = s[i + HELD] as number
  if (high <= from || (s[i + NEWEST] as number) < timeUs) return high
  high -= 1
  if (s[i + NEWEST] === timeUs) return high
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

/** The permits in use of the entry of exactly this microsecond. */
function heldOf(rule: Rule, s: Float64Array, i: number, nowUs: number, timeUs: number): number {
  const entry = entryFrom(s, i, leftBy(rule, s, i, nowUs), timeUs)
  if (entry === (s[i + HELD] as number)) return 0
  const place = placeOf(s, i, entry)
  return timeAt(s, i, place) === timeUs ? countAt(s, i, place) : 0
}

/**
 * Takes `cost` out of the newest entries: what is left ends with the entry at which the oldest ones
 * count so much.
 */
function giveNewest(s: Float64Array, i: number, cost: number): void {
  const kept = Math.max(0, (s[i + TOTAL] as number) - cost)
  if (kept > 0) {
    const last = entryReaching(s, i, 0, 0, kept)
    addToSum(s, i, placeOf(s, i, last), kept - sumOfOldest(s, i, last + 1))
    s[i + HELD] = last + 1
  }
  s[i + TOTAL] = kept
}

/**
 * Takes `cost` out of one entry: out of its sum, and those of the entries behind it in its segment.
 */
function giveEntry(s: Float64Array, i: number, entry: number, cost: number): void {
  const place = placeOf(s, i, entry)
  const given = Math.min(countAt(s, i, place), cost)
  const end = place + runFrom(s, i, place, (s[i + HELD] as number) - entry)
  for (let at = place; at < end; at += 1) addToSum(s, i, at, -given)
  s[i + TOTAL] = (s[i + TOTAL] as number) - given
}

/** The newest entry counts something, or there is none. */
function dropEmptyNewest(s: Float64Array, i: number): void {
  let held = (s[i + TOTAL] as number) > 0 ? (s[i + HELD] as number) : 0
  while (held > 0 && countAt(s, i, placeOf(s, i, held - 1)) === 0) held -= 1
  s[i + HELD] = held
  s[i + NEWEST] = held === 0 ? 0 : timeAt(s, i, placeOf(s, i, held - 1))
  s[i + NEWEST_SUM] = held === 0 ? 0 : sumAt(s, i, placeOf(s, i, held - 1))
}

/** Starts anew at `atUs` with everything that is used as one entry. */
function gather(s: Float64Array, i: number, atUs: number, permits: number): void {
  begin(s, i, atUs)
  s[i + AT] = atUs
  s[i + HELD] = permits === 0 ? 0 : 1
  s[i + TOTAL] = permits
  s[i + ROOM] = Math.min(s[i + ROOM] as number, roomFor(1))
  s[i + NEWEST] = atUs
  s[i + NEWEST_SUM] = permits
  if (permits > 0) put(s, i, 0, atUs, permits)
}
