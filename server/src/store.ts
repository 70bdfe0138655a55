/** Where counts live: the memory of this process, or Redis, so that many copies of the service hold one limit. */
import { DEFAULT_BOUNDS } from './config/config.ts'
import { type MemoryStoreOptions, memoryStore, redisStore, type Store } from './sluice.ts'

export interface OpenedStore {
  readonly store: Store
  /** For people: without a password. */
  readonly description: string
  close(): void
}

/** A URL is one server (or the master behind it); several, separated by commas, are nodes of a cluster. None: the memory, within its bounds. */
export async function openStore(
  redisUrl: string | undefined,
  onError: (error: Error) => void,
  { maxKeys, onFull }: Required<MemoryStoreOptions> = DEFAULT_BOUNDS,
): Promise<OpenedStore> {
  if (redisUrl === undefined || redisUrl === '') {
    return { store: memoryStore({ maxKeys, onFull }), description: 'the memory of this process', close() {} }
  }
  const urls = redisUrl.split(',').map((url) => url.trim())
  for (const url of urls) checkUrl(url)
  // Only where it is used: loading it takes a quarter of the start.
  const { Cluster, Redis } = await import('ioredis')
  // Nothing is ever sent twice: it could be charged twice. And nothing waits for a server that is away: the failure policy decides. A
  // connection that owes an answer for so long is dead, and made anew.
  const socketTimeout = 3_000
  const client =
    urls.length === 1
      ? new Redis(urls[0] as string, { maxRetriesPerRequest: 0, retryStrategy: reconnectMs, socketTimeout })
      : new Cluster(urls, { retryDelayOnFailover: 0, clusterRetryStrategy: reconnectMs, redisOptions: { socketTimeout } })
  client.on('error', onError)
  return { store: redisStore(client), description: urls.map(withoutPassword).join(', '), close: () => client.disconnect() }
}

/** How long to wait before the next attempt to connect. */
function reconnectMs(attempt: number): number {
  return Math.min(50 * attempt, 1_000)
}

function checkUrl(url: string): void {
  if (URL.canParse(url) && /^rediss?:$/.test(new URL(url).protocol)) return
  throw new Error(
    `the Redis URL ${JSON.stringify(withoutPassword(url))} must be such as redis://localhost:6379, or several separated by commas`,
  )
}

function withoutPassword(url: string): string {
  return url.replace(/\/\/.*@/, '//')
}
