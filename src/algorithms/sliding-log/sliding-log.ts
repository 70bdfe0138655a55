/**
 * Sliding log: every admission is remembered until it is one window old. See sliding-log.md.
 *
 * State: [atUs, first, end, total, then entries of (timeUs, count)]. The entries from `first` to before `end` are held, oldest first, and
 * `total` is the sum of their counts; some may have left the window already, they are dropped with the next charge. Admissions of the same
 * microsecond are one entry, so there are never more entries than `limit`.
 */
import { type Algorithm, type EncodedState, type Limit, limitOf, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, notOurs, onlyOptionsOf, refused } from '../rate.ts'

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
  return limitOf({ type: 'slidingLog', limit, window }, (maxAheadUs) => slidingLogAlgorithm.ruleOf(figures, maxAheadUs))
}

export type SlidingLogLimit = Limit & { readonly type: 'slidingLog'; readonly limit: number; readonly window: Duration }

export const slidingLogAlgorithm: Algorithm = {
  type: 'slidingLog',
  bookable: false,

  words: (rule) => wordsOf(rule.capacity),

  neededWords(rule, s, i) {
    return wordsOf(Math.min((s[i + END] as number) - (s[i + FIRST] as number) + 1, rule.capacity))
  },

  fresh(_rule, s, i, nowUs) {
    clear(s, i, nowUs)
  },

  settle(rule, written, s, i, nowUs) {
    const renumbered = written.numbers !== rule.numbers
    if (renumbered) {
      repair(written, s, i, nowUs)
      const used = Math.min(usedAt(written, s, i, nowUs), rule.capacity)
      gather(s, i, datedUs(rule, s[i + AT] as number, nowUs), used)
    }
    return repair(rule, s, i, nowUs) || renumbered
  },

  waitUs(rule, s, i, nowUs, cost) {
    let surplus = usedAt(rule, s, i, nowUs) + cost - rule.capacity
    if (surplus <= 0) return 0
    let entry = firstLive(rule, s, i, nowUs)
    for (surplus -= countOf(s, i, entry); surplus > 0; surplus -= countOf(s, i, entry)) entry += 1
    return timeOf(s, i, entry) + rule.windowUs - nowUs
  },

  take,

  tryTake(rule, s, i, nowUs, cost) {
    if ((s[i + AT] as number) > nowUs) repair(rule, s, i, nowUs)
    const atUs = effectiveUs(s, i, nowUs)
    const leftUs = atUs - rule.windowUs
    const end = s[i + END] as number
    let first = s[i + FIRST] as number
    let used = s[i + TOTAL] as number
    while (first < end && timeOf(s, i, first) <= leftUs) used -= countOf(s, i, first++)
    if (used + cost > rule.capacity) return false
    s[i + FIRST] = first
    s[i + TOTAL] = used
    enter(rule, s, i, atUs, cost)
    return true
  },

  enteredUs: (s, i) => s[i + AT] as number,

  give(rule, s, i, nowUs, cost, ofUs) {
    if (ofUs < 0 ? usedAt(rule, s, i, nowUs) === 0 : entryAt(rule, s, i, nowUs, ofUs) < 0) return false
    dropDead(rule, s, i, nowUs)
    if (ofUs < 0) giveNewest(s, i, cost)
    else giveEntry(s, i, entryAt(rule, s, i, nowUs, ofUs), cost)
    s[i + AT] = effectiveUs(s, i, nowUs)
    return true
  },

  cancel: () => false,

  remaining(rule, s, i, nowUs) {
    return Math.max(0, rule.capacity - usedAt(rule, s, i, nowUs))
  },

  resetUs(rule, s, i, nowUs) {
    // An empty key is idle once its time no longer stands still.
    if (usedAt(rule, s, i, nowUs) === 0) return effectiveUs(s, i, nowUs) - nowUs
    return timeOf(s, i, (s[i + END] as number) - 1) + rule.windowUs - nowUs
  },

  encode(rule, s, i) {
    const members: Record<string, string> = { [`at ${s[i + AT]} limit ${rule.numbers}`]: '0' }
    for (let entry = s[i + FIRST] as number; entry < (s[i + END] as number); entry++) {
      members[`${timeOf(s, i, entry)} ${countOf(s, i, entry)}`] = `${timeOf(s, i, entry)}`
    }
    return members
  },

  ruleOf(figures, maxAheadUs) {
    const [capacity, windowUs] = figures as [number, number]
    const numbers = figures.join(' ')
    return Object.freeze({ algorithm: slidingLogAlgorithm, capacity, figures: Object.freeze([...figures]), numbers, windowUs, maxAheadUs })
  },
}

