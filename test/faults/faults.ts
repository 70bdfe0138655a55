/** The faults: what strikes, what it can make Redis forget, and what ends it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createClient } from 'redis'
import { ofCalls, startProxy } from '../support/fault-proxy.ts'
import { filesFolder } from '../support/files-folder.ts'
import { type RedisServer, startServer, until } from '../support/redis-servers.ts'
import { type Fault, type Place, type Site, STORE_TIMEOUT_MS } from './story.ts'

/** How long a stopped server stands still at least. */
const STOPPED_MS = 2_000

/**
 * A server that writes down what it does before it answers, so that what it has said survives it.
 * (With `everysec` it may keep the last two seconds to itself while the disk is busy.) After so
 * many milliseconds it calls a script slow.
 */
const optionsOf = (folder: string) => ['--dir', folder, '--appendonly', 'yes', '--appendfsync', 'always', '--lua-time-limit', '50']

async function startIn(folder: string, options: readonly string[] = [], port?: number): Promise<Place> {
  return { folder, server: await startServer([...optionsOf(folder), ...options], port) }
}

/** In memory, if there is such a folder: a disk that others keep busy is not among these faults. */
const newFolder = () => mkdtempSync(join(filesFolder, 'sluice-site-'))

async function remove({ server, folder }: Place): Promise<void> {
  await server.kill()
  rmSync(folder, { recursive: true, force: true })
}

/** A server in a folder of its own, and the network in front of it. */
export async function openSite(): Promise<Site> {
  const now = await startIn(newFolder())
  const proxy = await startProxy(now.server.port)
  const site: Site = {
    now,
    proxy,
    address: { ...now.server, host: proxy.host, port: proxy.port },
    others: new Set(),
    async tidy() {
      for (const place of site.others) await remove(place)
      site.others.clear()
    },
    async close() {
      await proxy.close()
      await site.tidy()
      await remove(site.now)
    },
  }
  return site
}

/** The same address and the same folder. */
async function restart(site: Site): Promise<void> {
  const { folder, server } = site.now
  site.now = await startIn(folder, [], server.port)
}

/** Another server takes the place of the one that clients know. */
function takeOver(site: Site, successor: Place): void {
  site.others.add(site.now)
  site.others.delete(successor)
  site.now = successor
  site.proxy.leadTo(successor.server.port)
  site.proxy.cutAll()
}

/** A replica that has heard everything until now, and has written it down. */
async function replicate(site: Site, port: number): Promise<Place> {
  const replica = await startIn(newFolder(), ['--replicaof', site.now.server.host, `${port}`])
  site.others.add(replica)
  await isSaid(replica.server, 'replication', 'master_link_status:up')
  await isSaid(replica.server, 'persistence', 'aof_rewrite_in_progress:0', 'aof_rewrite_scheduled:0', 'aof_enabled:1')
  return replica
}

/** Resolves when all of this is in what the server says of itself. */
function isSaid(server: RedisServer, section: string, ...words: string[]): Promise<void> {
  return until(async () => {
    const said = `${await server.command('INFO', section)}`
    return words.every((word) => said.includes(word))
  })
}

/** Resolves when the server answers a command with such an error. */
function isRefused(server: RedisServer, error: RegExp, ...command: string[]): Promise<void> {
  return until(() =>
    server.command(...command).then(
      () => false,
      (cause) => error.test(`${cause}`),
    ),
  )
}

