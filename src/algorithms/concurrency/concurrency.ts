/**
 * Concurrency: how many run at once. A permit stays in use until it is released, or until its lease has run out. See concurrency.md.
 *
 * State: [atUs, last token, first token, total, end, held, in line, soonest, latest, then `end` entries of (token, count, expiresUs)]. Entries stand in the
 * order of their tokens. An entry is a lease of `count` permits, or, if `count` is IN_LINE or more, a caller that waits and decides by the
 * capacity `count` - IN_LINE; one that counts nothing was removed. `total` permits are in `held` leases. No entry expires before `soonest`, and
 * the last one does at `latest`.
 *
 * A token is the time at which it was given out, or one more than the last: so tokens of a key increase, and each names one lease.
 *
 * A take while nothing has expired reads no entry and writes one. A release finds its entry by halves. Removed entries leave when a quarter
 * of all
 * counts nothing.
 */
import { type Algorithm, limitOf, type ReleasedLimit, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, invalid, MAX_FILL_US, onlyOptionsOf, permitsOf } from '../rate.ts'
import { clearWords } from '../words.ts'

const AT = 0
const LAST = 1
const FIRST = 2
const TOTAL = 3
const END = 4
const HELD = 5
const WAITING = 6
const SOONEST = 7
const LATEST = 8
const ENTRIES = 9
const ENTRY_WORDS = 3
const COUNT = 1
const EXPIRES = 2

/** Above all permits. */
const IN_LINE = 1_099_511_627_776
/** So many leases of one key at most, and so many where they never run out. */
const MOST_LEASES = 1_000
const MOST_ENDLESS = 100_000
/** So many stand in line for one key at most; the others wait without a place. */
const MOST_IN_LINE = 64
/** How long a place in line is kept for a caller that does not ask again. */
const LINE_US = 1_000_000
/** Room for entries comes so many at a time, but for the first few: as long as a state is small (codec.ts), Redis writes it as a whole. */
const CHUNK = 4
const FEW = 3

const SHORTEST_LEASE_US = 100_000

export interface ConcurrencyOptions {
  /** How many permits may be held at once: whole, 1 to 1,000,000,000. With a lease at most 1,000 calls hold them, without at most 100,000. */
  readonly max: number
  /**
   * After how long a permit that is not renewed is free again: milliseconds or `'30s'`, from 100 ms to 366 days. Holders renew it every third of that, so
   * only the places of processes that died or stood still run out. Required on every store that other processes share. Default: never.
   */
  readonly lease?: Duration
}

/** No more than `max` at once: a place is taken until it is released. */
export function concurrency(options: ConcurrencyOptions): ConcurrencyLimit {
  onlyOptionsOf('concurrency', options, ['max', 'lease'])
  const { max, lease } = options
  const figures = [permitsOf(max, 'concurrency max'), lease === undefined ? 0 : leaseUs(lease)]
  const data = lease === undefined ? { type: 'concurrency' as const, max } : { type: 'concurrency' as const, max, lease }
  return limitOf(data, concurrencyAlgorithm.ruleOf(figures)) as ConcurrencyLimit
}

function leaseUs(lease: Duration): number {
  const us = durationUs(lease, 'concurrency lease')
  if (us >= SHORTEST_LEASE_US) return us
  throw invalid('concurrency lease', lease, 'must be at least 100 ms: it is renewed every third of that')
}

export type ConcurrencyLimit = ReleasedLimit & { readonly type: 'concurrency'; readonly max: number; readonly lease?: Duration }

interface ConcurrencyRule extends Rule {
  /** Infinity where there is no lease. */
  readonly leaseUs: number
  readonly mostLeases: number
}

