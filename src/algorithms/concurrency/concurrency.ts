/**
 * Concurrency: how many run at once. A permit stays in use until it is released, or until its lease
 * has run out. See concurrency.md.
 *
 * State: [atUs, last token, first token, total, end, held, in line, soonest, latest, then `end` entries of (token, count, expiresUs)]. Entries stand in the
 * order of their tokens. An entry is a lease of `count` permits, or, if `count` is IN_LINE or more,
 * a caller that waits and decides by the capacity `count` - IN_LINE; one that counts nothing was
 * removed. `total` permits are in `held` leases. No entry expires before `soonest`, and the last
 * one does at `latest`.
 *
 * A token is the time at which it was given out, or one more than the last: so tokens of a key
 * increase, and each names one lease.
 *
 * The state and its entries are in entries.ts, how long a call has to wait is in waits.ts.
 */
import { type Algorithm, type Format, limitOf, type ReleasedLimit, type Rule } from '../algorithm.ts'
import { type Duration, durationUs, invalid, MAX_COST, MAX_FILL_US, MAX_PERIOD_US, MAX_PERMITS, onlyOptionsOf, permitsOf } from '../rate.ts'
import {
  AT,
  append,
  COUNT,
  END,
  ENTRIES,
  ENTRY_WORDS,
  EXPIRES,
  effectiveUs,
  endOf,
  entryFrom,
  entryOf,
  extend,
  FIRST,
  HELD,
  IN_LINE,
  isLease,
  isLive,
  LAST,
  LATEST,
  lapse,
  liveEntries,
  makeRoom,
  put,
  remove,
  roomFor,
  SOONEST,
  TOTAL,
  WAITING,
  wordsFor,
} from './entries.ts'
import { freeInUs, heldAt, inLineAt, totalAt, waitingAt } from './waits.ts'

/** So many leases of one key at most, and so many where they never run out. */
const MOST_LEASES = 1_000
const MOST_ENDLESS = 100_000
/** So many stand in line for one key at most; the others wait without a place. */
const MOST_IN_LINE = 64
/** How long a place in line is kept for a caller that does not ask again. */
const LINE_US = 1_000_000
const SHORTEST_LEASE_US = 100_000

