/** Times as people say them. */

const SECOND_MS = 1_000
const UNITS: readonly (readonly [ms: number, name: string])[] = [
  [86_400_000, 'day'],
  [3_600_000, 'hour'],
  [60_000, 'minute'],
]

/** When to come back, in a sentence. Rounded up: 61 seconds are 2 minutes. */
export function waitInWords(ms: number): string {
  if (!(ms < Number.POSITIVE_INFINITY)) return 'This request asks for more than is ever allowed at once, so waiting does not help.'
  const [unitMs, name] = UNITS.find(([unitMs]) => ms > 2 * unitMs) ?? [SECOND_MS, 'second']
  const count = Math.max(1, Math.ceil(ms / unitMs))
  return `Please try again in ${count} ${name}${count === 1 ? '' : 's'}.`
}
