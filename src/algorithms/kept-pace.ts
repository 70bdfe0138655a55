/**
 * The pace that a level keeps: as it was asked for, or where that cannot be counted exactly, the
 * nearest slower one that can.
 *
 * A level counts in units: a permit is `periodUs` of them, and `permits` drain in each microsecond.
 * Whole numbers are exact up to 2^52, and there has to be room for twice the capacity (the second
 * is for debt) and for what is booked ahead.
 */
import type { SluiceError } from '../errors.ts'
import type { Algorithm, Rule } from './algorithm.ts'
import { mulAddDivUp } from './arithmetic.ts'
import { DEFAULT_AHEAD_US, invalid, MOST_UNITS, type Pace } from './rate.ts'

/** Of capacity and bookings together. */
const MOST = MOST_UNITS - 1
/** Slower by less than one part in so many. A clock kept by NTP is off by a thousand times that. */
const PARTS = 1_000_000_000n

/** The rule of a limit, at the pace that is kept. `of` begins the message of a refusal. */
export function keptRule<R extends Rule>(algorithm: Algorithm<R>, capacity: number, asked: Pace, aheadUs = DEFAULT_AHEAD_US, of = ''): R {
  const kept = keptPace(capacity, asked, aheadUs)
  if (kept === undefined) throw unkept(algorithm, capacity, asked, aheadUs, of)
  const rule = algorithm.ruleOf([capacity, kept.permits, kept.periodUs])
  if (kept === asked) return rule
  const { permits, periodUs } = asked
  return Object.freeze({ ...rule, asked: { permits, periodUs, windowUs: mulAddDivUp(capacity, periodUs, 0, permits) } })
}

/** The same limit for a limiter that books further ahead than the default. */
export function bookedAhead<R extends Rule>(rule: R, aheadUs: number, of: string): R {
  const { algorithm, capacity, figures, asked } = rule
  if (aheadUs <= DEFAULT_AHEAD_US) return rule
  const pace = asked ?? { permits: figures[1] as number, periodUs: figures[2] as number }
  return keptRule(algorithm as unknown as Algorithm<R>, capacity, pace, aheadUs, of)
}

function keptPace(capacity: number, asked: Pace, aheadUs: number): Pace | undefined {
  const found = fittingPace(capacity, asked, aheadUs)
  if (found === undefined || found === asked) return found
  const askedOf = BigInt(asked.permits) * BigInt(found.periodUs)
  const slowerBy = askedOf - BigInt(found.permits) * BigInt(asked.periodUs)
  return slowerBy * PARTS < askedOf ? found : undefined
}

/**
 * The fastest pace that is no faster than this one, in lowest terms, and can be counted exactly:
 * down the Stern-Brocot tree, many steps at a time. Undefined: there is none.
 */
export function fittingPace(capacity: number, pace: Pace, aheadUs: number): Pace | undefined {
  if (2 * capacity * pace.periodUs + aheadUs * pace.permits <= MOST) return pace
  const [p, q, most] = [BigInt(pace.permits), BigInt(pace.periodUs), BigInt(MOST)]
  const units = (permits: bigint, periodUs: bigint) => 2n * BigInt(capacity) * periodUs + BigInt(aheadUs) * permits
  // a / b is not above the pace, c / d is. What lies between needs at least the units of both.
  let [a, b, c, d] = [0n, 1n, 1n, 0n]
  for (;;) {
    const above = c * q - p * d
    const up = within((p * b - a * q) / above, units(c, d), most - units(a, b))
    a += up * c
    b += up * d
    const down = within((above - 1n) / (p * b - a * q), units(a, b), most - units(c, d))
    c += down * a
    d += down * b
    if (up === 0n && down === 0n) return a === 0n ? undefined : { permits: Number(a), periodUs: Number(b) }
  }
}

/** The same, or the slowest that fits: for paces that are computed, which nobody could mend. */
export function nearPace(capacity: number, pace: Pace, aheadUs: number): Pace {
  return fittingPace(capacity, pace, aheadUs) ?? { permits: 1, periodUs: Math.floor((MOST - aheadUs) / (2 * capacity)) }
}

/** So many steps, or as many as there is room for. */
function within(steps: bigint, units: bigint, room: bigint): bigint {
  return steps * units <= room ? steps : room / units
}

/** Why a pace is not kept, and the nearest that is. */
export function unkept({ type }: Algorithm, capacity: number, asked: Pace, aheadUs: number, of: string, find = keptPace): SluiceError {
  const what = `${of}${type} ${type === 'gcra' ? 'burst' : 'capacity'}`
  const aheadMs = aheadUs / 1000
  const burst = largest(0, capacity, (less) => find(less, asked, aheadUs) !== undefined)
  if (burst > 0) {
    const where = aheadUs > DEFAULT_AHEAD_US ? ` with maxAheadMs ${aheadMs}` : ''
    return invalid(what, capacity, `must be at most ${burst} at this rate${where}, to be counted exactly`, burst)
  }
  if (aheadUs > DEFAULT_AHEAD_US) {
    const nearest = largest(DEFAULT_AHEAD_US, aheadUs, (us) => find(capacity, asked, us) !== undefined) / 1000
    return invalid(what, capacity, `at this rate allows a maxAheadMs of at most ${nearest}, to be counted exactly`, nearest)
  }
  const { permits, periodUs } = fittingPace(capacity, asked, aheadUs) as Pace
  const rounder = `${permits}/${periodUs}us`
  return invalid(what, capacity, `needs a rounder rate to be counted exactly, such as ${rounder}`, rounder)
}

/** The largest whole number that works: the low one does, the high one does not. */
function largest(low: number, high: number, works: (n: number) => boolean): number {
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (works(middle)) low = middle
    else high = middle
  }
  return low
}
