/** How a store that answers later is asked: what its user may set, checked. */
import { invalid, onlyKnown } from '../../algorithms/rate.ts'
import type { DenialBounds } from './denials.ts'

export interface AsyncStoreOptions {
  /**
   * How many decisions of one turn of the event loop travel in one call, where each is by one small
   * limit: those by several limits, keys or large states count for more. 1 to 1,000, default 64; 1:
   * each by itself.
   */
  readonly maxBatch?: number
  /**
   * Refusals that are repeated without asking the store again, for as long as they hold. Default
   * on; `false` turns it off.
   */
  readonly denialCache?: DenialCacheOptions | false
}

export interface DenialCacheOptions {
  /**
   * How long a refusal is repeated at most, in milliseconds: within that a change made elsewhere is
   * seen. Above 0, at most 60,000, default 1,000.
   */
  readonly maxMs?: number
  /**
   * How many refusals each limiter holds, the oldest going first. 1 to 1,000,000, default 10,000.
   */
  readonly maxKeys?: number
}

export const ASYNC_STORE_OPTIONS = ['maxBatch', 'denialCache'] as const

/**
 * So many decisions by one small limit take Redis about half a millisecond, in which it serves
 * nobody else.
 */
const DEFAULT_MAX_BATCH = 64
const MOST_MAX_BATCH = 1_000

/** `who`: the function that was given them. */
export function checkedMaxBatch({ maxBatch = DEFAULT_MAX_BATCH }: AsyncStoreOptions, who: string): number {
  if (Number.isInteger(maxBatch) && maxBatch >= 1 && maxBatch <= MOST_MAX_BATCH) return maxBatch
  throw invalid(`${who} maxBatch`, maxBatch, `must be a whole number from 1 to ${MOST_MAX_BATCH}`)
}

/** Undefined: nothing is repeated. */
export function checkedBounds({ denialCache = {} }: AsyncStoreOptions, who: string): DenialBounds | undefined {
  if (denialCache === false) return undefined
  if (typeof denialCache !== 'object' || denialCache === null) {
    throw invalid(`${who} denialCache`, denialCache, 'must be false or an object such as { maxMs: 1000, maxKeys: 10_000 }')
  }
  onlyKnown(denialCache, ['maxMs', 'maxKeys'], `${who} denialCache`)
  const { maxMs = 1_000, maxKeys = 10_000 } = denialCache
  if (typeof maxMs !== 'number' || !(maxMs > 0 && maxMs <= 60_000)) {
    throw invalid(`${who} denialCache maxMs`, maxMs, 'must be above 0 and at most 60000 milliseconds')
  }
  if (!Number.isInteger(maxKeys) || maxKeys < 1 || maxKeys > 1_000_000) {
    throw invalid(`${who} denialCache maxKeys`, maxKeys, 'must be a whole number from 1 to 1000000')
  }
  return { maxUs: Math.ceil(maxMs * 1000), maxKeys }
}
