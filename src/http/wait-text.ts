/** Times as people say them. */

const SECOND_MS = 1_000
const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000

/**
 * When to come back, in a sentence. Rounded up: what is more than two minutes is told in minutes.
 */
export function waitInWords(ms: number): string {
  if (ms <= SECOND_MS) return 'Please try again in 1 second.'
  if (ms <= 2 * MINUTE_MS) return inUnits(ms, SECOND_MS, 'seconds')
  if (ms <= 2 * HOUR_MS) return inUnits(ms, MINUTE_MS, 'minutes')
  if (ms <= 2 * DAY_MS) return inUnits(ms, HOUR_MS, 'hours')
  if (ms < Number.POSITIVE_INFINITY) return inUnits(ms, DAY_MS, 'days')
  return 'This request asks for more than is ever allowed at once, so waiting does not help.'
}

function inUnits(ms: number, unitMs: number, units: string): string {
  return `Please try again in ${Math.ceil(ms / unitMs)} ${units}.`
}
