/**
 * Real servers whose clients, and all that they are told of, come through a proxy: one alone, one
 * with a sentinel, and a cluster of three.
 */
import { type FaultProxy, startProxy } from './fault-proxy.ts'
import { clusterOptions, createCluster, freePort, type RedisServer, startSentinel, startServer, until } from './redis-servers.ts'

/** The bus of a cluster's node listens so many ports above its own. */
const BUS_OFFSET = 10_000

export interface Proxied {
  /** Where a client is told to connect: the server, the sentinel, or one of the nodes. */
  readonly entry: { readonly host: string; readonly port: number }
  /** In front of the server, the primary, or that node. */
  readonly primary: FaultProxy
  /** The connections that are open now look alive and are not. New ones are served. */
  forgetAll(): void
  stop(): Promise<void>
}

export async function proxiedServer(): Promise<Proxied> {
  const server = await startServer()
  return proxied([await startProxy(server.port)], [server])
}

/** The name of the primary is `main`. The sentinel comes through a proxy too. */
export async function proxiedSentinel(): Promise<Proxied> {
  const server = await startServer()
  const proxy = await startProxy(server.port)
  const sentinel = await startSentinel(proxy)
  const entry = await startProxy(sentinel.port)
  await until(async () => `${await sentinel.command('INFO', 'sentinel')}`.includes('status=ok'))
  return proxied([proxy, entry], [server, sentinel], entry)
}

/** Its nodes tell clients the addresses of their proxies. */
export async function proxiedCluster(): Promise<Proxied> {
  const nodes = await Promise.all(
    [1, 2, 3].map(async () => {
      const port = await freePort(65_000 - BUS_OFFSET)
      const proxy = await startProxy(port)
      const announced = ['--cluster-announce-port', `${proxy.port}`, '--cluster-announce-bus-port', `${port + BUS_OFFSET}`]
      return { proxy, server: await startServer([...clusterOptions(), ...announced], port) }
    }),
  )
  const servers = nodes.map(({ server }) => server)
  await createCluster(servers, 0)
  return proxied(
    nodes.map(({ proxy }) => proxy),
    servers,
  )
}

function proxied(proxies: readonly FaultProxy[], servers: readonly RedisServer[], entry = proxies[0] as FaultProxy): Proxied {
  return {
    entry,
    primary: proxies[0] as FaultProxy,
    forgetAll() {
      for (const proxy of proxies) proxy.forgetAll()
    },
    async stop() {
      await Promise.all([...proxies.map((proxy) => proxy.close()), ...servers.map((server) => server.kill())])
    },
  }
}
