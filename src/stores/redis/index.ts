export { type RedisSender, type RedisStoreOptions, redisStore } from './redis-store.ts'
