/** State in Redis or Valkey: what a user holds. */
import { invalid, onlyKnown } from '../../algorithms/rate.ts'
import { AsyncStore } from '../remote/async-store.ts'
import { ASYNC_STORE_OPTIONS, type AsyncStoreOptions } from '../remote/options.ts'
import { type RedisClient, senderOf } from './client.ts'
import { RedisDriver } from './driver.ts'
import type { KeyScheme } from './keys.ts'

export interface RedisStoreOptions extends AsyncStoreOptions {
  /** The beginning of every key. Default `'sluice'`. */
  readonly prefix?: string
  /**
   * Keys for which this gives equal strings are kept together in a cluster, and decided as one.
   * Default: each key for itself.
   */
  readonly hashTag?: (key: string) => string
}

export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): AsyncStore {
  return new AsyncStore(new RedisDriver(checkedScheme(options), senderOf(client)), options, 'redisStore')
}

function checkedScheme(options: RedisStoreOptions): KeyScheme {
  onlyKnown(options, ['prefix', 'hashTag', ...ASYNC_STORE_OPTIONS], 'redisStore')
  const { prefix = 'sluice', hashTag } = options
  if (typeof prefix !== 'string' || !/^[^{}\s]{1,256}$/.test(prefix)) {
    throw invalid('redisStore prefix', prefix, 'must be 1 to 256 characters without braces and white space')
  }
  if (hashTag !== undefined && typeof hashTag !== 'function') {
    throw invalid('redisStore hashTag', hashTag, 'must be a function from a key to a string')
  }
  return { prefix, hashTag }
}
