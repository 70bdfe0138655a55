/**
 * Any client becomes a sender: one function that sends a command and gives its reply. A client is
 * recognised by what it can do, and nothing is changed on it.
 */
import { SluiceError, shown, warn } from '../../errors.ts'

/** All that Sluice needs of a client. */
export interface RedisSender {
  /**
   * Sends one command and gives its reply, or rejects with the server's error. `key` is the first
   * key in it: it decides the node of a cluster.
   */
  send(args: readonly string[], key: string): Promise<unknown>
  /** Whether keys of different hash slots may be on different servers. Default false. */
  readonly cluster?: boolean
  /**
   * Runs what sends several commands such that they are written together, one pipeline for each
   * server. For clients that do not see to it themselves.
   */
  together?(sendAll: () => void): void
  /**
   * The name of the server of a cluster that has a hash slot, as far as the client knows. With it a
   * server that is down stands for its own keys only.
   */
  nodeOf?(slot: number): string | undefined
  /**
   * What to set on the client so that it notices a connection that is dead and looks open;
   * undefined if it would, or if its connection to the server of that hash slot is not open.
   */
  advice?(slot: number): string | undefined
}

type Send = (...args: never[]) => Promise<unknown>

/**
 * `redis` (client, pool, cluster, sentinel), `ioredis` and `iovalkey` (Redis, Cluster),
 * `@valkey/valkey-glide` (both), Bun's own, or a sender.
 */
export type RedisClient =
  | (RedisSender & { readonly [name in (typeof OF_OTHER_CLIENTS)[number]]?: never })
  | { sendCommand: Send; evalSha: Send }
  | { call: Send }
  | { customCommand: Send }
  | { getBuffer: Send }

export function senderOf(client: RedisClient): RedisSender {
  if (typeof client === 'object' && client !== null) {
    if (can(client, 'customCommand')) return glideSender(client as Glide)
    if (can(client, 'call')) return ioredisSender(client as Ioredis)
    if (can(client, 'send_command')) throw new SluiceError('CONFIG', REDIS_3)
    if (can(client, 'sendCommand') && can(client, 'evalSha')) return nodeRedisSender(client as NodeRedis)
    if (can(client, 'send') && can(client, 'getBuffer')) return bunSender(client as unknown as BunRedis)
    if (can(client, 'send') && !OF_OTHER_CLIENTS.some((name) => can(client, name))) return client as RedisSender
  }
  throw new SluiceError('CONFIG', `redisStore client ${shown(client)} ${KNOWN_CLIENTS}`)
}

/** Methods of clients whose `send` takes other arguments than ours. */
const OF_OTHER_CLIENTS = ['get', 'GET', 'sendRaw'] as const

const KNOWN_CLIENTS =
  "must be a client of redis 4 or later, ioredis, iovalkey, @valkey/valkey-glide or Bun. Of any other client give redisStore { send: (args) => ... }, which sends one command, args = ['EVALSHA', ...], and gives a promise of its reply"

/** Its commands take callbacks and return no promises. */
const REDIS_3 =
  'redisStore client is one of redis 3 or older, which knows no promises: install redis 4 or later, or give redisStore { send(args) }'

/** How long a connection may be silent while it owes an answer. */
const SOCKET_TIMEOUT = 'socketTimeout: 3000'

function can(client: object, name: string): boolean {
  return typeof (client as Record<string, unknown>)[name] === 'function'
}

interface NodeRedis {
  sendCommand(...args: unknown[]): Promise<unknown>
  readonly isReady?: boolean
  readonly isOpen?: boolean
  /** Of one client. A pool and a sentinel do not tell theirs. */
  readonly options?: { readonly socket?: { readonly socketTimeout?: number } }
  /** Of a cluster. */
  readonly slots?: readonly ({ readonly master: { readonly address: string; readonly client?: NodeRedis } } | undefined)[]
}

/**
 * By default it does not reconnect after a timeout of the socket, and connections that nobody uses
 * have one too: a ping keeps them busy.
 */
const NODE_REDIS_NEEDS = `socket: { ${SOCKET_TIMEOUT}, reconnectStrategy: (retries) => Math.min(50 * retries, 1000) }, pingInterval: 1000`

/**
 * A cluster wants to know the key and whether the command only reads, a sentinel only the latter.
 */
