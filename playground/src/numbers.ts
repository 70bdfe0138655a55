/** Numbers for people. */

/** At most three decimals, none that say nothing. */
export function plain(value: number): string {
  return Number.isFinite(value) ? String(Math.round(value * 1000) / 1000) : '∞'
}

/** Rates to one decimal. */
export const rounded = (value: number): number => Math.round(value * 10) / 10

/** Thousands apart, the same in both languages. */
export function counted(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ',')
}

/**
 * To the microsecond, as the library counts: with fewer decimals a sum would not come out, and a
 * wait of 50 µs would be none.
 */
export const seconds = (us: number): string => String(Math.round(us) / 1_000_000)

/** Milliseconds below a second, seconds from there on. */
export function time(us: number): string {
  return us < 1_000_000 ? `${plain(us / 1000)} ms` : `${plain(us / 1_000_000)} s`
}
