/**
 * Keys as they may be kept: what a key costs is bounded, whatever the text was that it was found
 * in.
 */
import { sha256 } from '../stores/sha256.ts'

/** A longer key is kept as its digest. */
export const MAX_SHORT_KEY = 128

/** Functions whose keys are short, and no pieces of longer texts: these need not be copied. */
export const shortKeys = new WeakSet<object>()

const DIGEST = 'sha256:'

/**
 * The key itself, or the digest of one that is long: two long keys that differ anywhere are two
 * keys, and an attacker cannot choose two that are one. A key that looks like a digest becomes one
 * as well, so that it is not another's.
 */
export function boundedKey(key: string): string {
  return key.length > MAX_SHORT_KEY || key.startsWith(DIGEST) ? DIGEST + sha256(key) : key
}

/**
 * The same in memory of its own. A piece that was cut out of a longer text (`header.split(',')[0]`)
 * keeps the whole of it alive for as long as the piece is kept; a piece of a copy that is one
 * character longer keeps that.
 */
export function shortKey(key: string): string {
  const bounded = boundedKey(key)
  return bounded === key ? ` ${key}`.slice(1) : bounded
}
