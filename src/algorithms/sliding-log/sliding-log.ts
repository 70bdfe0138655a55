/**
 * Sliding log: every admission is remembered until it is one window old. See sliding-log.md.
 *
 * State: [atUs, first, end, total, then entries of (timeUs, count)]. The entries from `first` to before `end` are held, oldest first, and
 * `total` is the sum of their counts; some may have left the window already, they are dropped with the next charge. Admissions of the same
 * microsecond are one entry, so there are never more entries than `limit`.
 */
import { type Algorithm, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, onlyOptionsOf, refused } from '../rate.ts'
import { clearWords, moveWords } from '../words.ts'

const AT = 0
const FIRST = 1
const END = 2
const TOTAL = 3
const ENTRIES = 4
const ENTRY_WORDS = 2

/** A log keeps 16 bytes per admission in memory: at this limit 2 MB for one key, with the room behind the entries. */
export const MAX_LOG = 100_000

export interface SlidingLogOptions {
  /** How many any window admits at most: whole permits, 1 to 100,000. Each admission held takes 16 bytes, equal microseconds together. */
  readonly limit: number
  /** How long the window is: milliseconds or `'10s'`, 1 microsecond to 366 days. */
  readonly window: Duration
}

/** Never more than `limit` in any window, wherever one looks: exact, at the price of remembering every admission. */
export function slidingLog(options: SlidingLogOptions): SlidingLogLimit {
  onlyOptionsOf('slidingLog', options, ['limit', 'window'])
  const { limit, window } = options
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LOG) {
    throw refused('slidingLog limit', limit, 'must be a whole number from 1 to 100,000, because every admission is kept')
  }
  const figures = [limit, durationUs(window, 'slidingLog window')]
  return limitOf({ type: 'slidingLog', limit, window }, slidingLogAlgorithm.ruleOf(figures))
}

export type SlidingLogLimit = Limit & { readonly type: 'slidingLog'; readonly limit: number; readonly window: Duration }

export const slidingLogAlgorithm: Algorithm = {
  type: 'slidingLog',
  bookable: false,
  spaced: false,

  ruleOf(figures) {
    const capacity = figures[0] as number
    return Object.freeze({
      algorithm: slidingLogAlgorithm,
      capacity,
      figures,
      numbers: figures.join(' '),
      windowUs: figures[1] as number,
      words: wordsOf(capacity),
      freshWords: ENTRIES,
    })
  },

  neededWords(s, i) {
    return wordsOf((s[i + END] as number) - (s[i + FIRST] as number) + 1)
  },

  /** A state dated more than one window ahead is re-dated: what counted then counts as admitted now. */
  repair(own, s, i, nowUs) {
    const atUs = s[i + AT] as number
    if (atUs - nowUs <= own.windowUs) return false
    gather(s, i, nowUs, used(own, s, i, atUs))
    return true
  },

  used,

  untilUs(own, s, i, nowUs, room) {
    let surplus = used(own, s, i, nowUs) - room
    if (surplus <= 0) return 0
    let entry = firstLive(own, s, i, nowUs)
    surplus -= countOf(s, i, entry)
    while (surplus > 0) {
      entry += 1
      surplus -= countOf(s, i, entry)
    }
    return timeOf(s, i, entry) + own.windowUs - nowUs
  },

  resetUs(own, s, i, nowUs) {
    // An empty key is idle once its time no longer stands still.
    if (used(own, s, i, nowUs) === 0) return effectiveUs(s, i, nowUs) - nowUs
    return timeOf(s, i, (s[i + END] as number) - 1) + own.windowUs - nowUs
  },

  /** The entries keep their times. Those that have left the state's window or the caller's are dropped. */
  charge(own, to, s, i, nowUs, cost) {
    dropDead(own, s, i, nowUs)
    if (own !== to) {
      dropDead(to, s, i, nowUs)
      // A smaller log has less room.
      moveToFront(s, i)
    }
    const atUs = effectiveUs(s, i, nowUs)
    enter(to, s, i, atUs, cost)
    return atUs - nowUs
  },

  giveBack(own, s, i, nowUs, cost, ofUs, _booked) {
    if (ofUs < 0 ? used(own, s, i, nowUs) === 0 : entryAt(own, s, i, nowUs, ofUs) < 0) return false
    dropDead(own, s, i, nowUs)
    if (ofUs < 0) giveNewest(s, i, cost)
    else giveEntry(s, i, entryAt(own, s, i, nowUs, ofUs), cost)
    s[i + AT] = effectiveUs(s, i, nowUs)
    return true
  },

  fields(_own, s, i) {
    const fields: Record<string, number> = { atUs: s[i + AT] as number }
    // A state that was read from elsewhere may say that it has more entries than there are.
    const end = Math.min(s[i + END] as number, (s.length - i - ENTRIES) / ENTRY_WORDS)
    for (let entry = s[i + FIRST] as number; entry < end; entry++) fields[`${timeOf(s, i, entry)}`] = countOf(s, i, entry)
    return fields
  },
}

/** With room for a quarter more: the entries move to the front when they reach the end, and should not do so at every charge. */
function wordsOf(entries: number): number {
  return ENTRIES + (entries + Math.floor(entries / 4)) * ENTRY_WORDS
}

