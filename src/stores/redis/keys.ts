/**
 * Where a state stands in Redis: keys that people can read, that nobody else's can be taken for,
 * and that land where they should.
 */
import { SluiceError, shown } from '../../errors.ts'

export interface KeyScheme {
  /** What every key begins with. */
  readonly prefix: string
  /** Keys with equal tags are on one server of a cluster. Without it each key is its own tag. */
  readonly hashTag: ((key: string) => string) | undefined
}

const MAX_TAG_LENGTH = 1024
const SLOTS = 16_384

/**
 * `sluice:api:{user:42}`, or with a tag of its own `sluice:api:{tenant:9}:user:42`. What stands in
 * the braces places a key in a cluster. The names of limiters have no colon and the key's braces
 * are escaped, so a key can be read back in one way only. All limits of a limiter have their states
 * for a key in one place: see codec.ts.
 */
export function redisKey(scheme: KeyScheme, limiter: string, key: string): string {
  return keyBehind(keyHead(scheme, limiter), scheme, key)
}

/** The beginning of all keys of a limiter. */
export function keyHead({ prefix }: KeyScheme, limiter: string): string {
  return `${prefix}:${limiter}:{`
}

export function keyBehind(head: string, { hashTag }: KeyScheme, key: string): string {
  return hashTag === undefined ? `${head}${escaped(key)}}` : `${head}${escaped(tagOf(hashTag, key))}}:${escaped(key)}`
}

/** Nearly every key is written as it is: one look tells. */
const UNUSUAL = /[%{}\ud800-\udfff]/

function escaped(text: string): string {
  if (!UNUSUAL.test(text)) return text
  // Half a surrogate pair has no UTF-8: two such keys would become one.
  if (/\p{Surrogate}/u.test(text)) throw new SluiceError('KEY', `key ${shown(text)} must be well-formed Unicode`)
  return text.replace(/[%{}]/g, encodeURIComponent)
}

function tagOf(hashTag: (key: string) => string, key: string): string {
  let tag: unknown
  try {
    tag = hashTag(key)
  } catch (cause) {
    throw new SluiceError('CONFIG', `hashTag threw for key ${shown(key)}: ${String(cause)}`, { cause })
  }
  if (typeof tag === 'string' && tag.length > 0 && tag.length <= MAX_TAG_LENGTH) return tag
  throw new SluiceError(
    'CONFIG',
    `hashTag gave ${shown(tag)} for key ${shown(key)}: it must be a string of 1 to ${MAX_TAG_LENGTH} characters`,
  )
}

/** What has a key, together where the keys have the same slot, in the order it came. */
export function bySlot<T>(items: readonly T[], redisKeyOf: (item: T) => string): T[][] {
  const groups = new Map<number, T[]>()
  for (const item of items) {
    const slot = slotOf(redisKeyOf(item))
    const group = groups.get(slot)
    if (group === undefined) groups.set(slot, [item])
    else group.push(item)
  }
  return [...groups.values()]
}

/** The slot of a cluster that a key belongs to: CRC-16 (XMODEM) of what stands in its braces. */
export function slotOf(redisKey: string): number {
  const tag = redisKey.slice(redisKey.indexOf('{') + 1, redisKey.indexOf('}'))
  let crc = 0
  for (const byte of new TextEncoder().encode(tag)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit++) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff
  }
  return crc % SLOTS
}
