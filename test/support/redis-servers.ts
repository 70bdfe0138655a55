/**
 * Real servers of our own on free ports: one alone, one with sentinels and a replica, a cluster of
 * three primaries and three replicas.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'

const HOST = '127.0.0.1'
/** The bus of a cluster node listens 10,000 ports above its own. */
const BUS_OFFSET = 10_000

export interface RedisServer {
  readonly host: string
  readonly port: number
  readonly pid: number
  /** One command on a connection of its own. */
  command(...args: string[]): Promise<unknown>
  /** Ends it as a crash would. */
  kill(): Promise<void>
  /** Lets it stand still, and go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT'): void
}

export interface Topology {
  readonly servers: readonly RedisServer[]
  stop(): Promise<void>
}

/** Whether the system has a Valkey to test against. */
export function hasValkey(): boolean {
  return spawnSync('valkey-server', ['--version']).status === 0
}

export async function freePort(below = 65_000): Promise<number> {
  for (;;) {
    const probe = createServer()
    await new Promise<void>((resolve) => probe.listen(0, HOST, resolve))
    const { port } = probe.address() as { port: number }
    await new Promise((resolve) => probe.close(resolve))
    if (port < below) return port
  }
}

/** How often another port is taken, where something else has taken the first in the meantime. */
const PORTS_TO_TRY = 5

/** Resolves when the server says that it is up. */
export async function startServer(options: readonly string[] = [], port?: number, program = 'redis-server'): Promise<RedisServer> {
  if (port !== undefined) return startServerAt(options, port, program)
  for (let tries = 1; ; tries++) {
    try {
      return await startServerAt(options, await freePort(65_000 - BUS_OFFSET), program)
    } catch (error) {
      if (tries === PORTS_TO_TRY || !`${error}`.includes('Address already in use')) throw error
    }
  }
}

async function startServerAt(options: readonly string[], ownPort: number, program: string): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  const base = [
    '--port',
    `${ownPort}`,
    '--bind',
    HOST,
    '--save',
    '',
    '--appendonly',
    'no',
    '--repl-diskless-sync-delay',
    '0',
    '--dir',
    folder,
  ]
  const child = await started(program, [...base, ...options], 'Ready to accept connections')
  return serverOf(child, ownPort, folder)
}

/** A sentinel needs a file, because it writes down what it learns. */
export async function startSentinel(primary: Pick<RedisServer, 'host' | 'port'>, downAfterMs = PATIENT_MS): Promise<RedisServer> {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-sentinel-'))
  const file = join(folder, 'sentinel.conf')
  const lines = [
    `port ${port}`,
    `bind ${HOST}`,
    `dir ${folder}`,
    `sentinel monitor main ${primary.host} ${primary.port} 2`,
    `sentinel down-after-milliseconds main ${downAfterMs}`,
    'sentinel failover-timeout main 2000',
  ]
  writeFileSync(file, lines.join('\n'))
  return serverOf(await started('redis-server', [file, '--sentinel'], 'Sentinel ID is'), port, folder)
}

export interface SentinelTopology extends Topology {
  readonly sentinels: readonly RedisServer[]
}

/**
 * After how long a server that does not answer is taken for dead, and another for its place. Where
 * nobody is to die: for longer than one stands still on a busy machine. Where one is: for not long.
 */
const PATIENT_MS = 15_000
export const QUICK_MS = 1_500

/**
 * A primary, a replica and three sentinels that have found each other. The name of the primary is
 * `main`.
 */
export async function startSentinels(downAfterMs = PATIENT_MS): Promise<SentinelTopology> {
  const primary = await startServer()
  const replica = await startServer(['--replicaof', HOST, `${primary.port}`])
  await until(() => isReplicating(replica))
  const sentinels = await Promise.all([1, 2, 3].map(() => startSentinel(primary, downAfterMs)))
  for (const sentinel of sentinels) {
    await until(async () => {
      const info = `${await sentinel.command('INFO', 'sentinel')}`
      return info.includes('slaves=1') && info.includes('sentinels=3')
    })
  }
  const servers = [primary, replica]
  return { servers, sentinels, stop: () => stopAll([...sentinels, ...servers]) }
}