export const concurrencyAlgorithm: Algorithm<ConcurrencyRule> = {
  type: 'concurrency',
  bookable: false,
  spaced: false,
  untilReleased: true,

  ruleOf(figures) {
    const capacity = figures[0] as number
    const us = figures[1] as number
    const mostLeases = us === 0 ? MOST_ENDLESS : MOST_LEASES
    return Object.freeze({
      algorithm: concurrencyAlgorithm,
      capacity,
      figures,
      numbers: figures.join(' '),
      windowUs: us === 0 ? MAX_FILL_US : us,
      // Twice what it admits, for leases that come back after the store lost its data.
      words: wordsIn(roomFor(2 * Math.min(capacity, mostLeases) + MOST_IN_LINE)),
      freshWords: ENTRIES,
      endless: us === 0,
      leaseUs: us === 0 ? Number.POSITIVE_INFINITY : us,
      mostLeases,
    })
  },

  neededWords(s, i) {
    const end = s[i + END] as number
    return wordsIn(end < FEW ? end + 1 : roomFor(end + 1))
  },

  /** A state dated more than one lease ahead is re-dated: every lease has as long to go as it had then. */
  repair(own, s, i, nowUs) {
    const atUs = s[i + AT] as number
    if (atUs - nowUs <= own.windowUs) return false
    lapse(s, i, atUs)
    const backUs = atUs - nowUs
    for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
      if (countAt(s, i, entry) > 0) setExpires(s, i, entry, expiresAt(s, i, entry) - backUs)
    }
    if (liveEntries(s, i) > 0) {
      s[i + SOONEST] = (s[i + SOONEST] as number) - backUs
      s[i + LATEST] = (s[i + LATEST] as number) - backUs
    }
    s[i + AT] = nowUs
    return true
  },

  used(_own, s, i, nowUs) {
    return totalAt(s, i, effectiveUs(s, i, nowUs))
  },

  untilUs(own, s, i, nowUs, room) {
    return freeInUs(own, s, i, nowUs, room, 0)
  },

  resetUs(own, s, i, nowUs) {
    return idleInUs(own, s, i, nowUs)
  },

  /** Answers by how much the token is above now. */
  charge(own, to, s, i, nowUs, cost) {
    forgetIfIdle(own, s, i, nowUs)
    const atUs = effectiveUs(s, i, nowUs)
    lapse(s, i, atUs)
    makeRoom(to, s, i)
    const token = nextToken(s, i, atUs)
    append(s, i, token, cost, atUs + to.leaseUs)
    s[i + HELD] = (s[i + HELD] as number) + 1
    s[i + TOTAL] = (s[i + TOTAL] as number) + cost
    s[i + AT] = atUs
    return token - nowUs
  },

  /** Releases what was given out under the token `ofUs`, or gives up a place in line. */
  giveBack(_own, s, i, nowUs, cost, ofUs, _booked) {
    const atUs = effectiveUs(s, i, nowUs)
    const entry = ofUs < 0 ? -1 : entryOf(s, i, ofUs)
    if (entry < 0 || !isLive(s, i, entry, atUs)) return -1
    const count = countAt(s, i, entry)
    if (cost === 0 && count < IN_LINE) return -1
    const given = count >= IN_LINE ? 0 : Math.min(count, cost)
    if (given > 0 && given < count) {
      setCount(s, i, entry, count - given)
      s[i + TOTAL] = (s[i + TOTAL] as number) - given
    } else remove(s, i, entry)
    s[i + AT] = atUs
    return given
  },

  /**
   * A lease that the state does not know was lost with an earlier state, so it is written anew: one that the state may have removed is not.
   */
  renew(own, to, s, i, nowUs, tokens, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    let renewed = 0
    for (let k = 0; k < tokens.length; k += 1) {
      if (isExtended(s, i, atUs, tokens[k] as number, atUs + to.leaseUs)) renewed += 1
    }
    const isLost = idleInUs(own, s, i, nowUs) === 0 || isUnknown(s, i, tokens[0] as number)
    if (renewed === 0 && cost > 0 && isLost && hasRoom(own, s, i, atUs)) {
      forgetIfIdle(own, s, i, nowUs)
      adopt(own, s, i, atUs, tokens[0] as number, cost, atUs + to.leaseUs)
      renewed = 1
    }
    if (renewed > 0) s[i + AT] = atUs
    return renewed
  },

  inLineUs(own, s, i, nowUs, room, place) {
    return freeInUs(own, s, i, nowUs, room, place)
  },

  stand(own, to, s, i, nowUs, place) {
    forgetIfIdle(own, s, i, nowUs)
    const atUs = effectiveUs(s, i, nowUs)
    const untilUs = atUs + (to.endless === true ? to.leaseUs : LINE_US)
    const entry = inLineAt(s, i, atUs, place)
    if (entry >= 0) {
      setCount(s, i, entry, IN_LINE + to.capacity)
      extend(s, i, entry, untilUs)
      s[i + AT] = atUs
      return place
    }
    if (!hasRoom(own, s, i, atUs) || waitingAt(s, i, atUs) >= MOST_IN_LINE) return -1
    lapse(s, i, atUs)
    makeRoom(own, s, i)
    const token = nextToken(s, i, atUs)
    append(s, i, token, IN_LINE + to.capacity, untilUs)
    s[i + WAITING] = (s[i + WAITING] as number) + 1
    s[i + AT] = atUs
    return token
  },

  placesIn(rule) {
    return roomIn(rule)
  },

  hasToken(s, i, token) {
    const entry = entryOf(s, i, token)
    return entry >= 0 && countAt(s, i, entry) > 0
  },

  fields(_own, s, i) {
    const fields: Record<string, number> = { atUs: s[i + AT] as number, lastToken: s[i + LAST] as number }
    for (let entry = 0; entry < (s[i + END] as number); entry++) {
      const count = countAt(s, i, entry)
      if (count === 0) continue
      const token = tokenAt(s, i, entry)
      fields[count >= IN_LINE ? `${token} in line for` : `${token}`] = count >= IN_LINE ? count - IN_LINE : count
      fields[`${token} until`] = expiresAt(s, i, entry)
    }
    return fields
  },
}

