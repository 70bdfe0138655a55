/** The options of a shared store, checked before anything is made. */
import { type Limit, RULE, type Rule } from '../../algorithms/algorithm.ts'
import { onlyKnown } from '../../algorithms/rate.ts'
import { SluiceError, shown } from '../../errors.ts'
import { originUs } from './clock.ts'
import { isHandle, MOST_JOURNALS, type SharedHandle, SharedMemory } from './layout.ts'
import { wordsOfAll } from './record.ts'

export interface SharedStoreOptions {
  /**
   * How many keys the store holds at most: whole, 1 to 16 million. Room for all of them is taken at
   * once.
   */
  readonly maxKeys: number
  /**
   * The answer to a new key when all that were looked at (about 1,000 keys) are in use. `'deny'`
   * (default): it is limited, until a held key is idle.
   * `'allow'`: it is let through uncounted. A key that is in use is never forgotten to make room.
   */
  readonly onFull?: 'deny' | 'allow'
  /**
   * The limits that `createLimiter` will get, of the limiter that needs the most room. Default:
   * room for two small ones, such as a gcra and a fixed window.
   */
  readonly limits?: Limit | Readonly<Record<string, Limit>>
  /**
   * The same as a number of doubles, instead of `limits`: gcra 6, token bucket 6, leaky bucket 6,
   * fixed window 8, sliding window 7 and its slots, sliding log 12 and five times its
   * limit, concurrency 342 and ten times `max`. Whole, 1 to 500,020, default 14.
   */
  readonly recordWords?: number
  /**
   * How many threads may be in the middle of a step at the same time: whole, 1 to 254, default 64.
   * Each takes 13 records.
   */
  readonly maxThreads?: number
  /**
   * How long a thread must have been in the middle of one step, in milliseconds, before it counts
   * as ended and what it held is taken back: whole, a second to an hour, default 60,000. A step
   * takes less than a microsecond. Make it no shorter than any thread may be held up while others
   * run.
   */
  readonly reclaimAfterMs?: number
}

const MOST_KEYS = 16_000_000
/** The largest sliding log fits, and little else. */
const MOST_WORDS = 500_020
const SECOND_MS = 1_000
const HOUR_MS = 3_600_000
const OPTION_NAMES = ['maxKeys', 'onFull', 'limits', 'recordWords', 'maxThreads', 'reclaimAfterMs']

export function memoryFrom(from: SharedStoreOptions | SharedHandle): SharedMemory {
  if (isHandle(from)) return new SharedMemory(from)
  onlyKnown(from, OPTION_NAMES, 'sharedStore')
  const { maxKeys, maxThreads = 64, onFull = 'deny', reclaimAfterMs = 60_000 } = from
  whole('maxKeys', maxKeys, 1, MOST_KEYS)
  whole('maxThreads', maxThreads, 1, MOST_JOURNALS)
  whole('reclaimAfterMs', reclaimAfterMs, SECOND_MS, HOUR_MS)
  if (onFull !== 'deny' && onFull !== 'allow') throw invalid('onFull', onFull, "must be 'deny' or 'allow'")
  const recordWords = wordsFrom(from)
  const allowWhenFull = onFull === 'allow'
  return SharedMemory.create({ maxKeys, maxThreads, recordWords, allowWhenFull, reclaimAfterMs, originUs: originUs() })
}

const DEFAULT_WORDS = 14

function wordsFrom({ limits, recordWords = DEFAULT_WORDS }: SharedStoreOptions): number {
  whole('recordWords', recordWords, 1, MOST_WORDS)
  if (limits === undefined) return recordWords
  const words = wordsOfAll(rulesOf(limits))
  if (words <= MOST_WORDS) return words
  throw invalid('limits', limits, `must need at most ${MOST_WORDS} doubles for a key, not ${words}`)
}

function rulesOf(limits: unknown): Rule[] {
  const all = typeof limits === 'object' && limits !== null ? (RULE in limits ? [limits] : Object.values(limits)) : []
  if (all.length > 0 && all.every(isLimit)) return all.map((limit) => limit[RULE])
  throw invalid('limits', limits, 'must be a limit such as gcra({ ... }), or an object of them by name')
}

function isLimit(value: unknown): value is Limit {
  return typeof value === 'object' && value !== null && RULE in value
}

function whole(name: string, value: number, least: number, most: number): void {
  if (Number.isInteger(value) && value >= least && value <= most) return
  throw invalid(name, value, `must be a whole number from ${least} to ${most}`)
}

function invalid(name: string, value: unknown, rule: string): SluiceError {
  return new SluiceError('CONFIG', `sharedStore ${name} ${shown(value)} ${rule}`)
}
