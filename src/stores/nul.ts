/**
 * Keys as text of a database. Postgres holds no NUL, and `node:sqlite` of Node 22 gives a text back
 * only up to the first one.
 */

/** What stands for a NUL begins with a percent sign, so that sign is written so too. */
const ESCAPED = /[%\0]/

export function withoutNul(key: string): string {
  return ESCAPED.test(key) ? key.replace(/[%\0]/g, encodeURIComponent) : key
}