function wordsIn(entries: number): number {
  return ENTRIES + entries * ENTRY_WORDS
}

function roomFor(entries: number): number {
  return Math.ceil(entries / CHUNK) * CHUNK
}

/** How many entries a state under a rule has room for. */
function roomIn(rule: ConcurrencyRule): number {
  return (rule.words - ENTRIES) / ENTRY_WORDS
}

function effectiveUs(s: Float64Array, i: number, nowUs: number): number {
  return Math.max(s[i + AT] as number, nowUs)
}

function tokenAt(s: Float64Array, i: number, entry: number): number {
  return s[i + ENTRIES + entry * ENTRY_WORDS] as number
}

function countAt(s: Float64Array, i: number, entry: number): number {
  return s[i + ENTRIES + entry * ENTRY_WORDS + COUNT] as number
}

function expiresAt(s: Float64Array, i: number, entry: number): number {
  return s[i + ENTRIES + entry * ENTRY_WORDS + EXPIRES] as number
}

function setCount(s: Float64Array, i: number, entry: number, count: number): void {
  s[i + ENTRIES + entry * ENTRY_WORDS + COUNT] = count
}

function setExpires(s: Float64Array, i: number, entry: number, expiresUs: number): void {
  s[i + ENTRIES + entry * ENTRY_WORDS + EXPIRES] = expiresUs
}

function put(s: Float64Array, i: number, entry: number, token: number, count: number, expiresUs: number): void {
  s[i + ENTRIES + entry * ENTRY_WORDS] = token
  setCount(s, i, entry, count)
  setExpires(s, i, entry, expiresUs)
}

/** How many entries count something, those that have expired included. */
function liveEntries(s: Float64Array, i: number): number {
  return (s[i + HELD] as number) + (s[i + WAITING] as number)
}

function isLive(s: Float64Array, i: number, entry: number, atUs: number): boolean {
  return countAt(s, i, entry) > 0 && expiresAt(s, i, entry) > atUs
}