function nodeRedisSender(client: NodeRedis): RedisSender {
  const advising = (needs: string, connectionTo: (slot: number) => NodeRedis | undefined) => (slot: number) => {
    const connection = connectionTo(slot)
    const isConnected = connection?.isReady ?? connection?.isOpen
    return isConnected && connection?.options?.socket?.socketTimeout === undefined ? needs : undefined
  }
  if (can(client, 'nodeClient')) {
    const nodeOf = (slot: number) => client.slots?.[slot]?.master.address
    const advice = advising(`defaults: { ${NODE_REDIS_NEEDS} }`, (slot) => client.slots?.[slot]?.master.client)
    return { cluster: true, nodeOf, advice, send: (args, key) => client.sendCommand(key, false, args) }
  }
  if (can(client, 'getSentinelNode')) {
    const advice = advising(`nodeClientOptions: { ${NODE_REDIS_NEEDS} }`, () => client)
    return { advice, send: (args) => client.sendCommand(false, args) }
  }
  return { advice: advising(NODE_REDIS_NEEDS, () => client), send: (args) => client.sendCommand(args) }
}

interface Corkable {
  cork?(): void
  uncork?(): void
}

interface Ioredis {
  call(...args: readonly string[]): Promise<unknown>
  nodes?(): readonly Ioredis[]
  readonly stream?: Corkable
  readonly status?: string
  readonly options?: IoredisOptions & { readonly retryDelayOnFailover?: number; readonly redisOptions?: IoredisOptions }
  /** Of a cluster: for each hash slot its servers, the primary first. */
  readonly slots?: readonly (readonly string[] | undefined)[]
}

interface IoredisOptions {
  readonly host?: string
  readonly port?: number
  readonly maxRetriesPerRequest?: number | null
  readonly socketTimeout?: number
}

function ioredisSender(client: Ioredis): RedisSender {
  const cluster = can(client, 'nodes')
  const option = cluster ? 'retryDelayOnFailover' : 'maxRetriesPerRequest'
  if (client.options?.[option] !== 0) warnOfResending(option)
  const { socketTimeout } = (cluster ? client.options?.redisOptions : client.options) ?? {}
  const nodeOf = (slot: number) => client.slots?.[slot]?.[0]
  const connectionTo = (slot: number) =>
    cluster ? client.nodes?.().find(({ options }) => `${options?.host}:${options?.port}` === nodeOf(slot)) : client
  const needed = cluster ? `redisOptions: { ${SOCKET_TIMEOUT} }` : SOCKET_TIMEOUT
  return {
    cluster,
    nodeOf,
    advice: (slot) => (connectionTo(slot)?.status === 'ready' && socketTimeout === undefined ? needed : undefined),
    // iovalkey finds the node of a command only if its name is in lower case, and asks any node
    // otherwise. Scripts must not go to a dead one. A probe may: the others say where its slot is
    // now, and without that iovalkey hears of no failover.
    send: ([name = '', ...rest]) => client.call(name.startsWith('EVAL') ? name.toLowerCase() : name, ...rest),
    together(sendAll) {
      const streams = (client.nodes?.() ?? [client]).map(({ stream }) => stream)
      try {
        for (const stream of streams) stream?.cork?.()
        sendAll()
      } finally {
        // One that stayed corked would hold back everything that is written to it.
        for (const stream of streams) stream?.uncork?.()
      }
    },
  }
}

/**
 * A command that was under way when a connection broke may have run. Sent again, it would be
 * charged twice. (With `autoResendUnfulfilledCommands: false` it is not sent again, but never
 * answered either.)
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

/** `Bun.RedisClient`. It writes the commands of one turn together. */
interface BunRedis {
  send(command: string, args: string[]): Promise<unknown>
  readonly connected?: boolean
  readonly onclose?: ((error: Error) => void) | null
}

/** By default it waits for an answer for ever; after a timeout it does not connect again. */
const BUN_NEEDS = 'idleTimeout: 3000, and set its onclose to connect() again'

function bunSender(client: BunRedis): RedisSender {
  return {
    advice: () => (client.connected && typeof client.onclose !== 'function' ? BUN_NEEDS : undefined),
    send: ([name = '', ...rest]) => client.send(name, rest),
  }
}
