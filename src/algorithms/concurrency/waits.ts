/**
 * How long until a call fits, if no permit is released or renewed and no caller leaves the line. A
 * refusal looks at all leases for it, and at none where permits have no lease; a grant, while
 * nothing has expired and nobody stands in line, at none.
 */
import {
  COUNT,
  ENTRIES,
  ENTRY_WORDS,
  EXPIRES,
  effectiveUs,
  endOf,
  entryOf,
  HELD,
  IN_LINE,
  isLease,
  isLive,
  LATEST,
  mayLapse,
  SOONEST,
  TOTAL,
  WAITING,
} from './entries.ts'

/**
 * How long until a call fits that leaves `room` beside it. `place`: its own in line, 0 without one.
 * `mostLeases`: so many at most, whatever they hold.
 */
export function freeInUs(s: Float64Array, i: number, nowUs: number, mostLeases: number, room: number, place: number): number {
  if ((s[i + TOTAL] as number) <= room && (s[i + HELD] as number) < mostLeases && (s[i + WAITING] as number) === 0) return 0
  const atUs = effectiveUs(s, i, nowUs)
  const roomUs = (s[i + TOTAL] as number) > room ? roomAtUs(s, i, atUs, room) : 0
  const leaseUs = (s[i + HELD] as number) >= mostLeases && heldAt(s, i, atUs) >= mostLeases ? nextLapseUs(s, i, atUs) : 0
  const lineUs = (s[i + WAITING] as number) > 0 ? firstInLineUs(s, i, atUs, room, place) : 0
  return Math.max(nowUs, roomUs, leaseUs, lineUs) - nowUs
}

/** Permits in use. */
export function totalAt(s: Float64Array, i: number, atUs: number): number {
  return mayLapse(s, i, atUs) ? (s[i + TOTAL] as number) - lapsedAt(s, i, atUs) : (s[i + TOTAL] as number)
}

/** The permits of leases that have run out. */
function lapsedAt(s: Float64Array, i: number, atUs: number): number {
  let lapsed = 0
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if (isLease(s, entry) && (s[entry + EXPIRES] as number) <= atUs) lapsed += s[entry + COUNT] as number
  }
  return lapsed
}

/** How many leases run. */
export function heldAt(s: Float64Array, i: number, atUs: number): number {
  if (!mayLapse(s, i, atUs)) return s[i + HELD] as number
  let held = 0
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if (isLease(s, entry) && isLive(s, entry, atUs)) held += 1
  }
  return held
}

/** How many callers stand in line. */
export function waitingAt(s: Float64Array, i: number, atUs: number): number {
  if ((s[i + WAITING] as number) === 0) return 0
  let waiting = 0
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if (!isLease(s, entry) && isLive(s, entry, atUs)) waiting += 1
  }
  return waiting
}

/** The entry of a caller in line, or -1. */
export function inLineAt(s: Float64Array, i: number, atUs: number, place: number): number {
  const entry = place > 0 ? entryOf(s, i, place) : -1
  return entry >= 0 && !isLease(s, entry) && isLive(s, entry, atUs) ? entry : -1
}

/**
 * When no caller is left in line before a place, or at all, that a call must not overtake: one
 * whose capacity is larger than `room`. A call by a larger capacity may have what is kept for it.
 */
function firstInLineUs(s: Float64Array, i: number, atUs: number, room: number, place: number): number {
  const own = inLineAt(s, i, atUs, place)
  const end = own >= 0 ? own : endOf(s, i)
  let untilUs = 0
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if ((s[entry + COUNT] as number) - IN_LINE > room && isLive(s, entry, atUs)) untilUs = Math.max(untilUs, s[entry + EXPIRES] as number)
  }
  return untilUs
}

/**
 * When at most `room` permits are in use: the first time at which enough leases have run out,
 * searched for by halves.
 */
function roomAtUs(s: Float64Array, i: number, atUs: number, room: number): number {
  const total = totalAt(s, i, atUs)
  if (total <= room) return 0
  // Without a lease nothing runs out, however many there are.
  if ((s[i + SOONEST] as number) === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
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
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if (isLease(s, entry) && isLive(s, entry, atUs)) nextUs = Math.min(nextUs, s[entry + EXPIRES] as number)
  }
  return nextUs
}

/** When the last of those leases runs out that do. */
function lastLapseUs(s: Float64Array, i: number): number {
  let lastUs = 0
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    const expiresUs = s[entry + EXPIRES] as number
    if (expiresUs < Number.POSITIVE_INFINITY) lastUs = Math.max(lastUs, expiresUs)
  }
  return lastUs
}

/** The permits of leases that run out until a time. */
function lapsedBy(s: Float64Array, i: number, atUs: number, untilUs: number): number {
  let lapsed = 0
  const end = endOf(s, i)
  for (let entry = i + ENTRIES; entry < end; entry += ENTRY_WORDS) {
    if (isLease(s, entry) && isLive(s, entry, atUs) && (s[entry + EXPIRES] as number) <= untilUs) lapsed += s[entry + COUNT] as number
  }
  return lapsed
}
