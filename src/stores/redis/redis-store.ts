/** State in Redis or Valkey, decided there by a script, on the server's clock. See runner.lua. */
import { onlyKnown, refused } from '../../algorithms/rate.ts'
import type { AsyncStore } from '../store.ts'
import { acrossSlots } from './across-slots.ts'
import { Batches } from './batch.ts'
import { type RedisClient, senderOf } from './client.ts'
import { type KeyScheme, redisKey, slotOf } from './keys.ts'

export interface RedisStoreOptions {
  /** What every key begins with. Default `'sluice'`. */
  readonly prefix?: string
  /** Keys for which this gives equal strings are kept together in a cluster, and decided as one. Default: each key for itself. */
  readonly hashTag?: (key: string) => string
  /** How many decisions of one turn of the event loop travel in one script call. 1 to 1,000, default 64; 1: each by itself. */
  readonly maxBatch?: number
}

const DEFAULT_MAX_BATCH = 64
const MOST_MAX_BATCH = 1_000

export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  const scheme = checkedScheme(options)
  const batches = new Batches(senderOf(client), checkedMaxBatch(options))
  return {
    mode: 'async',
    shared: true,
    async apply(step) {
      const keys = step.parts.map((part) => redisKey(scheme, step.scope.name, part))
      const places = batches.isCluster && keys.length > 1 ? bySlot(keys) : []
      if (places.length <= 1) return batches.run(step, keys)
      return acrossSlots(step, places, (each) =>
        batches.run(
          each,
          each.parts.map((part) => redisKey(scheme, step.scope.name, part)),
        ),
      )
    },
  }
}

function checkedScheme(options: RedisStoreOptions): KeyScheme {
  onlyKnown(options, ['prefix', 'hashTag', 'maxBatch'], 'redisStore')
  const { prefix = 'sluice', hashTag } = options
  if (typeof prefix !== 'string' || !/^[^{}\s]{1,256}$/.test(prefix)) {
    throw refused('redisStore prefix', prefix, 'must be 1 to 256 characters without braces and white space')
  }
  if (hashTag !== undefined && typeof hashTag !== 'function') {
    throw refused('redisStore hashTag', hashTag, 'must be a function from a key to a string')
  }
  return { prefix, hashTag }
}

function checkedMaxBatch({ maxBatch = DEFAULT_MAX_BATCH }: RedisStoreOptions): number {
  if (Number.isInteger(maxBatch) && maxBatch >= 1 && maxBatch <= MOST_MAX_BATCH) return maxBatch
  throw refused('redisStore maxBatch', maxBatch, `must be a whole number from 1 to ${MOST_MAX_BATCH}`)
}

/** The places of the keys, together where they have the same slot. */
function bySlot(keys: readonly string[]): number[][] {
  const places = new Map<number, number[]>()
  keys.forEach((key, place) => {
    const slot = slotOf(key)
    places.set(slot, [...(places.get(slot) ?? []), place])
  })
  return [...places.values()]
}