/** Reads what `encode` wrote: puts down its words and returns the numbers it was written under. Throws on anything else. */
export function decodeSlidingLog(encoded: EncodedState, s: Float64Array, i: number): string {
  const members = typeof encoded === 'string' ? [] : Object.keys(encoded)
  const head = members.map((member) => /^at (\d+) limit (\d+ \d+)$/.exec(member)).find((match) => match !== null)
  const others = members.filter((member) => member !== head?.[0])
  if (head === undefined || !others.every((member) => /^\d+ \d+$/.test(member))) {
    throw notOurs('slidingLog', encoded, "must be a sorted set of one member 'at ... limit ...' and one 'time count' for each admission")
  }
  clear(s, i, Number(head[1]))
  const entries = others.map((member) => member.split(' ').map(Number) as [number, number])
  for (const [timeUs, count] of entries.sort(([a], [b]) => a - b)) {
    put(s, i, s[i + END] as number, timeUs, count)
    s[i + END] = (s[i + END] as number) + 1
    s[i + TOTAL] = (s[i + TOTAL] as number) + count
  }
  return head[2] as string
}

/** With room for a quarter more: the entries move to the front when they reach the end, and should not do so at every charge. */
function wordsOf(entries: number): number {
  return ENTRIES + (entries + (entries >> 2)) * ENTRY_WORDS
}

function take(rule: Rule, s: Float64Array, i: number, nowUs: number, cost: number): void {
  dropDead(rule, s, i, nowUs)
  enter(rule, s, i, effectiveUs(s, i, nowUs), cost)
}

/** Adds an admission: to the newest entry if that is of the same microsecond. No entry is newer than the state's date. */
function enter(rule: Rule, s: Float64Array, i: number, atUs: number, cost: number): void {
  const newest = (s[i + END] as number) - 1
  if (s[i + AT] === atUs && newest >= (s[i + FIRST] as number) && timeOf(s, i, newest) === atUs) {
    setCount(s, i, newest, countOf(s, i, newest) + cost)
  } else {
    append(rule, s, i, atUs, cost)
  }
  s[i + TOTAL] = (s[i + TOTAL] as number) + cost
  s[i + AT] = atUs
}

function clear(s: Float64Array, i: number, atUs: number): void {
  s[i + AT] = atUs
  s[i + FIRST] = 0
  s[i + END] = 0
  s[i + TOTAL] = 0
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

/** How many permits still count. */
function usedAt(rule: Rule, s: Float64Array, i: number, nowUs: number): number {
  return (s[i + TOTAL] as number) - countsBefore(s, i, firstLive(rule, s, i, nowUs))
}

/** What the entries that are held but no longer live counted. */
function countsBefore(s: Float64Array, i: number, live: number): number {
  let counts = 0
  for (let entry = s[i + FIRST] as number; entry < live; entry++) counts += countOf(s, i, entry)
  return counts
}

function dropDead(rule: Rule, s: Float64Array, i: number, nowUs: number): void {
  s[i + TOTAL] = usedAt(rule, s, i, nowUs)
  s[i + FIRST] = firstLive(rule, s, i, nowUs)
}

/** Adds an entry behind the newest. Where the room behind is used up, the entries move to the front first. */
function append(rule: Rule, s: Float64Array, i: number, timeUs: number, count: number): void {
  const words = Math.min(s.length - i, wordsOf(rule.capacity))
  if (ENTRIES + ((s[i + END] as number) + 1) * ENTRY_WORDS > words) moveToFront(s, i)
  put(s, i, s[i + END] as number, timeUs, count)
  s[i + END] = (s[i + END] as number) + 1
}

function moveToFront(s: Float64Array, i: number): void {
  const first = s[i + FIRST] as number
  const end = s[i + END] as number
  const entries = i + ENTRIES
  s.copyWithin(entries, entries + first * ENTRY_WORDS, entries + end * ENTRY_WORDS)
  s[i + FIRST] = 0
  s[i + END] = end - first
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
  s.copyWithin(behind - ENTRY_WORDS, behind, i + ENTRIES + end * ENTRY_WORDS)
  s[i + END] = end - 1
}

/** Starts anew at `atUs` with everything that is used as one entry. */
function gather(s: Float64Array, i: number, atUs: number, used: number): void {
  clear(s, i, atUs)
  if (used === 0) return
  put(s, i, 0, atUs, used)
  s[i + END] = 1
  s[i + TOTAL] = used
}

/** What moves to new numbers keeps its date while it counts there, so that two sets of numbers in turn, with windows alike, cannot hold it for ever. */
function datedUs(rule: Rule, writtenUs: number, nowUs: number): number {
  return nowUs - writtenUs < rule.windowUs ? writtenUs : nowUs
}

/** A state dated more than one window ahead is re-dated: what counted then counts as admitted now. */
function repair(rule: Rule, s: Float64Array, i: number, nowUs: number): boolean {
  const atUs = s[i + AT] as number
  if (atUs - nowUs <= rule.windowUs) return false
  gather(s, i, nowUs, usedAt(rule, s, i, atUs))
  return true
}
