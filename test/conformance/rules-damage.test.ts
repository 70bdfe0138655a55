/**
 * States that Sluice did not write: figures that no limit has, and words that no state has. Each is
 * an error of its own decision, and of no other.
 */
import { randomUUID } from 'node:crypto'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, test } from 'vitest'
import { RULE } from '../../src/algorithms/algorithm.ts'
import { labelOf } from '../../src/algorithms/codec.ts'
import {
  type AsyncStore,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  leakyBucket,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { rowId } from '../../src/stores/postgres/keys.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { idOf } from '../../src/stores/sqlite/file.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { sharedTable } from '../support/postgres-client.ts'
import { connectRedis } from '../support/redis-client.ts'
import { bytesAt, putBytes, toHex } from '../support/state-bytes.ts'
import { openSqlite } from '../support/stores.ts'

/** So early that a record can say that a word is below 0. */
const START_MS = 1_000_000
const AT = START_MS * 1000
const DAY = 86_400_000_000

/** A store, and the bytes of the key `k` of the limiter `api` in it. */
interface Kept {
  readonly store: AsyncStore
  read(): Promise<Uint8Array>
  write(bytes: Uint8Array): Promise<unknown>
  close(): void
}

const PART = { key: 'k', limit: 'default' }
const KEPT: readonly (readonly [name: string, open: () => Promise<Kept>])[] = [
  [
    'redis',
    async () => {
      const [redis, prefix] = [await connectRedis(), randomUUID()]
      const name = redisKey({ prefix, hashTag: undefined }, 'api', PART.key)
      return {
        store: redisStore(redis, { prefix, denialCache: false }),
        read: async () => (await bytesAt(redis, name)) as Uint8Array,
        write: (bytes) => putBytes(redis, name, bytes),
        close: () => redis.close(),
      }
    },
  ],
  [
    'sqlite',
    async () => {
      const { store, path, close } = openSqlite()
      const [other, id] = [new Database(path), idOf('api', PART.key, PART.limit)]
      return {
        store: store as unknown as AsyncStore,
        read: async () => new Uint8Array(other.prepare('SELECT state FROM sluice_states WHERE id = ?').pluck().get(id) as Buffer),
        write: async (bytes) => other.prepare('UPDATE sluice_states SET state = ? WHERE id = ?').run(Buffer.from(bytes), id),
        close() {
          other.close()
          close()
        },
      }
    },
  ],
  [
    'postgres',
    async () => {
      const { pool, table, store } = sharedTable()
      const id = rowId('api', PART)
      return {
        store: store(),
        read: async () => new Uint8Array((await pool.query(`SELECT state FROM ${table} WHERE id = $1`, [id])).rows[0].state),
        write: (bytes) => pool.query(`UPDATE ${table} SET version = version + 1, state = $2 WHERE id = $1`, [id, Buffer.from(bytes)]),
        close: () => undefined,
      }
    },
  ],
]

type Damage = readonly [what: string, limit: Limit, figures: readonly number[] | undefined, words: readonly number[]]

const [level, bucket, leaky] = [
  gcra({ rate: '7/s', burst: 20 }),
  tokenBucket({ refill: '7/s', capacity: 20 }),
  leakyBucket({ leak: '7/s', capacity: 20 }),
]
const fixed = fixedWindow({ limit: 20, window: '1min' })
const sliding = slidingWindow({ limit: 20, window: '1s', slots: 4 })
const log = slidingLog({ limit: 20, window: '1min' })

/** What each holds that has three in use: of three that are taken at once. */
const SOUND: readonly (readonly [limit: Limit, words: readonly number[]])[] = [
  ...[level, bucket, leaky].map((limit) => [limit, [AT + 428_571, 3, AT]] as const),
  [fixed, [AT, AT + 60_000_000, 3, AT]],
  [sliding, [AT, AT / 250_000, 3, 3, 0, 0, 0, 0]],
  [log, [0, 1, 3, 0, 0, AT, 3, AT, 0, AT]],
]

/** The same with another word at a place. */
const other = (of: Limit, at: number, word: number) => {
  const [, words] = SOUND.find(([limit]) => limit === of) as (typeof SOUND)[number]
  return words.map((each, k) => (k === at ? word : each))
}
const under = (what: string, limit: Limit, figures: readonly number[]): Damage => [what, limit, figures, other(limit, -1, 0)]
const holding = (what: string, limit: Limit, at: number, word: number): Damage => [what, limit, undefined, other(limit, at, word)]
const ofLevels = (what: string, of: (what: string, limit: Limit) => Damage) =>
  [level, bucket, leaky].map((limit) => of(`a ${limit.type} with ${what}`, limit))
const paced = (what: string, figures: readonly number[]) => ofLevels(what, (name, limit) => under(name, limit, figures))

const DAMAGED: readonly Damage[] = [
  ...paced('no permits in its pace', [20, 0, 1_000_000]),
  ...paced('no time in its pace', [20, 7, 0]),
  ...paced('a pace that is not in lowest terms', [20, 14, 2_000_000]),
  ...paced('a pace of more than 10 permits in a microsecond', [20, 11, 1]),
  ...paced('more than a thousand million permits', [1_000_000_001, 1, 1]),
  ...paced('numbers that do not fit into 2^52', [1_000, 1, 30 * DAY]),
  ...ofLevels('more in use than 2^52 units', (name, limit) => holding(name, limit, 0, AT + 643_371_375_338_643)),
  ...ofLevels('a part of a microsecond that is a whole one', (name, limit) => holding(name, limit, 1, 7)),
  ...ofLevels('an end below 0', (name, limit) => holding(name, limit, 0, -1)),
  ...ofLevels('a part below 0', (name, limit) => holding(name, limit, 1, -1)),
  ...ofLevels('a date below 0', (name, limit) => holding(name, limit, 2, -1)),
  under('a fixed window of no time', fixed, [20, 0, 0, 0]),
  under('a fixed window with more than a thousand million permits', fixed, [1_000_000_001, 60_000_000, 0, 0]),
  under('a fixed window that is neither of the epoch nor of the first call', fixed, [20, 60_000_000, 2, 0]),
  under('a fixed window that begins later than its length', fixed, [20, 60_000_000, 0, 60_000_000]),
  holding('a fixed window with a count below 0', fixed, 2, -1),
  holding('a fixed window with a count above 4,294,967,295', fixed, 2, 4_294_967_296),
  under('a sliding window of no slots', sliding, [20, 1_000_000, 0]),
  under('a sliding window of 101 slots', sliding, [20, 1_010_000, 101]),
  under('a sliding window of 1,000 slots', sliding, [20, 1_000_000, 1_000]),
  under('a sliding window of 3 slots, which do not divide it', sliding, [20, 1_000_000, 3]),
  under('a sliding window of no time', sliding, [20, 0, 1]),
  holding('a sliding window with a slot below 0', sliding, 1, -1),
  holding('a sliding window with a count below 0', sliding, 3, -1),
  holding('a sliding window with a sum above 4,294,967,295', sliding, 2, 4_294_967_296),
  under('a sliding log of no time', log, [20, 0]),
  under('a sliding log with more permits than a log has', log, [1_000_000, 60_000_000]),
  holding('a sliding log with more entries than places', log, 1, 5),
  holding('a sliding log with more places than a log has', log, 4, 1_000),
  holding('a sliding log with a count below 0', log, 6, -1),
  holding('a sliding log with a time below 0', log, 5, -1),
]

/**
 * The record of a state by hand, because the codec refuses to write it. Words of which one is below
 * 0 are counted back from when it is idle (tag 14: 6 bytes), all others written as they are (7).
 */
function recordOf(limit: Limit, figures: readonly number[] | undefined, words: readonly number[]): Uint8Array {
  const idleAtUs = AT + 60_000_000
  const label = Buffer.from(labelOf({ ...limit[RULE], figures: figures ?? limit[RULE].figures }, PART.limit), 'latin1')
  const tagOf = (tagged: readonly number[]) => (tagged.some((word) => word < 0) ? 14 : 7)
  const behind = words.slice(4)
  const turns = [0, 1].map((first) => tagOf(behind.filter((_, k) => k % 2 === first)))
  const tagAt = (k: number) => (k < 4 ? tagOf(words.slice(k, k + 1)) : (turns[k % 2] as number))
  const pair = (first: number | undefined, second: number | undefined) => (first ?? 0) * 16 + (second ?? 0)
  const tags = words.map((_, k) => tagAt(k))
  const head = [...label, pair(tags[0], tags[1]), pair(tags[2], tags[3])]
  if (behind.length > 0) head.push(pair(turns[0], turns[1]), 0, 0, behind.length)
  const written = words.flatMap((word, k) => (tags[k] === 14 ? bytes(idleAtUs - word, 6) : bytes(word, 7)))
  return Uint8Array.from([...bytes(idleAtUs, 7), head.length, ...head, ...written])
}

function bytes(number: number, size: number): number[] {
  return Array.from({ length: size }, (_, k) => Math.floor(number / 256 ** (size - 1 - k)) % 256)
}

const closers: (() => void)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

describe.each(KEPT)('R12: figures and words that no state has are an error of that decision alone, on %s', (_, open) => {
  async function setUp(limit: Limit) {
    const kept = await open()
    closers.push(() => kept.close())
    const limiter = createLimiter<Limit, AsyncStore>(limit, { name: 'api', store: kept.store, clock: fakeClock(START_MS) })
    await limiter.consume('k', 3)
    return { ...kept, limiter }
  }

  test.each(DAMAGED)('%s', async (_, limit, figures, words) => {
    const { limiter, read, write } = await setUp(limit)
    const record = recordOf(limit, figures, words)
    await write(record)
    const calls = ['consume', 'peek', 'reserve', 'charge', 'refund'] as const
    const answers = await Promise.allSettled(calls.flatMap((verb) => [called(limiter, verb, 'k'), called(limiter, verb, verb)]))
    for (const [k, verb] of calls.entries()) {
      expect(answers[2 * k], verb).toMatchObject({ status: 'rejected', reason: { code: 'STORE', isolated: true } })
      expect(answers[2 * k + 1]?.status, `${verb} of another key`).toBe('fulfilled')
    }
    expect(toHex(await read())).toBe(toHex(record))
    await limiter.reset('k')
    expect((await limiter.peek('k', 0)).remaining).toBe(20)
  })

  test.each(SOUND.map(([limit, words]) => [limit.type, limit, words] as const))(
    'a %s of which nothing is wrong is read',
    async (_, limit, words) => {
      const { limiter, write } = await setUp(limit)
      await write(recordOf(limit, undefined, words))
      expect((await limiter.peek('k', 0)).remaining).toBe(17)
    },
  )
})

/** A store that answers at once throws. */
async function called(limiter: Limiter<Limit, AsyncStore>, verb: 'consume' | 'peek' | 'reserve' | 'charge' | 'refund', key: string) {
  return limiter[verb](key)
}
