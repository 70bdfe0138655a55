/**
 * Any client becomes a sender: one function that sends a command and gives its reply. A client is recognised by what it can do, and
 * nothing is changed on it.
 */
import { SluiceError, shown, warn } from '../../errors.ts'

/** All that Sluice needs of a client. */
export interface RedisSender {
  /** Sends one command and gives its reply, or rejects with the server's error. `key` is the first key in it: it decides the node of a cluster. */
  send(args: readonly string[], key: string): Promise<unknown>
  /** Whether keys of different hash slots may be on different servers. Default false. */
  readonly cluster?: boolean
  /** Whether commands are written only after the turn of the event loop, by `setImmediate`, all in one piece. Default false. */
  readonly writesLater?: boolean
  /** Runs what sends several commands such that they are written together, one pipeline for each server. For clients that do not see to it themselves. */
  together?(sendAll: () => void): void
}

type Send = (...args: never[]) => Promise<unknown>

/** `redis` (client, pool, cluster, sentinel), `ioredis` and `iovalkey` (Redis, Cluster), `@valkey/valkey-glide` (both), or a sender. */
export type RedisClient = RedisSender | { sendCommand: Send } | { call: Send } | { customCommand: Send }

export function senderOf(client: RedisClient): RedisSender {
  if (typeof client === 'object' && client !== null) {
    if (can(client, 'send')) return client as RedisSender
    if (can(client, 'customCommand')) return glideSender(client as Glide)
    if (can(client, 'call')) return ioredisSender(client as Ioredis)
    if (can(client, 'sendCommand')) return nodeRedisSender(client as NodeRedis)
  }
  throw new SluiceError(
    'CONFIG',
    `redisStore client ${shown(client)} must be a client of redis, ioredis, iovalkey or @valkey/valkey-glide, or have send(args)`,
  )
}

function can(client: object, name: string): boolean {
  return typeof (client as Record<string, unknown>)[name] === 'function'
}

interface NodeRedis {
  sendCommand(...args: unknown[]): Promise<unknown>
}

/** A cluster wants to know the key and whether the command only reads, a sentinel only the latter. */
function nodeRedisSender(client: NodeRedis): RedisSender {
  if (can(client, 'nodeClient')) return { cluster: true, send: (args, key) => client.sendCommand(key, false, args) }
  if (can(client, 'getSentinelNode')) return { writesLater: true, send: (args) => client.sendCommand(false, args) }
  return { writesLater: true, send: (args) => client.sendCommand(args) }
}

interface Corkable {
  cork?(): void
  uncork?(): void
}

interface Ioredis {
  call(...args: readonly string[]): Promise<unknown>
  nodes?(): readonly Ioredis[]
  readonly stream?: Corkable
  readonly options?: { readonly maxRetriesPerRequest?: number | null; readonly retryDelayOnFailover?: number }
}

function ioredisSender(client: Ioredis): RedisSender {
  const cluster = can(client, 'nodes')
  const option = cluster ? 'retryDelayOnFailover' : 'maxRetriesPerRequest'
  if (client.options?.[option] !== 0) warnOfResending(option)
  return {
    cluster,
    send: (args) => client.call(...args),
    together(sendAll) {
      const streams = (client.nodes?.() ?? [client]).map(({ stream }) => stream)
      for (const stream of streams) stream?.cork?.()
      sendAll()
      for (const stream of streams) stream?.uncork?.()
    },
  }
}

/**
 * A command that was under way when a connection broke may have run. Sent again, it would be charged twice. (With
 * `autoResendUnfulfilledCommands: false` it is not sent again, but never answered either.)
 */
function warnOfResending(option: string): void {
  warn(
    'SLUICE_RESEND',
    `this client sends commands again after a lost connection, so a decision may be charged twice: make the client with ${option}: 0`,
  )
}

interface Glide {
  customCommand(args: readonly string[]): Promise<unknown>
}

function glideSender(client: Glide): RedisSender {
  return { cluster: can(client, 'ssubscribe'), send: (args) => client.customCommand(args) }
}
