/** Keys of Redis as bytes, which clients read and send as text. */
import type { Rule } from '../../src/algorithms/algorithm.ts'
import { readState, type StateRecord } from '../../src/algorithms/codec.ts'

interface Sender {
  send(args: readonly string[]): Promise<unknown>
}

const GET_HEX = `local raw = redis.call('GET', KEYS[1])
return raw and string.gsub(raw, '.', function(letter) return string.format('%02x', string.byte(letter)) end)`
const SET_HEX = `local raw = string.gsub(ARGV[1], '..', function(digits) return string.char(tonumber(digits, 16)) end)
redis.call('SET', KEYS[1], raw)`

export async function bytesAt(redis: Sender, key: string): Promise<Uint8Array | undefined> {
  const hex = (await redis.send(['EVAL', GET_HEX, '1', key])) as string | null
  return hex === null ? undefined : fromHex(hex)
}

/** Without a time to live. */
export async function putBytes(redis: Sender, key: string, bytes: Uint8Array | readonly number[]): Promise<void> {
  await redis.send(['EVAL', SET_HEX, '1', key, toHex(bytes)])
}

/** The records of a key, in their order. */
export async function recordsAt(redis: Sender, key: string): Promise<StateRecord[]> {
  const bytes = (await bytesAt(redis, key)) ?? new Uint8Array()
  const records: StateRecord[] = []
  for (let at = 0; at < bytes.length; at = records.at(-1)?.end as number) records.push(readState(bytes, at))
  return records
}

/** By so much a key may live longer than it must: an eighth of the window, and an hour at most. */
export function stepUs({ windowUs }: Rule): number {
  return Math.min(Math.max(Math.floor(windowUs / 8), 1_000), 3_600_000_000)
}

/** Until when a key lives that holds a state under a rule. */
export function livesUntilUs(rule: Rule, idleAtUs: number): number {
  return Math.ceil(idleAtUs / stepUs(rule)) * stepUs(rule)
}

export function toHex(bytes: Uint8Array | readonly number[]): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}

export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.replaceAll(' ', '').match(/../g) ?? [], (digits) => Number.parseInt(digits, 16))
}
