/** Which clients redisStore takes. Compiled, not run. */
import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide'
import type { Cluster, Redis } from 'ioredis'
import type { Redis as Valkey, Cluster as ValkeyCluster } from 'iovalkey'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import { type RedisClient, type RedisSender, redisStore } from '../../src/stores/redis/index.ts'

declare const ioredis: Redis | Cluster | Valkey | ValkeyCluster
declare const glide: GlideClient | GlideClusterClient
declare const sender: RedisSender
declare const bun: {
  send(command: string, args: string[]): Promise<unknown>
  get(key: string): Promise<string>
  getBuffer(key: string): Promise<Uint8Array>
}

export const clients: readonly RedisClient[] = [
  createClient(),
  createClientPool(),
  createCluster({ rootNodes: [] }),
  createSentinel({ name: 'a', sentinelRootNodes: [] }),
  ioredis,
  glide,
  bun,
  sender,
]

declare const send: (command: readonly string[]) => Promise<unknown>

// What a sender is given is known.
redisStore({ send: (args) => send(args) })
redisStore({ cluster: true, send: (args, key) => send([...args.slice(1), key.trim()]) })
redisStore(
  new (class {
    send = send
  })(),
)

declare const deno: { sendCommand(command: string, args?: string[]): Promise<unknown>; evalsha(...args: unknown[]): Promise<unknown> }
declare const wordsOnly: { send: typeof send; sendRaw: typeof send }
declare const itsOwn: { send: typeof send; get(key: string): Promise<unknown> }

// As at run time.
// @ts-expect-error: redis 4 and later have evalSha
redisStore(deno)
// @ts-expect-error: a client of another kind, whose send takes other arguments
redisStore(wordsOnly)
// @ts-expect-error: another one
redisStore(itsOwn)
// @ts-expect-error: nothing is sent
redisStore({})