/** Whether some entry may have expired. */
function mayLapse(s: Float64Array, i: number, atUs: number): boolean {
  return liveEntries(s, i) > 0 && (s[i + SOONEST] as number) <= atUs
}

/** The entry with a token, or -1. */
function entryOf(s: Float64Array, i: number, token: number): number {
  const entry = entryFrom(s, i, token)
  return entry < (s[i + END] as number) && tokenAt(s, i, entry) === token ? entry : -1
}

/** The first entry with this token or a later one. */
function entryFrom(s: Float64Array, i: number, token: number): number {
  let low = 0
  let high = s[i + END] as number
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (tokenAt(s, i, middle) < token) low = middle + 1
    else high = middle
  }
  return low
}

/** A key that holds nothing is kept while its next token could be one that was given out, but no longer than one lease. */
function idleInUs(own: ConcurrencyRule, s: Float64Array, i: number, nowUs: number): number {
  const last = s[i + LAST] as number
  const sinceUs = last === 0 ? 0 : Math.min(last + 1, (s[i + AT] as number) + own.windowUs)
  return Math.max(0, Math.max(s[i + LATEST] as number, sinceUs) - nowUs)
}

/** An idle state may have been dropped, so it has to be like one that never was. */
function forgetIfIdle(own: ConcurrencyRule, s: Float64Array, i: number, nowUs: number): void {
  if ((s[i + LAST] as number) > 0 && idleInUs(own, s, i, nowUs) === 0) clearWords(s, i, wordsIn(s[i + END] as number))
}

/** Permits in use. */
function totalAt(s: Float64Array, i: number, atUs: number): number {
  let total = s[i + TOTAL] as number
  if (!mayLapse(s, i, atUs)) return total
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    const count = countAt(s, i, entry)
    if (count < IN_LINE && expiresAt(s, i, entry) <= atUs) total -= count
  }
  return total
}

function heldAt(s: Float64Array, i: number, atUs: number): number {
  if (!mayLapse(s, i, atUs)) return s[i + HELD] as number
  let held = 0
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    if (countAt(s, i, entry) < IN_LINE && isLive(s, i, entry, atUs)) held += 1
  }
  return held
}

function waitingAt(s: Float64Array, i: number, atUs: number): number {
  if ((s[i + WAITING] as number) === 0) return 0
  let waiting = 0
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    if (countAt(s, i, entry) >= IN_LINE && isLive(s, i, entry, atUs)) waiting += 1
  }
  return waiting
}

/**
 * How long until a call fits that leaves `room` beside it, if no permit is released or renewed and no caller leaves the line. `place`: its
 * own in line, 0 without one.
 */
function freeInUs(own: ConcurrencyRule, s: Float64Array, i: number, nowUs: number, room: number, place: number): number {
  const atUs = effectiveUs(s, i, nowUs)
  let untilUs = nowUs
  if ((s[i + TOTAL] as number) > room) untilUs = Math.max(untilUs, roomAtUs(s, i, atUs, room))
  if ((s[i + HELD] as number) >= own.mostLeases && heldAt(s, i, atUs) >= own.mostLeases)
    untilUs = Math.max(untilUs, nextLapseUs(s, i, atUs))
  if ((s[i + WAITING] as number) > 0) untilUs = Math.max(untilUs, firstInLineUs(s, i, atUs, room, place))
  return untilUs - nowUs
}

/** When at most `room` permits are in use: the first time at which enough leases have run out, searched for by halves. */
function roomAtUs(s: Float64Array, i: number, atUs: number, room: number): number {
  const total = totalAt(s, i, atUs)
  if (total <= room) return 0
  const firstUs = nextLapseUs(s, i, atUs)
  if (lapsedBy(s, i, atUs, firstUs) >= total - room) return firstUs
  let early = firstUs
  let late = lastLapseUs(s, i)
  if (lapsedBy(s, i, atUs, late) < total - room) return Number.POSITIVE_INFINITY
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2)
    if (lapsedBy(s, i, atUs, middle) >= total - room) late = middle
    else early = middle
  }
  return late
}

