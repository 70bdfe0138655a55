/**
 * The words of a state of concurrency, and its entries: leases, and callers that wait, in the order
 * of their tokens. An entry that counts nothing was removed. An entry is known by where it stands:
 * by the index of its first word.
 *
 * A take while nothing has expired reads no entry and writes one. A release finds its entry by
 * halves. Removed entries leave when a quarter of all counts nothing. Loops are in functions of
 * their own, behind a look whether they are needed: what is small is compiled into its caller.
 */
import { clearWords } from '../words.ts'

export const AT = 0
export const LAST = 1
export const FIRST = 2
export const TOTAL = 3
export const END = 4
export const HELD = 5
export const WAITING = 6
export const SOONEST = 7
export const LATEST = 8
export const ENTRIES = 9

/** The words of an entry: its token, how many permits it holds, and when it expires. */
export const ENTRY_WORDS = 3
export const COUNT = 1
export const EXPIRES = 2

/** The count of a caller in line is this and its capacity: above all permits. */
export const IN_LINE = 1_099_511_627_776

/**
 * Room for entries comes so many at a time, but for the first few: as long as a state is small
 * (codec.ts), Redis writes it as a whole.
 */
const CHUNK = 4
const FEW = 3

/** How many words so many entries take, in the room that comes for them. */
export function wordsFor(entries: number): number {
  return ENTRIES + (entries <= FEW ? entries : roomFor(entries)) * ENTRY_WORDS
}

export function roomFor(entries: number): number {
  return Math.ceil(entries / CHUNK) * CHUNK
}

/** How many entries so many words have room for. */
function entriesIn(words: number): number {
  return (words - ENTRIES) / ENTRY_WORDS
}

/** Where the next entry would stand. */
export function endOf(s: Float64Array, i: number): number {
  return i + ENTRIES + (s[i + END] as number) * ENTRY_WORDS
}

/** A clock that stepped back stands still until it has caught up. */
export function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

/** How many entries count something, those that have expired included. */
export function liveEntries(s: Float64Array, i: number): number {
  return (s[i + HELD] as number) + (s[i + WAITING] as number)
}

export function isLive(s: Float64Array, entry: number, atUs: number): boolean {
  return (s[entry + COUNT] as number) > 0 && (s[entry + EXPIRES] as number) > atUs
}

/** Whether it is a lease, and not a caller in line. */
export function isLease(s: Float64Array, entry: number): boolean {
  return (s[entry + COUNT] as number) < IN_LINE
}

/** Whether some entry may have expired. */
export function mayLapse(s: Float64Array, i: number, atUs: number): boolean {
  return (s[i + SOONEST] as number) <= atUs && liveEntries(s, i) > 0
}

/** The entry with a token, or -1. */
export function entryOf(s: Float64Array, i: number, token: number): number {
  const entry = entryFrom(s, i, token)
  return entry < endOf(s, i) && (s[entry] as number) === token ? entry : -1
}

/** The first entry with this token or a later one, or where the next one would stand. */
export function entryFrom(s: Float64Array, i: number, token: number): number {
  let low = 0
  let high = s[i + END] as number
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if ((s[i + ENTRIES + middle * ENTRY_WORDS] as number) < token) low = middle + 1
    else high = middle
  }
  return i + ENTRIES + low * ENTRY_WORDS
}

/** Adds an entry behind all others. */
export function append(s: Float64Array, i: number, token: number, count: number, expiresUs: number): void {
  put(s, endOf(s, i), token, count, expiresUs)
  s[i + END] = (s[i + END] as number) + 1
  s[i + SOONEST] = liveEntries(s, i) === 0 ? expiresUs : Math.min(s[i + SOONEST] as number, expiresUs)
  s[i + LATEST] = Math.max(s[i + LATEST] as number, expiresUs)
}

export function put(s: Float64Array, entry: number, token: number, count: number, expiresUs: number): void {
  s[entry] = token
  s[entry + COUNT] = count
  s[entry + EXPIRES] = expiresUs
}

