/** Where a state stands: ids that people can read, and that nobody else's can be taken for. */
import { withoutNul } from '../nul.ts'
import { sha256 } from '../sha256.ts'
import type { Part } from '../step.ts'

/**
 * An entry of an index is shorter than a third of a page. So many characters are at most three
 * times as many bytes, escaped or not.
 */
const MAX_KEY_LENGTH = 512
const DIGEST = 'sha256:'

/**
 * `api:user:42:burst`. Names have no colon, so it can be read back in one way only. A long key
 * stands as its digest.
 */
export function rowId(limiter: string, { key, limit }: Pick<Part, 'key' | 'limit'>): string {
  return `${limiter}:${writtenKey(key)}:${limit}`
}

/** A key that looks like a digest becomes one too, so that it is not another's. */
export function writtenKey(key: string): string {
  if (key.length > MAX_KEY_LENGTH || key.startsWith(DIGEST)) return DIGEST + sha256(key)
  return withoutNul(key)
}
