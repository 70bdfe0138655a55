/** Reads one key of Redis and says what it means. It writes nothing. */
import type { StateFields } from '../../algorithms/algorithm.ts'
import { readState } from '../../algorithms/codec.ts'
import { SluiceError, shown } from '../../errors.ts'
import { type RedisClient, senderOf } from './client.ts'
import { storeError } from './failure.ts'

export interface Inspected {
  readonly key: string
  /** The name of the limit, if it has one, as `policy` of a decision. */
  readonly policy?: string
  /** The algorithm. */
  readonly type: string
  /** What an idle key admits at once, and how long a full charge is felt, under the numbers that the state is written under. */
  readonly limit: number
  readonly windowMs: number
  /** Whole permits of that limit that are left now. */
  readonly remaining: number
  readonly resetAfterMs: number
  /** How long until Redis forgets the key; -1 if it never does. */
  readonly ttlMs: number
  /** The numbers that the state is written under. */
  readonly numbers: string
  /** What stands in Redis, by name. */
  readonly state: StateFields
}

/** Clients read bytes as text, each in its own way: so the bytes come as hexadecimal digits, with the server's time and the time to live. */
const READ = `local raw = redis.call('GET', KEYS[1])
if not raw then
  return false
end
local hex = string.gsub(raw, '.', function(letter) return string.format('%02x', string.byte(letter)) end)
local time = redis.call('TIME')
return { hex, time[1], time[2], redis.call('PTTL', KEYS[1]) }`

/** What a key of Sluice holds now, by the server's clock: one state for each limit that is in use; none if there is no such key. */
export async function inspectKey(client: RedisClient, key: string): Promise<Inspected[]> {
  const sender = senderOf(client)
  const reply = await sender.send(['EVAL', READ, '1', key], key).catch((error) => Promise.reject(storeError(error)))
  if (!Array.isArray(reply)) return []
  const [hex, seconds, micros, ttlMs] = reply
  const bytes = Uint8Array.from(`${hex}`.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16))
  return statesIn(key, bytes, Number(seconds) * 1_000_000 + Number(micros), Number(ttlMs))
}

function statesIn(key: string, bytes: Uint8Array, nowUs: number, ttlMs: number): Inspected[] {
  const states: Inspected[] = []
  try {
    for (let at = 0; at < bytes.length || at === 0; ) {
      const { name, rule, words, end } = readState(bytes, at)
      const { algorithm, capacity } = rule
      // One more charge may need a few words more than a rule has.
      if ((algorithm.neededWords?.(words, 0) ?? 0) > 2 * rule.words)
        throw new SluiceError('STORE', `at byte ${at}: its places are not in its room`)
      states.push({
        key,
        ...(name === 'default' ? {} : { policy: name }),
        type: algorithm.type,
        limit: capacity,
        windowMs: rule.windowUs / 1000,
        remaining: Math.max(0, capacity - algorithm.used(rule, words, 0, nowUs)),
        resetAfterMs: algorithm.resetUs(rule, words, 0, nowUs) / 1000,
        ttlMs,
        numbers: rule.numbers,
        state: algorithm.fields(rule, words, 0),
      })
      at = end
    }
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    throw new SluiceError('STORE', `the key ${shown(key)} holds what this version of Sluice did not write: ${error.message}`)
  }
  return states
}