/** When the next lease runs out. */
function nextLapseUs(s: Float64Array, i: number, atUs: number): number {
  let nextUs = s[i + LATEST] as number
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    if (countAt(s, i, entry) < IN_LINE && isLive(s, i, entry, atUs)) nextUs = Math.min(nextUs, expiresAt(s, i, entry))
  }
  return nextUs
}

/** When the last of those leases runs out that do. */
function lastLapseUs(s: Float64Array, i: number): number {
  let lastUs = 0
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    const expiresUs = expiresAt(s, i, entry)
    if (expiresUs < Number.POSITIVE_INFINITY) lastUs = Math.max(lastUs, expiresUs)
  }
  return lastUs
}

/** The permits of leases that run out until a time. */
function lapsedBy(s: Float64Array, i: number, atUs: number, untilUs: number): number {
  let lapsed = 0
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    const count = countAt(s, i, entry)
    if (count < IN_LINE && isLive(s, i, entry, atUs) && expiresAt(s, i, entry) <= untilUs) lapsed += count
  }
  return lapsed
}

/**
 * When no caller is left in line before a place, or at all, that a call must not overtake: one whose capacity is larger than `room`. A call
 * by a larger capacity may have what is kept for it.
 */
function firstInLineUs(s: Float64Array, i: number, atUs: number, room: number, place: number): number {
  const own = inLineAt(s, i, atUs, place)
  const end = own >= 0 ? own : (s[i + END] as number)
  let untilUs = 0
  for (let entry = 0; entry < end; entry += 1) {
    if (countAt(s, i, entry) - IN_LINE > room && isLive(s, i, entry, atUs)) untilUs = Math.max(untilUs, expiresAt(s, i, entry))
  }
  return untilUs
}

/** The entry of a caller in line, or -1. */
function inLineAt(s: Float64Array, i: number, atUs: number, place: number): number {
  const entry = place > 0 ? entryOf(s, i, place) : -1
  return entry >= 0 && countAt(s, i, entry) >= IN_LINE && isLive(s, i, entry, atUs) ? entry : -1
}

