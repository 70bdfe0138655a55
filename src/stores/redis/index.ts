export type { DenialCacheOptions } from '../remote/options.ts'
export type { RedisClient, RedisSender } from './client.ts'
export { type RedisStoreOptions, redisStore } from './redis-store.ts'