/** Lets an entry run until that time, or longer if it does already. */
export function extend(s: Float64Array, i: number, entry: number, expiresUs: number): void {
  const laterUs = Math.max(s[entry + EXPIRES] as number, expiresUs)
  s[entry + EXPIRES] = laterUs
  s[i + LATEST] = Math.max(s[i + LATEST] as number, laterUs)
}

export function remove(s: Float64Array, i: number, entry: number): void {
  const expiresUs = s[entry + EXPIRES] as number
  uncount(s, i, entry)
  dropLast(s, i)
  if (liveEntries(s, i) === 0) {
    s[i + SOONEST] = 0
    s[i + LATEST] = 0
  } else if (expiresUs === (s[i + LATEST] as number)) s[i + LATEST] = latestOf(s, i, expiresUs)
}

/** Removes what has expired. */
export function lapse(s: Float64Array, i: number, atUs: number): void {
  if (mayLapse(s, i, atUs)) removeExpired(s, i, atUs)
}

function removeExpired(s: Float64Array, i: number, atUs: number): void {
  let soonestUs = 0
  let latestUs = 0
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if ((s[entry + COUNT] as number) > 0) {
      const expiresUs = s[entry + EXPIRES] as number
      if (expiresUs <= atUs) uncount(s, i, entry)
      else {
        soonestUs = soonestUs === 0 ? expiresUs : Math.min(soonestUs, expiresUs)
        latestUs = Math.max(latestUs, expiresUs)
      }
    }
  }
  s[i + SOONEST] = soonestUs
  s[i + LATEST] = latestUs
  dropLast(s, i)
}

/**
 * Room for one more entry: where many count nothing, or there is room for `most` only, the others
 * move together.
 */
export function makeRoom(s: Float64Array, i: number, most: number): void {
  const entries = s[i + END] as number
  if (entries > 0 && (entries >= most || (entries % CHUNK === 0 && 4 * liveEntries(s, i) <= 3 * entries))) moveTogether(s, i)
}

function moveTogether(s: Float64Array, i: number): void {
  let next = i + ENTRIES
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    const count = s[entry + COUNT] as number
    if (count > 0) {
      if (next < entry) put(s, next, s[entry] as number, count, s[entry + EXPIRES] as number)
      next += ENTRY_WORDS
    }
  }
  clearWords(s, next, end - next)
  s[i + END] = entriesIn(next - i)
}

/** Makes an entry one that counts nothing. */
function uncount(s: Float64Array, i: number, entry: number): void {
  const count = s[entry + COUNT] as number
  if (count >= IN_LINE) s[i + WAITING] = (s[i + WAITING] as number) - 1
  else {
    s[i + HELD] = (s[i + HELD] as number) - 1
    s[i + TOTAL] = (s[i + TOTAL] as number) - count
  }
  s[entry + COUNT] = 0
}

/** Drops the last entries that count nothing. */
function dropLast(s: Float64Array, i: number): void {
  let end = s[i + END] as number
  let entry = endOf(s, i) - ENTRY_WORDS
  while (end > 0 && (s[entry + COUNT] as number) === 0) {
    put(s, entry, 0, 0, 0)
    end -= 1
    entry -= ENTRY_WORDS
  }
  s[i + END] = end
}

/**
 * When the last entry expires, which is no later than `atMostUs`. Newest first: without a lease, or
 * renewed together, one of them expires just then.
 */
function latestOf(s: Float64Array, i: number, atMostUs: number): number {
  let latestUs = 0
  let entry = endOf(s, i) - ENTRY_WORDS
  while (entry >= i + ENTRIES && latestUs < atMostUs) {
    if ((s[entry + COUNT] as number) > 0) latestUs = Math.max(latestUs, s[entry + EXPIRES] as number)
    entry -= ENTRY_WORDS
  }
  return latestUs
}