export interface ConcurrencyOptions {
  /**
   * How many permits may be held at once: whole, 1 to 1,000,000,000. With a lease at most 1,000
   * calls hold them, without at most 100,000.
   */
  readonly max: number
  /**
   * After how long a permit that is not renewed is free again, `'30s'`: 100 ms to 366 days. Holders
   * renew it every third of that, so only the places of processes that died or stood still run out.
   * Required on every store that other processes share. Default: never.
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
  readonly places: number
}

export const concurrencyAlgorithm: Algorithm<ConcurrencyRule> = {
  type: 'concurrency',
  bookable: false,
  spaced: false,
  untilReleased: true,

  isLimit(figures) {
    const capacity = figures[0] as number
    return capacity >= 1 && capacity <= MAX_PERMITS && (figures[1] as number) <= MAX_PERIOD_US
  },

  ruleOf(figures) {
    const capacity = figures[0] as number
    const us = figures[1] as number
    const mostLeases = us === 0 ? MOST_ENDLESS : MOST_LEASES
    // Twice what it admits, for leases that come back after the store lost its data.
    const places = roomFor(2 * Math.min(capacity, mostLeases) + MOST_IN_LINE)
    return Object.freeze({
      algorithm: concurrencyAlgorithm,
      capacity,
      figures,
      numbers: figures.join(' '),
      windowUs: us === 0 ? MAX_FILL_US : us,
      words: ENTRIES + places * ENTRY_WORDS,
      freshWords: ENTRIES,
      mostUsed: MAX_COST,
      endless: us === 0,
      leaseUs: us === 0 ? Number.POSITIVE_INFINITY : us,
      mostLeases,
      places,
    })
  },

  neededWords(s, i) {
    return wordsFor((s[i + END] as number) + 1)
  },

  /**
   * A state dated more than one lease ahead is re-dated: every lease has as long to go as it had
   * then.
   */
  repair(own, s, i, nowUs) {
    const atUs = s[i + AT] as number
    if (atUs - nowUs <= own.windowUs) return false
    lapse(s, i, atUs)
    const backUs = atUs - nowUs
    const end = endOf(s, i)
    for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
      if ((s[entry + COUNT] as number) > 0) s[entry + EXPIRES] = (s[entry + EXPIRES] as number) - backUs
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

  untilUs(own, s, i, nowUs, room, place) {
    return freeInUs(s, i, nowUs, own.mostLeases, room, place === undefined ? 0 : place)
  },

  resetUs(own, s, i, nowUs) {
    return idleInUs(own, s, i, nowUs)
  },

  /** Answers by how much the token is above now. */
  charge(own, to, s, i, nowUs, cost) {
    forgetIfIdle(own, s, i, nowUs)
    const atUs = effectiveUs(s, i, nowUs)
    lapse(s, i, atUs)
    makeRoom(s, i, to.places)
    const token = nextToken(s, i, atUs)
    append(s, i, token, cost, atUs + to.leaseUs)
    s[i + HELD] = (s[i + HELD] as number) + 1
    s[i + TOTAL] = (s[i + TOTAL] as number) + cost
    s[i + AT] = atUs
    return token - nowUs
  },

  /** Releases what was given out under the token `ofUs`, or gives up a place in line. */
  giveBack(_own, s, i, nowUs, cost, ofUs, _charge) {
    const atUs = effectiveUs(s, i, nowUs)
    const entry = ofUs < 0 ? -1 : entryOf(s, i, ofUs)
    if (entry < 0 || !isLive(s, entry, atUs)) return -1
    const count = s[entry + COUNT] as number
    if (cost === 0 && count < IN_LINE) return -1
    const given = count >= IN_LINE ? 0 : Math.min(count, cost)
    if (given > 0 && given < count) {
      s[entry + COUNT] = count - given
      s[i + TOTAL] = (s[i + TOTAL] as number) - given
    } else remove(s, i, entry)
    s[i + AT] = atUs
    return given
  },

  /**
   * A lease that the state does not know was lost with an earlier state, so it is written anew: one
   * that the state may have removed is not.
   */
  renew(own, to, s, i, nowUs, tokens, cost) {
    const atUs = effectiveUs(s, i, nowUs)
    let renewed = 0
    for (let k = 0; k < tokens.length; k += 1) {
      if (isExtended(s, i, atUs, tokens[k] as number, atUs + to.leaseUs)) renewed += 1
    }
    if (renewed === 0 && cost > 0 && isAdoptable(own, s, i, nowUs, tokens[0] as number)) {
      forgetIfIdle(own, s, i, nowUs)
      adopt(own, s, i, atUs, tokens[0] as number, cost, atUs + to.leaseUs)
      renewed = 1
    }
    if (renewed > 0) s[i + AT] = atUs
    return renewed
  },

  stand(own, to, s, i, nowUs, place) {
    forgetIfIdle(own, s, i, nowUs)
    const atUs = effectiveUs(s, i, nowUs)
    const untilUs = atUs + (to.endless === true ? to.leaseUs : LINE_US)
    const entry = inLineAt(s, i, atUs, place)
    if (entry >= 0) {
      s[entry + COUNT] = IN_LINE + to.capacity
      extend(s, i, entry, untilUs)
      s[i + AT] = atUs
      return place
    }
    if (!hasRoom(own, s, i, atUs) || waitingAt(s, i, atUs) >= MOST_IN_LINE) return -1
    lapse(s, i, atUs)
    makeRoom(s, i, own.places)
    const token = nextToken(s, i, atUs)
    append(s, i, token, IN_LINE + to.capacity, untilUs)
    s[i + WAITING] = (s[i + WAITING] as number) + 1
    s[i + AT] = atUs
    return token
  },

  hasToken(s, i, token) {
    const entry = entryOf(s, i, token)
    return entry >= 0 && (s[entry + COUNT] as number) > 0
  },

  fields(_own, s, i) {
    const fields: Record<string, number> = { atUs: s[i + AT] as number, lastToken: s[i + LAST] as number }
    for (let entry = i + ENTRIES; entry < endOf(s, i); entry += ENTRY_WORDS) {
      const [token, count, expiresUs] = s.subarray(entry, entry + ENTRY_WORDS) as unknown as [number, number, number]
      if (count === 0) continue
      fields[count >= IN_LINE ? `${token} in line for` : `${token}`] = count >= IN_LINE ? count - IN_LINE : count
      fields[`${token} until`] = expiresUs
    }
    return fields
  },
}

export const concurrencyFormat: Format = { format: 9, algorithm: concurrencyAlgorithm, figures: 2 }

function hasRoom(own: ConcurrencyRule, s: Float64Array, i: number, atUs: number): boolean {
  return heldAt(s, i, atUs) + waitingAt(s, i, atUs) < own.places
}

/**
 * A key that holds nothing is kept while its next token could be one that was given out, but no
 * longer than one lease.
 */
function idleInUs(own: ConcurrencyRule, s: Float64Array, i: number, nowUs: number): number {
  const last = s[i + LAST] as number
  const sinceUs = last === 0 ? 0 : Math.min(last + 1, (s[i + AT] as number) + own.windowUs)
  return Math.max(0, Math.max(s[i + LATEST] as number, sinceUs) - nowUs)
}

/**
 * An idle state may have been dropped, so it has to be like one that never was. When all entries
 * have expired, no words of them are left.
 */
function forgetIfIdle(own: ConcurrencyRule, s: Float64Array, i: number, nowUs: number): void {
  if ((s[i + LATEST] as number) > nowUs || idleInUs(own, s, i, nowUs) > 0) return
  lapse(s, i, nowUs)
  s[i + AT] = 0
  s[i + LAST] = 0
  s[i + FIRST] = 0
}

function nextToken(s: Float64Array, i: number, atUs: number): number {
  const last = s[i + LAST] as number
  const token = Math.max(last + 1, atUs)
  if (last === 0) s[i + FIRST] = token
  s[i + LAST] = token
  return token
}

/** Whether a lease is held: then it runs until that time, or longer if it did already. */
function isExtended(s: Float64Array, i: number, atUs: number, token: number, expiresUs: number): boolean {
  const entry = entryOf(s, i, token)
  if (entry < 0 || !isLease(s, entry) || !isLive(s, entry, atUs)) return false
  extend(s, i, entry, expiresUs)
  return true
}

/**
 * Whether a lease is counted again that the state does not hold: it cannot have ended it, and has
 * room for it.
 */
function isAdoptable(own: ConcurrencyRule, s: Float64Array, i: number, nowUs: number, token: number): boolean {
  const isLost = idleInUs(own, s, i, nowUs) === 0 || isUnknown(s, i, token)
  return isLost && hasRoom(own, s, i, effectiveUs(s, i, nowUs))
}

/**
 * Whether a token was given out before this state began, or after what it knows of: by a state that
 * was lost.
 */
function isUnknown(s: Float64Array, i: number, token: number): boolean {
  return token < (s[i + FIRST] as number) || token > (s[i + LAST] as number)
}

/** Counts a lease that a lost state gave out. What that gave out until now may come as well. */
function adopt(own: ConcurrencyRule, s: Float64Array, i: number, atUs: number, token: number, cost: number, expiresUs: number): void {
  lapse(s, i, atUs)
  makeRoom(s, i, own.places)
  if ((s[i + LAST] as number) === 0) {
    s[i + FIRST] = Math.max(atUs, token + 1)
    s[i + LAST] = Math.max(atUs, token)
  }
  s[i + LAST] = Math.max(s[i + LAST] as number, token)
  const before = entryFrom(s, i, token)
  append(s, i, token, cost, expiresUs)
  for (let entry = endOf(s, i) - ENTRY_WORDS; entry > before; entry -= ENTRY_WORDS) {
    const other = entry - ENTRY_WORDS
    put(s, entry, s[other] as number, s[other + COUNT] as number, s[other + EXPIRES] as number)
  }
  put(s, before, token, cost, expiresUs)
  s[i + HELD] = (s[i + HELD] as number) + 1
  s[i + TOTAL] = (s[i + TOTAL] as number) + cost
}
