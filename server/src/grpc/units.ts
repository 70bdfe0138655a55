/** Limits as Envoy speaks of them: so many in a unit of time. */
import { type Duration, durationUs, type Limit, type Pace, paceOf, type Rate, RULE } from '../sluice.ts'
import type { Unit } from './messages.ts'

/** A month counts thirty days and a year 365, because a window has one length. */
export const UNIT_SECONDS: Readonly<Partial<Record<Unit, number>>> = {
  SECOND: 1,
  MINUTE: 60,
  HOUR: 3_600,
  DAY: 86_400,
  WEEK: 604_800,
  MONTH: 2_592_000,
  YEAR: 31_536_000,
}

export interface PerUnit {
  readonly requests_per_unit: number
  readonly unit: Unit
}

/**
 * A window that is a unit long is that; whatever else is whole requests in the shortest unit that
 * has them. Without a unit if there is none. A limit that admits nothing is 0 in any unit.
 */
export function perUnit(limit: Limit): PerUnit {
  if (limit[RULE].capacity === 0) return { requests_per_unit: 0, unit: 'SECOND' }
  const { permits, periodUs } = paceIn(limit)
  const units = Object.entries(UNIT_SECONDS).map(([unit, seconds]) => ({ unit: unit as Unit, us: seconds * 1_000_000 }))
  const same = units.find(({ us }) => us === periodUs)
  if (same !== undefined) return { requests_per_unit: permits, unit: same.unit }
  for (const { unit, us } of units) {
    const requests = (permits * us) / periodUs
    if (requests >= 1 && Number.isInteger(requests) && requests < 2 ** 32) return { requests_per_unit: requests, unit }
  }
  return { requests_per_unit: permits, unit: 'UNKNOWN_UNIT' }
}

function paceIn(options: Limit): Pace {
  const { rate, refill, leak, limit, window } = options as unknown as Readonly<Record<string, unknown>>
  const pace = rate ?? refill ?? leak
  if (pace !== undefined) return paceOf(pace as Rate, 'rate')
  return { permits: limit as number, periodUs: durationUs(window as Duration, 'window') }
}
