/** Reads one key of Redis and says what it means. It writes nothing. */
import { type Inspected, statesIn } from '../inspected.ts'
import { type RedisClient, senderOf } from './client.ts'
import { storeError } from './failure.ts'

/**
 * Clients read bytes as text, each in its own way: so the bytes come as hexadecimal digits, with
 * the server's time and the time to live.
 */
const READ = `local raw = redis.call('GET', KEYS[1])
if not raw then
  return false
end
local hex = string.gsub(raw, '.', function(letter) return string.format('%02x', string.byte(letter)) end)
local time = redis.call('TIME')
return { hex, time[1], time[2], redis.call('PTTL', KEYS[1]) }`

/**
 * The states of a key now, by the server's clock: one state for each limit that is in use; none if
 * there is no such key.
 */
export async function inspectKey(client: RedisClient, key: string): Promise<Inspected[]> {
  const sender = senderOf(client)
  const reply = await sender.send(['EVAL', READ, '1', key], key).catch((error) => Promise.reject(storeError(error)))
  if (!Array.isArray(reply)) return []
  const [hex, seconds, micros, ttlMs] = reply
  const bytes = Uint8Array.from(`${hex}`.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16))
  return statesIn(key, bytes, Number(seconds) * 1_000_000 + Number(micros), Number(ttlMs))
}
