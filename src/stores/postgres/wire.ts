/**
 * Rows as a database is sent them, and as it answers. All values are texts, so that no client has a
 * say in how they are written.
 */
import type { SqlRow } from './client.ts'

/** A row as it stands. */
export interface RowAnswer {
  /** Its place among the rows that were sent, from 0 on. */
  readonly place: number
  /** Undefined: there is no such row. */
  readonly version: string | undefined
  readonly bytes: Uint8Array | undefined
  /** The server's time, read after the row. */
  readonly nowUs: number
}

/** By the order of the columns: some clients are told to give them other names. */
export function rowAnswerOf(row: SqlRow): RowAnswer {
  const [place, version, state, nowUs] = Object.values(row)
  const isHeld = version !== null && version !== undefined
  return {
    place: Number(place) - 1,
    version: isHeld ? String(version) : undefined,
    bytes: isHeld ? bytesOf(String(state)) : undefined,
    nowUs: Number(nowUs),
  }
}

/** An array, as Postgres reads it. Undefined is its NULL. */
export function arrayOf<T>(items: readonly (T | undefined)[], text: (item: T) => string): string {
  return `{${items.map((item) => (item === undefined ? 'NULL' : text(item))).join(',')}}`
}

export function quoted(text: string): string {
  return `"${/["\\]/.test(text) ? text.replace(/["\\]/g, '\\$&') : text}"`
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

export function hexOf(bytes: Uint8Array): string {
  let hex = '"\\\\x'
  for (const byte of bytes) hex += HEX[byte]
  return `${hex}"`
}

/** Of hexadecimal digits. */
export function bytesOf(hex: string): Uint8Array {
  const bytes = new Uint8Array(hex.length >> 1)
  for (let at = 0; at < bytes.length; at++) bytes[at] = digitAt(hex, 2 * at) * 16 + digitAt(hex, 2 * at + 1)
  return bytes
}

/** Of `0` to `9` and `a` to `f`. */
function digitAt(hex: string, at: number): number {
  const code = hex.charCodeAt(at)
  return code < 58 ? code - 48 : code - 87
}
