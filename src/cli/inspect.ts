/** `sluice inspect`: what a key in Redis or in Postgres means. */

import { SluiceError } from '../errors.ts'
import type { Inspected } from '../stores/inspected.ts'
import type { RedisClient } from '../stores/redis/client.ts'
import { inspectKey } from '../stores/redis/inspect.ts'
import { parsedOptions } from './options.ts'
import { inspectPostgres } from './postgres.ts'
import { type Command, DONE, NO_SUCH_KEY, said, told } from './run.ts'
import { inWords } from './terminal-text.ts'

const DEFAULT_URL = 'redis://localhost:6379'
/** While slots move, a node may be told of one that has just given them away. */
const MOST_REDIRECTIONS = 5
const IS_OF_SLUICE = /:[^:]+:\{.+\}/
const FORM = 'keys are such as sluice:api:{user:42}'
const ROW_FORM = 'the limiter, a colon and the key, such as api:user:42'

export const inspectCommand: Command = {
  summary: 'reads one key of Redis or Postgres, and says what it means now',
  usage: `sluice inspect KEY [--url ${DEFAULT_URL}] [--json]
sluice inspect LIMITER:KEY --postgres URL [--table sluice] [--json]

  Reads one key of Redis, such as sluice:api:{user:42}, and says what it means now: prefix, name of the limiter, and the key in braces. In a
  cluster any node will do. It needs one of the packages redis, ioredis, iovalkey beside it, and writes nothing. Exit code ${NO_SUCH_KEY}: there is
  no such key.

  Of Postgres it reads the rows of one key of a limiter, such as api:user:42, with one of the packages pg, postgres.

  --url URL        where Redis is: redis://user:password@host:6379/0, rediss:// with TLS
  --postgres URL   where Postgres is: postgres://user:password@host:5432/database
  --table NAME     the table there, or schema.table. Default sluice
  --json           as JSON, for other programs; times are milliseconds`,
  async run(args) {
    const text = { type: 'string' } as const
    const known = { url: text, postgres: text, table: text, json: { type: 'boolean' } } as const
    const { values, positionals } = parsedOptions(args, known)
    const [key = '', ...others] = positionals
    if (key === '' || others.length > 0) throw new SluiceError('CONFIG', 'inspect wants one key, such as sluice:api:{user:42}')
    const { url = DEFAULT_URL, postgres, table = 'sluice' } = values
    const isRedis = postgres === undefined
    const inspected = isRedis ? await inspectAt(url, key, MOST_REDIRECTIONS) : await inspectPostgres(postgres, table, key)
    if (isRedis && inspected.length === 0 && !IS_OF_SLUICE.test(key))
      return told(`${key} is not there, and no key of Sluice: ${FORM}`, NO_SUCH_KEY)
    if (values.json) said(JSON.stringify(inspected.length <= 1 && inspected[0]?.policy === undefined ? (inspected[0] ?? null) : inspected))
    else
      said(
        inspected.length === 0
          ? `${key}: no such key. Nothing is in use, or it is misspelt: ${isRedis ? FORM : ROW_FORM}`
          : inspected.map((each) => drawn(each, isRedis)).join('\n'),
      )
    return inspected.length === 0 ? NO_SUCH_KEY : DONE
  },
}

/** A node of a cluster that does not have the key says which does. */
async function inspectAt(url: string, key: string, redirections: number): Promise<Inspected[]> {
  const { client, close } = await connected(url)
  let nextUrl: string | undefined
  try {
    return await inspectKey(client, key)
  } catch (error) {
    nextUrl = redirections > 0 ? movedTo(url, error as Error) : undefined
    if (nextUrl === undefined) throw error
  } finally {
    close()
  }
  return inspectAt(nextUrl, key, redirections - 1)
}

/**
 * The address of the node that has the key, with the same user and password. A node that does not
 * know its own address leaves it out.
 */
function movedTo(url: string, { cause }: { cause?: unknown }): string | undefined {
  const [, host = '', port] = /\bMOVED \d+ (.*):(\d+)$/.exec(String((cause as Error | undefined)?.message)) ?? []
  if (port === undefined || !URL.canParse(url)) return undefined
  const next = new URL(url)
  if (host !== '') next.hostname = host.includes(':') ? `[${host}]` : host
  next.port = port
  return next.href
}

function drawn(
  { key, policy, type, limit, windowMs, remaining, resetAfterMs, ttlMs, numbers, state }: Inspected,
  isRedis: boolean,
): string {
  const rest = resetAfterMs === 0 ? 'none is in use' : `all of them in ${inWords(resetAfterMs)} without another call`
  return [
    policy === undefined ? key : `${key} ${policy}`,
    `  ${type}: up to ${limit} at once, all of which come back within ${inWords(windowMs)}`,
    `  ${remaining} of ${limit} left now; ${rest}`,
    `  ${isRedis ? lifeInRedis(ttlMs) : `its row may go in ${inWords(ttlMs)}`}`,
    `  state: ${JSON.stringify(state)}, written under ${numbers}`,
  ].join('\n')
}

function lifeInRedis(ttlMs: number): string {
  return ttlMs < 0 ? 'Redis keeps it: one of the next calls sets a time to live' : `Redis forgets it in ${inWords(ttlMs)}`
}

interface Connected {
  readonly client: RedisClient
  close(): void
}

/** The library brings no client: whichever is installed will do. */
const CLIENTS: Readonly<Record<string, (url: string) => Promise<Connected>>> = {
  async redis(url) {
    const { createClient } = await import('redis')
    const client = createClient({ url, socket: { reconnectStrategy: false } })
    client.on('error', () => undefined)
    await client.connect()
    return { client, close: () => client.destroy() }
  },
  async ioredis(url) {
    const { Redis } = await import('ioredis')
    return lazyClient(new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: null as never }))
  },
  async iovalkey(url) {
    const { Redis } = await import('iovalkey')
    return lazyClient(new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: null as never }))
  },
}

interface LazyClient {
  call(...args: never[]): Promise<unknown>
  connect(): Promise<void>
  disconnect(): void
  on(event: 'error', fn: () => void): unknown
}

async function lazyClient(client: LazyClient): Promise<Connected> {
  client.on('error', () => undefined)
  await client.connect()
  return { client, close: () => client.disconnect() }
}

async function connected(url: string): Promise<Connected> {
  for (const connect of Object.values(CLIENTS)) {
    try {
      return await connect(url)
    } catch (error) {
      if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw unreachable(url, error)
    }
  }
  throw new SluiceError('UNSUPPORTED', `inspect needs a Redis client: install one of ${Object.keys(CLIENTS).join(', ')}`)
}

function unreachable(url: string, cause: unknown): SluiceError {
  const reason = cause instanceof Error ? cause.message || String((cause as { code?: string }).code) : String(cause)
  return new SluiceError('STORE', `no Redis at ${url.replace(/\/\/.*@/, '//')}: ${reason}`, { cause })
}
