/**
 * Where counts live: the memory of this process; Redis, so that many copies of the service hold one
 * limit; or a file, for those of one machine.
 */

import type { SecureContextOptions } from 'node:tls'
import type { Cluster, Redis } from 'ioredis'
import { DEFAULT_BOUNDS } from './config/config.ts'
import { type Access, type RedisAddress, redisAddress, withoutSecrets } from './redis-url.ts'
import { type MemoryStoreOptions, memoryStore, redisStore, type Store, sqliteStore } from './sluice.ts'

export interface OpenedStore {
  readonly store: Store
  /** For people: without a password. */
  readonly description: string
  close(): void
}

/** What is not in the URL. */
export interface RedisSecrets {
  readonly sentinelPassword?: string | undefined
  /** Certificates, with a URL of rediss:// or rediss+sentinel:// only. */
  readonly tls?: SecureContextOptions | undefined
}

export async function openStore(
  redisUrl: string | undefined,
  onError: (error: Error) => void,
  { maxKeys, onFull }: Required<MemoryStoreOptions> = DEFAULT_BOUNDS,
  { sentinelPassword, tls }: RedisSecrets = {},
): Promise<OpenedStore> {
  if (redisUrl === undefined || redisUrl === '') {
    return { store: memoryStore({ maxKeys, onFull }), description: 'the memory of this process', close() {} }
  }
  const address = redisAddress(redisUrl)
  if (tls !== undefined && address.access.tls === undefined) {
    throw new Error(`--redis-ca, --redis-cert and --redis-key go with a URL of rediss://, not ${JSON.stringify(withoutSecrets(redisUrl))}`)
  }
  const client = await clientFor(address, sentinelPassword, tls)
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

/**
 * Nothing is ever sent twice: it could be charged twice. And nothing waits for a server that is
 * away: the failure policy decides.
 */
async function clientFor(
  address: RedisAddress,
  sentinelPassword: string | undefined,
  certificates: SecureContextOptions | undefined,
): Promise<Redis | Cluster> {
  // Only where it is used: loading it takes a quarter of the start.
  const { Cluster, Redis } = await import('ioredis')
  const options = { maxRetriesPerRequest: 0, retryStrategy: reconnectMs, socketTimeout }
  const access: Access = { ...address.access, ...(certificates === undefined ? {} : { tls: certificates }) }
  if (address.kind === 'server') return new Redis(address.url, { ...options, ...access })
  if (address.kind === 'socket') return new Redis({ ...options, ...access, path: address.path })
  if (address.kind === 'sentinels') {
    const { sentinels, primary } = address
    return new Redis({
      ...options,
      ...access,
      sentinels: [...sentinels],
      name: primary,
      sentinelRetryStrategy: reconnectMs,
      ...(access.tls === undefined ? {} : { enableTLSForSentinelMode: true, sentinelTLS: access.tls }),
      ...(sentinelPassword === undefined ? {} : { sentinelPassword }),
    })
  }
  const redisOptions = { socketTimeout, ...access }
  return new Cluster([...address.nodes], { retryDelayOnFailover: 0, clusterRetryStrategy: reconnectMs, redisOptions })
}

/** How long to wait before the next attempt to connect. */
function reconnectMs(attempt: number): number {
  return Math.min(50 * attempt, 1_000)
}
