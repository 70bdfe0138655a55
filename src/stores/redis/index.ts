export type { RedisClient, RedisSender } from './client.ts'
export { type DenialCacheOptions, type RedisStoreOptions, redisStore } from './redis-store.ts'
