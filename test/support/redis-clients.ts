/** Every client on every topology, opened as its users do. */
import { GlideClient, GlideClusterClient, Logger } from '@valkey/valkey-glide'
import * as ioredis from 'ioredis'
import * as iovalkey from 'iovalkey'
import { createClient, createClientPool, createCluster, createSentinel } from 'redis'
import type { RedisClient } from '../../src/stores/redis/index.ts'
import { hasValkey, type RedisServer } from './redis-servers.ts'

export type TopologyName = 'single' | 'sentinel' | 'cluster' | 'valkey'

export interface Opened {
  readonly client: RedisClient
  close(): unknown
}

export interface ClientCase {
  readonly name: string
  readonly topology: TopologyName
  /** `servers`: the server, the sentinels, or the nodes of the cluster. */
  open(servers: readonly RedisServer[]): Promise<Opened>
}

// It writes a line for every script that a server does not know.
Logger.setLoggerConfig('off')

/** A client without this listener would throw when a server goes away. */
const quiet = <Client extends { on(event: 'error', fn: () => void): unknown }>(client: Client): Client => {
  client.on('error', () => undefined)
  return client
}

const addressesOf = (servers: readonly RedisServer[]) => servers.map(({ host, port }) => ({ host, port }))
const urlOf = (server: RedisServer | undefined) => `redis://${server?.host}:${server?.port}`
const NO_RESENDING = { maxRetriesPerRequest: 0 }

/** ioredis and iovalkey have the same interface. */
function ioredisCases(name: string, { Redis, Cluster }: { Redis: typeof ioredis.Redis; Cluster: typeof ioredis.Cluster }): ClientCase[] {
  const opened = (client: ioredis.Redis | ioredis.Cluster): Opened => ({ client: quiet(client), close: () => client.disconnect() })
  return [
    { name, topology: 'single', open: async ([server]) => opened(new Redis({ ...(server as RedisServer), ...NO_RESENDING })) },
    {
      name,
      topology: 'sentinel',
      open: async (servers) => opened(new Redis({ sentinels: addressesOf(servers), name: 'main', ...NO_RESENDING })),
    },
    { name, topology: 'cluster', open: async (servers) => opened(new Cluster(addressesOf(servers), { retryDelayOnFailover: 0 })) },
  ]
}

const nodeRedisCases: ClientCase[] = [
  {
    name: 'redis',
    topology: 'single',
    async open(servers) {
      const client = quiet(createClient({ url: urlOf(servers[0]) }))
      await client.connect()
      return { client, close: () => client.destroy() }
    },
  },
  {
    name: 'redis pool',
    topology: 'single',
    async open(servers) {
      const client = quiet(createClientPool({ url: urlOf(servers[0]) }))
      await client.connect()
      return { client, close: () => client.destroy() }
    },
  },
  {
    name: 'redis',
    topology: 'sentinel',
    async open(servers) {
      const client = quiet(createSentinel({ name: 'main', sentinelRootNodes: addressesOf(servers) }))
      await client.connect()
      return { client, close: () => client.destroy() }
    },
  },
  {
    name: 'redis',
    topology: 'cluster',
    async open(servers) {
      const client = quiet(createCluster({ rootNodes: servers.map((server) => ({ url: urlOf(server) })) }))
      await client.connect()
      return { client, close: () => client.destroy() }
    },
  },
]

const glideCases: ClientCase[] = [
  {
    name: 'valkey-glide',
    topology: 'single',
    async open(servers) {
      const client = await GlideClient.createClient({ addresses: addressesOf(servers), requestTimeout: 10_000 })
      return { client, close: () => client.close() }
    },
  },
  {
    name: 'valkey-glide',
    topology: 'cluster',
    async open(servers) {
      const client = await GlideClusterClient.createClient({ addresses: addressesOf(servers), requestTimeout: 10_000 })
      return { client, close: () => client.close() }
    },
  },
]

const onRedis: readonly ClientCase[] = [
  ...nodeRedisCases,
  ...ioredisCases('ioredis', ioredis),
  ...ioredisCases('iovalkey', iovalkey as unknown as typeof ioredis),
  ...glideCases,
]

/** Every client on a single Valkey too. */
const onValkey = onRedis.filter(({ topology }) => topology === 'single').map((cell): ClientCase => ({ ...cell, topology: 'valkey' }))

export const clientCases: readonly ClientCase[] = hasValkey() ? [...onRedis, ...onValkey] : onRedis

/** Cells of the matrix that are not there, and why. */
export const leftOut: readonly { readonly name: string; readonly topology: TopologyName; readonly why: string }[] = [
  { name: 'valkey-glide', topology: 'sentinel', why: 'the client has no support for Sentinel' },
  { name: 'redis pool', topology: 'sentinel', why: 'a pool is of one server; the sentinel client has pools of its own' },
  { name: 'redis pool', topology: 'cluster', why: 'a pool is of one server' },
  ...(hasValkey() ? [] : onValkey).map(({ name, topology }) => ({ name, topology, why: "the system's packages have no valkey-server" })),
]
