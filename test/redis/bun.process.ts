/**
 * Run by Bun: makes the store as the guide's text does, and prints what each line of the input is
 * answered.
 */
import { createInterface } from 'node:readline'
import { createLimiter, gcra } from '../../src/index.ts'
import { type RedisClient, redisStore } from '../../src/stores/redis/index.ts'

interface Bun {
  readonly RedisClient: new (url: string, options?: object) => RedisClient
}

type Make = (RedisClient: Bun['RedisClient'], store: typeof redisStore) => Promise<ReturnType<typeof redisStore>>

const AsyncFunction = (async () => undefined).constructor as new (...args: string[]) => Make
const [guide = ''] = process.argv.slice(2)
const store = await new AsyncFunction('RedisClient', 'redisStore', `${guide}\nreturn store`)(
  (globalThis as unknown as { Bun: Bun }).Bun.RedisClient,
  redisStore,
)
const limiter = createLimiter(
  { hour: gcra({ rate: '3/h', burst: 3 }), day: gcra({ rate: '100/d', burst: 100 }) },
  { name: 'bun', store, onStoreError: 'deny', storeTimeoutMs: 500 },
)

for await (const key of createInterface({ input: process.stdin })) {
  // Several calls in one turn are one batch.
  const decisions = await Promise.all([limiter.consume(key), limiter.consume(key)])
  console.log(JSON.stringify({ decisions, health: limiter.health() }))
}
process.exit()