export const serverFaults: readonly Fault[] = [
  {
    name: 'killed, and started again with nothing',
    isOutage: true,
    forgets: 1,
    why: 'all that it knew was in its memory',
    async strike(site) {
      await site.now.server.kill()
      rmSync(join(site.now.folder, 'appendonlydir'), { recursive: true, force: true })
      return () => restart(site)
    },
  },
  {
    name: 'killed, and started again with its log',
    isOutage: true,
    forgets: 0,
    why: 'it has written down what it did before it answered',
    async strike(site) {
      await site.now.server.kill()
      return () => restart(site)
    },
  },
  {
    name: 'stopped for seconds',
    isOutage: true,
    forgets: 0,
    why: 'it does later what it was told, and forgets nothing',
    async strike({ now: { server } }) {
      server.signal('SIGSTOP')
      const endMs = performance.now() + STOPPED_MS
      return async () => {
        await until(async () => performance.now() >= endMs)
        server.signal('SIGCONT')
      }
    },
  },
  {
    name: 'its memory is full',
    isOutage: true,
    forgets: 0,
    why: 'it refuses to write, and evicts nothing',
    async strike({ now: { server } }) {
      await server.command('CONFIG', 'SET', 'maxmemory', '1')
      return async () => {
        await server.command('CONFIG', 'SET', 'maxmemory', '0')
      }
    },
  },
  {
    name: "busy with somebody else's script",
    isOutage: true,
    forgets: 0,
    why: 'it runs nothing else meanwhile',
    async strike({ now: { server } }) {
      const other = createClient({ socket: { host: server.host, port: server.port, reconnectStrategy: false } })
      other.on('error', () => undefined)
      await other.connect()
      const endless = other.sendCommand(['EVAL', 'while true do end', '0']).catch(() => undefined)
      await isRefused(server, /BUSY/, 'GET', 'x')
      return async () => {
        await server.command('SCRIPT', 'KILL')
        await endless
        other.destroy()
      }
    },
  },
  {
    name: 'dead, and a replica that was cut off before takes its place',
    isOutage: true,
    forgets: 1,
    why: 'the replica has not heard of a single admission',
    async prepare(site) {
      const wire = await startProxy(site.now.server.port)
      const replica = await replicate(site, wire.port)
      await wire.close()
      await isSaid(replica.server, 'replication', 'master_link_status:down')
      return replica
    },
    async strike(site, replica) {
      await site.now.server.kill()
      return async () => {
        await replica?.server.command('REPLICAOF', 'NO', 'ONE')
        takeOver(site, replica as Place)
      }
    },
  },
  {
    name: 'made a replica of its replica, in good order',
    isOutage: true,
    forgets: 0,
    why: 'it takes no more writes until the replica has all of them',
    prepare: (site) => replicate(site, site.now.server.port),
    async strike(site, replica) {
      await site.now.server.command('FAILOVER')
      await isRefused(site.now.server, /READONLY/, 'SET', 'x', '1', 'PX', '1000')
      return async () => takeOver(site, replica as Place)
    },
  },
  {
    name: 'made to forget its scripts, again and again',
    isOutage: false,
    forgets: 0,
    why: 'a script that it does not know did not run, and is told again',
    async strike({ now: { server } }) {
      let isOver = false
      await server.command('CONFIG', 'RESETSTAT')
      // Once before anybody calls: all of them may be answered sooner than the loop has connected.
      await server.command('SCRIPT', 'FLUSH')
      const flushing = (async () => {
        while (!isOver) await server.command('SCRIPT', 'FLUSH')
      })()
      return async () => {
        isOver = true
        await flushing
        // Nothing is survived that did not happen.
        await isSaid(server, 'errorstats', 'errorstat_NOSCRIPT')
      }
    },
  },
]

/** Every call fares so. */
const network = (name: string, isOutage: boolean, why: string, fate: Parameters<typeof ofCalls>[0]): Fault => ({
  name,
  isOutage,
  forgets: 0,
  why,
  async strike({ proxy }) {
    proxy.strike(ofCalls(fate))
    return async () => proxy.heal()
  },
})

/** Where requests and replies are cut: less than the shortest of them is long. */
export interface Cuts {
  readonly requestBytes: number
  readonly replyBytes: number
}

export const networkFaults = ({ requestBytes, replyBytes }: Cuts = { requestBytes: 50, replyBytes: 20 }): readonly Fault[] => [
  network('every request is cut in the middle', true, 'Redis runs only whole requests', { cut: 'request', afterBytes: requestBytes }),
  network('every reply is cut in the middle', true, 'Redis has charged it, once', { cut: 'reply', afterBytes: replyBytes }),
  network('requests are lost', true, 'Redis never sees them', { drop: 'request' }),
  network('replies are lost', true, 'Redis has charged them, once', { drop: 'reply' }),
  network('replies come too late', true, 'Redis has charged them, once', { delay: 'reply', ms: 1.5 * STORE_TIMEOUT_MS }),
  network('replies come late, but in time', false, 'they are answers like any other', { delay: 'reply', ms: 20 }),
  {
    name: 'nobody can connect',
    isOutage: true,
    forgets: 0,
    why: 'Redis sees nothing',
    async strike({ proxy }) {
      proxy.refuse()
      return async () => proxy.heal()
    },
  },
]

/** A fault of the server and one of the network at the same time. */
export function together(first: Fault, second: Fault): Fault {
  return {
    name: `${first.name}; meanwhile ${second.name}`,
    isOutage: first.isOutage || second.isOutage,
    forgets: first.forgets + second.forgets,
    why: `${first.why}; ${second.why}`,
    prepare: async (site) => first.prepare?.(site),
    async strike(site, prepared) {
      const ends = [await first.strike(site, prepared), await second.strike(site, undefined)]
      return async () => {
        for (const end of ends.reverse()) await end()
      }
    },
  }
}