/** Removes what has expired. */
function lapse(s: Float64Array, i: number, atUs: number): void {
  if (!mayLapse(s, i, atUs)) return
  let soonestUs = 0
  let latestUs = 0
  for (let entry = 0; entry < (s[i + END] as number); entry += 1) {
    if (countAt(s, i, entry) > 0) {
      const expiresUs = expiresAt(s, i, entry)
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

/** Makes an entry one that counts nothing. */
function uncount(s: Float64Array, i: number, entry: number): void {
  const count = countAt(s, i, entry)
  if (count >= IN_LINE) s[i + WAITING] = (s[i + WAITING] as number) - 1
  else {
    s[i + HELD] = (s[i + HELD] as number) - 1
    s[i + TOTAL] = (s[i + TOTAL] as number) - count
  }
  setCount(s, i, entry, 0)
}

/** Drops the last entries that count nothing. */
function dropLast(s: Float64Array, i: number): void {
  let end = s[i + END] as number
  while (end > 0 && countAt(s, i, end - 1) === 0) {
    end -= 1
    put(s, i, end, 0, 0, 0)
  }
  s[i + END] = end
}

function remove(s: Float64Array, i: number, entry: number): void {
  const expiresUs = expiresAt(s, i, entry)
  uncount(s, i, entry)
  dropLast(s, i)
  if (expiresUs === (s[i + LATEST] as number)) s[i + LATEST] = latestOf(s, i, expiresUs)
  if (liveEntries(s, i) === 0) s[i + SOONEST] = 0
}

/** When the last entry expires, which is no later than `atMostUs`. Newest first: without a lease, or renewed together, one of them expires just then. */
function latestOf(s: Float64Array, i: number, atMostUs: number): number {
  let latestUs = 0
  let entry = (s[i + END] as number) - 1
  while (entry >= 0 && latestUs < atMostUs) {
    if (countAt(s, i, entry) > 0) latestUs = Math.max(latestUs, expiresAt(s, i, entry))
    entry -= 1
  }
  return latestUs
}

/** Room for one more entry: where many count nothing, or there is no more room, the others move together. */
function makeRoom(to: ConcurrencyRule, s: Float64Array, i: number): void {
  const end = s[i + END] as number
  const isSparse = end % CHUNK === 0 && 4 * liveEntries(s, i) <= 3 * end
  if (end === 0 || (!isSparse && end < roomIn(to))) return
  let next = 0
  for (let entry = 0; entry < end; entry += 1) {
    if (countAt(s, i, entry) > 0) {
      if (next < entry) put(s, i, next, tokenAt(s, i, entry), countAt(s, i, entry), expiresAt(s, i, entry))
      next += 1
    }
  }
  clearWords(s, i + wordsIn(next), (end - next) * ENTRY_WORDS)
  s[i + END] = next
}

function hasRoom(own: ConcurrencyRule, s: Float64Array, i: number, atUs: number): boolean {
  return heldAt(s, i, atUs) + waitingAt(s, i, atUs) < roomIn(own)
}

function nextToken(s: Float64Array, i: number, atUs: number): number {
  const token = Math.max((s[i + LAST] as number) + 1, atUs)
  if ((s[i + LAST] as number) === 0) s[i + FIRST] = token
  s[i + LAST] = token
  return token
}

/** Adds an entry behind all others. */
function append(s: Float64Array, i: number, token: number, count: number, expiresUs: number): void {
  const end = s[i + END] as number
  put(s, i, end, token, count, expiresUs)
  s[i + END] = end + 1
  s[i + SOONEST] = liveEntries(s, i) === 0 ? expiresUs : Math.min(s[i + SOONEST] as number, expiresUs)
  s[i + LATEST] = Math.max(s[i + LATEST] as number, expiresUs)
}

/** Whether a lease is held: then it runs until that time, or longer if it did already. */
function isExtended(s: Float64Array, i: number, atUs: number, token: number, expiresUs: number): boolean {
  const entry = entryOf(s, i, token)
  if (entry < 0 || countAt(s, i, entry) >= IN_LINE || !isLive(s, i, entry, atUs)) return false
  extend(s, i, entry, expiresUs)
  return true
}

function extend(s: Float64Array, i: number, entry: number, expiresUs: number): void {
  const laterUs = Math.max(expiresAt(s, i, entry), expiresUs)
  setExpires(s, i, entry, laterUs)
  s[i + LATEST] = Math.max(s[i + LATEST] as number, laterUs)
}

/** Whether a token was given out before this state began, or after what it knows of: by a state that was lost. */
function isUnknown(s: Float64Array, i: number, token: number): boolean {
  return token < (s[i + FIRST] as number) || token > (s[i + LAST] as number)
}

/** Counts a lease that a lost state gave out. What that gave out until now may come as well. */
function adopt(own: ConcurrencyRule, s: Float64Array, i: number, atUs: number, token: number, cost: number, expiresUs: number): void {
  lapse(s, i, atUs)
  makeRoom(own, s, i)
  if ((s[i + LAST] as number) === 0) {
    s[i + FIRST] = Math.max(atUs, token + 1)
    s[i + LAST] = Math.max(atUs, token)
  }
  s[i + LAST] = Math.max(s[i + LAST] as number, token)
  const before = entryFrom(s, i, token)
  append(s, i, token, cost, expiresUs)
  for (let entry = (s[i + END] as number) - 1; entry > before; entry -= 1) {
    put(s, i, entry, tokenAt(s, i, entry - 1), countAt(s, i, entry - 1), expiresAt(s, i, entry - 1))
  }
  put(s, i, before, token, cost, expiresUs)
  s[i + HELD] = (s[i + HELD] as number) + 1
  s[i + TOTAL] = (s[i + TOTAL] as number) + cost
}
