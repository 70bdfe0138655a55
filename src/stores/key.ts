/** What a key may be. */
import { SluiceError, shown } from '../errors.ts'

const MAX_KEY_LENGTH = 1024

/** Half a surrogate pair has no UTF-8: in Redis two such keys would become one. */
export function isKey(key: unknown): key is string {
  return hasLengthOfKey(key) && (key as string & WellFormed).isWellFormed()
}

/** Whether it is a key but for its characters, which take longer to look at than all else. */
export function hasLengthOfKey(key: unknown): key is string {
  return typeof key === 'string' && key.length > 0 && key.length <= MAX_KEY_LENGTH
}

/** Declared here, because the types are those of ES2023. */
interface WellFormed {
  isWellFormed(): boolean
}

/** `of`: which limit it is for, where a caller gave one for each. */
export function checkKey(key: unknown, of = ''): asserts key is string {
  if (isKey(key)) return
  throw new SluiceError('KEY', `key ${shown(key)}${of} must be a string of 1 to ${MAX_KEY_LENGTH} characters, without lone surrogates`)
}