/** Adds an admission: to the newest entry if that is of the same microsecond. No entry is newer than the state's date. */
function enter(to: Rule, s: Float64Array, i: number, atUs: number, cost: number): void {
  const newest = (s[i + END] as number) - 1
  if (s[i + AT] === atUs && newest >= (s[i + FIRST] as number) && timeOf(s, i, newest) === atUs) {
    setCount(s, i, newest, countOf(s, i, newest) + cost)
  } else {
    append(to, s, i, atUs, cost)
  }
  s[i + TOTAL] = (s[i + TOTAL] as number) + cost
  s[i + AT] = atUs
}

function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

function timeOf(s: Float64Array, i: number, entry: number): number {
  return s[i + ENTRIES + entry * ENTRY_WORDS] as number
}

function countOf(s: Float64Array, i: number, entry: number): number {
  return s[i + ENTRIES + entry * ENTRY_WORDS + 1] as number
}

function setCount(s: Float64Array, i: number, entry: number, count: number): void {
  s[i + ENTRIES + entry * ENTRY_WORDS + 1] = count
}

function put(s: Float64Array, i: number, entry: number, timeUs: number, count: number): void {
  s[i + ENTRIES + entry * ENTRY_WORDS] = timeUs
  setCount(s, i, entry, count)
}

/** The oldest entry that still counts: records at or before now - window have left. `end` if there is none. */
function firstLive(rule: Rule, s: Float64Array, i: number, nowUs: number): number {
  const leftUs = effectiveUs(s, i, nowUs) - rule.windowUs
  const end = s[i + END] as number
  let entry = s[i + FIRST] as number
  while (entry < end && timeOf(s, i, entry) <= leftUs) entry += 1
  return entry
}

/** How many permits still count: the total, without what the entries counted that are held but have left the window. */
function used(rule: Rule, s: Float64Array, i: number, nowUs: number): number {
  const live = firstLive(rule, s, i, nowUs)
  let permits = s[i + TOTAL] as number
  for (let entry = s[i + FIRST] as number; entry < live; entry += 1) permits -= countOf(s, i, entry)
  return permits
}

function dropDead(rule: Rule, s: Float64Array, i: number, nowUs: number): void {
  s[i + TOTAL] = used(rule, s, i, nowUs)
  s[i + FIRST] = firstLive(rule, s, i, nowUs)
}

/** Adds an entry behind the newest. Where the room behind is used up, the entries move to the front first. */
function append(to: Rule, s: Float64Array, i: number, timeUs: number, count: number): void {
  const words = Math.min(s.length - i, to.words)
  if (ENTRIES + ((s[i + END] as number) + 1) * ENTRY_WORDS > words) moveToFront(s, i)
  put(s, i, s[i + END] as number, timeUs, count)
  s[i + END] = (s[i + END] as number) + 1
}

function moveToFront(s: Float64Array, i: number): void {
  const first = s[i + FIRST] as number
  const held = (s[i + END] as number) - first
  moveWords(s, i + ENTRIES, i + ENTRIES + first * ENTRY_WORDS, held * ENTRY_WORDS)
  clearEntries(s, i, held, first)
  s[i + FIRST] = 0
  s[i + END] = held
}

/** What stands behind the entries is zero: a store that keeps bytes leaves zeros at the end out, so that a log shrinks there. */
function clearEntries(s: Float64Array, i: number, entry: number, count: number): void {
  const from = i + ENTRIES + entry * ENTRY_WORDS
  clearWords(s, from, Math.min(count * ENTRY_WORDS, s.length - from))
}

/** The live entry of exactly this microsecond, or -1. */
function entryAt(rule: Rule, s: Float64Array, i: number, nowUs: number, timeUs: number): number {
  let low = firstLive(rule, s, i, nowUs)
  let high = (s[i + END] as number) - 1
  while (low <= high) {
    const middle = Math.floor((low + high) / 2)
    if (timeOf(s, i, middle) === timeUs) return middle
    if (timeOf(s, i, middle) < timeUs) low = middle + 1
    else high = middle - 1
  }
  return -1
}

function giveNewest(s: Float64Array, i: number, cost: number): void {
  let left = cost
  while (left > 0 && (s[i + END] as number) > (s[i + FIRST] as number)) {
    const newest = (s[i + END] as number) - 1
    const given = Math.min(left, countOf(s, i, newest))
    giveEntry(s, i, newest, given)
    left -= given
  }
}

/** Takes `cost` out of one entry; an entry that is used up disappears. */
function giveEntry(s: Float64Array, i: number, entry: number, cost: number): void {
  const count = countOf(s, i, entry)
  const given = Math.min(count, cost)
  s[i + TOTAL] = (s[i + TOTAL] as number) - given
  if (given < count) {
    setCount(s, i, entry, count - given)
    return
  }
  const behind = i + ENTRIES + (entry + 1) * ENTRY_WORDS
  const end = s[i + END] as number
  moveWords(s, behind - ENTRY_WORDS, behind, (end - entry - 1) * ENTRY_WORDS)
  clearEntries(s, i, end - 1, 1)
  s[i + END] = end - 1
}

/** Starts anew at `atUs` with everything that is used as one entry. */
function gather(s: Float64Array, i: number, atUs: number, permits: number): void {
  clearEntries(s, i, 0, s[i + END] as number)
  s[i + AT] = atUs
  s[i + FIRST] = 0
  s[i + END] = 0
  s[i + TOTAL] = permits
  if (permits === 0) return
  put(s, i, 0, atUs, permits)
  s[i + END] = 1
}