export const clusterOptions = (nodeTimeoutMs = PATIENT_MS): string[] => [
  '--cluster-enabled',
  'yes',
  '--cluster-node-timeout',
  `${nodeTimeoutMs}`,
  '--cluster-config-file',
  'nodes.conf',
]

/** Three primaries, each with a replica; the primaries come first. */
export async function startCluster(nodeTimeoutMs = PATIENT_MS): Promise<Topology> {
  const servers = await Promise.all([1, 2, 3, 4, 5, 6].map(() => startServer(clusterOptions(nodeTimeoutMs))))
  await createCluster(servers, 1)
  // A replica that has not heard of its primary's data yet cannot take over.
  for (const replica of servers.slice(3)) await until(() => isReplicating(replica))
  return { servers, stop: () => stopAll(servers) }
}

export async function createCluster(servers: readonly RedisServer[], replicas: number): Promise<void> {
  const addresses = servers.map(({ port }) => `${HOST}:${port}`)
  await done('redis-cli', ['--cluster', 'create', ...addresses, '--cluster-replicas', `${replicas}`, '--cluster-yes'])
  for (const server of servers) {
    await until(async () => {
      const info = `${await server.command('CLUSTER', 'INFO')}`
      return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${servers.length}`)
    })
  }
}

export interface Shards extends Topology {
  readonly servers: RedisServer[]
  /** Starts one that was killed again, with the slots that it had. */
  restart(index: number): Promise<void>
}

/** Three primaries without replicas. When one is dead, the others go on serving their slots. */
export async function startShards(nodeTimeoutMs = PATIENT_MS): Promise<Shards> {
  const folders = [1, 2, 3].map(() => mkdtempSync(join(tmpdir(), 'sluice-shard-')))
  const optionsOf = (folder: string) => [...clusterOptions(nodeTimeoutMs), '--cluster-require-full-coverage', 'no', '--dir', folder]
  const servers = await Promise.all(folders.map((folder) => startServer(optionsOf(folder))))
  await createCluster(servers, 0)
  return {
    servers,
    async restart(index) {
      servers[index] = await startServer(optionsOf(folders[index] as string), (servers[index] as RedisServer).port)
    },
    async stop() {
      await stopAll(servers)
      for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function isReplicating(replica: RedisServer): Promise<boolean> {
  return `${await replica.command('INFO', 'replication')}`.includes('master_link_status:up')
}

/** The server that takes writes now. */
export async function primaryOf(servers: readonly RedisServer[]): Promise<RedisServer | undefined> {
  for (const server of servers) {
    const role = await server.command('ROLE').catch(() => undefined)
    if (Array.isArray(role) && role[0] === 'master') return server
  }
  return undefined
}

/** Looks again until it is so. Only for what real servers do in their own time. */
export async function until(isSo: () => Promise<boolean>, withinMs = 60_000): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!(await isSo().catch(() => false))) {
    if (performance.now() > endMs) throw new Error(`it is not so after ${withinMs} ms: ${isSo}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function stopAll(servers: readonly RedisServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.kill()))
}

function serverOf(child: ChildProcess, port: number, folder: string): RedisServer {
  return {
    host: HOST,
    port,
    pid: child.pid as number,
    async command(...args) {
      const client = createClient({ socket: { host: HOST, port, reconnectStrategy: false } })
      client.on('error', () => undefined)
      await client.connect()
      try {
        return await client.sendCommand(args)
      } finally {
        client.destroy()
      }
    },
    async kill() {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = new Promise((resolve) => child.once('exit', resolve))
        child.kill('SIGKILL')
        await ended
      }
      rmSync(folder, { recursive: true, force: true })
    },
    signal: (signal) => {
      child.kill(signal)
    },
  }
}

function started(command: string, args: readonly string[], sign: string): Promise<ChildProcess> {
  const child = spawn(command, args)
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += chunk
      if (said.includes(sign)) resolve(child)
    })
    child.once('error', (cause) => reject(new Error(`${command} could not be started: \`npm test\` installs it`, { cause })))
    child.once('exit', (code) => reject(new Error(`${command} ended with ${code}:\n${said}`)))
  })
}

function done(command: string, args: readonly string[]): Promise<void> {
  const child = spawn(command, args)
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += chunk
    })
    child.once('error', reject)
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${command} ended with ${code}:\n${said}`))))
  })
}
