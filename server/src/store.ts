/** Where counts live: the memory of this process; Redis, so that many copies of the service hold one limit; or a file, for those of one machine. */
import type { Cluster, Redis } from 'ioredis'
import { DEFAULT_BOUNDS } from './config/config.ts'
import { type RedisAddress, redisAddress, withoutSecrets } from './redis-url.ts'
import { type MemoryStoreOptions, memoryStore, redisStore, type Store, sqliteStore } from './sluice.ts'

export interface OpenedStore {
  readonly store: Store
  /** For people: without a password. */
  readonly description: string
  close(): void
}

export async function openStore(
  redisUrl: string | undefined,
  onError: (error: Error) => void,
  { maxKeys, onFull }: Required<MemoryStoreOptions> = DEFAULT_BOUNDS,
  sentinelPassword?: string,
): Promise<OpenedStore> {
  if (redisUrl === undefined || redisUrl === '') {
    return { store: memoryStore({ maxKeys, onFull }), description: 'the memory of this process', close() {} }
  }
  const client = await clientFor(redisAddress(redisUrl), sentinelPassword)
  client.on('error', onError)
  return { store: redisStore(client), description: withoutSecrets(redisUrl), close: () => client.disconnect() }
}

/** A file of SQLite. */
export function openFile(path: string): OpenedStore {
  const store = sqliteStore(path)
  return { store, description: path, close: () => store.close() }
}

/** A connection that owes an answer for so long is dead, and made anew. */
const socketTimeout = 3_000

/** Nothing is ever sent twice: it could be charged twice. And nothing waits for a server that is away: the failure policy decides. */
async function clientFor(address: RedisAddress, sentinelPassword: string | undefined): Promise<Redis | Cluster> {
  // Only where it is used: loading it takes a quarter of the start.
  const { Cluster, Redis } = await import('ioredis')
  const options = { maxRetriesPerRequest: 0, retryStrategy: reconnectMs, socketTimeout }
  if (address.kind === 'socket') return new Redis({ ...options, ...address.access, path: address.path })
  if (address.kind === 'sentinels') {
    const { sentinels, primary, access } = address
    return new Redis({
      ...options,
      ...access,
      sentinels: [...sentinels],
      name: primary,
      sentinelRetryStrategy: reconnectMs,
      enableTLSForSentinelMode: access.tls !== undefined,
      ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    })
  }
  const [first, ...others] = address.urls as [string, ...string[]]
  if (others.length === 0) return new Redis(first, options)
  return new Cluster([...address.urls], { retryDelayOnFailover: 0, clusterRetryStrategy: reconnectMs, redisOptions: { socketTimeout } })
}

/** How long to wait before the next attempt to connect. */
function reconnectMs(attempt: number): number {
  return Math.min(50 * attempt, 1_000)
}
