/** Errors of SQLite, by both drivers, with advice. */
import { SluiceError } from '../../errors.ts'

/** SQLite's own numbers of what went wrong. https://sqlite.org/rescode.html */
const CODES: Readonly<Record<string, number>> = {
  PERM: 3,
  BUSY: 5,
  LOCKED: 6,
  READONLY: 8,
  IOERR: 10,
  CORRUPT: 11,
  FULL: 13,
  CANTOPEN: 14,
  NOTADB: 26,
}

const DAMAGED = 'the file is damaged or is no database: move it away, and a new one is made'

const ADVICE: Readonly<Record<number, string>> = {
  3: 'the process may not read and write the file and its folder',
  5: 'another process held the lock for longer than busyTimeoutMs: a long transaction, a backup, a slow disk or a stopped process',
  6: 'another statement of the same connection is in the way: give the store a connection of its own',
  8: 'the file, its folder or the connection is read-only, and a limiter has to write',
  10: 'the disk did not do what was asked of it',
  11: DAMAGED,
  13: 'the disk is full, or the file is as large as it may get: make room',
  14: 'the folder of the file must be there, and the process must be allowed to write in it',
  26: DAMAGED,
}

/**
 * The number of what went wrong; undefined if it was not SQLite that failed. `node:sqlite` tells
 * it, `better-sqlite3` its name.
 */
function codeOf(error: unknown): number | undefined {
  const { code, errcode } = Object(error) as { code?: unknown; errcode?: unknown }
  if (typeof errcode === 'number') return errcode & 255
  const [, name] = /^SQLITE_([A-Z]+)/.exec(String(code)) ?? []
  return name === undefined ? undefined : CODES[name]
}

/** Whether another connection was in the way: the same may succeed a moment later. */
export function isBusy(error: unknown): boolean {
  return codeOf(error) === CODES.BUSY
}

/**
 * What callers are told. Nothing was written: an error within a transaction takes all of it back.
 */
export function storeError(cause: unknown, what: string): SluiceError {
  if (cause instanceof SluiceError) return cause
  const message = cause instanceof Error ? cause.message : String(cause)
  const advice = ADVICE[codeOf(cause) ?? 0]
  return new SluiceError('STORE', advice === undefined ? `${what}: ${message}` : `${what}: ${message} (${advice})`, { cause })
}
