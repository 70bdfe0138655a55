/** `sluice migrate`, and what `sluice inspect` reads of a Postgres. */

import { SluiceError } from '../errors.ts'
import type { Inspected } from '../stores/inspected.ts'
import { type PostgresClient, postgresMigration } from '../stores/postgres/index.ts'
import { inspectRows } from '../stores/postgres/inspect.ts'
import { onlyOptions } from './options.ts'
import { type Command, said } from './run.ts'

export const migrateCommand: Command = {
  summary: 'prints the SQL that makes the table of a database',
  usage: `sluice migrate --postgres [--table sluice] [--unlogged]

  Prints the SQL that makes the table of postgresStore and its functions: \`sluice migrate --postgres | psql\`. It may be run again.

  --postgres     for PostgreSQL 13 or later
  --table NAME   the table, or schema.table. Default sluice
  --unlogged     faster, but empty after a crash of the server, and not on its replicas`,
  run(args) {
    const known = { postgres: { type: 'boolean' }, table: { type: 'string' }, unlogged: { type: 'boolean' } } as const
    const { postgres, table, unlogged } = onlyOptions(args, known)
    if (!postgres) throw new SluiceError('CONFIG', 'migrate wants to know for which database: --postgres')
    return said(postgresMigration({ ...(table && { table }), ...(unlogged && { unlogged }) }).trimEnd())
  },
}

/** The rows of `limiter:key`. */
export async function inspectPostgres(url: string, table: string, place: string): Promise<Inspected[]> {
  const [, limiter, key] = /^([^:]+):(.+)$/s.exec(place) ?? []
  if (limiter === undefined || key === undefined) throw new SluiceError('CONFIG', `${place} must be limiter:key, such as api:user:42`)
  postgresMigration({ table })
  const { client, close } = await connected(url)
  try {
    return await inspectRows(client, table, limiter, key)
  } finally {
    await close()
  }
}

interface Connected {
  readonly client: PostgresClient
  close(): Promise<void>
}

/** The library brings no client: whichever is installed will do. */
const CLIENTS: Readonly<Record<string, (url: string) => Promise<Connected>>> = {
  async pg(url) {
    const { default: pg } = await import('pg')
    const client = new pg.Client(url)
    client.on('error', () => undefined)
    await client.connect()
    return { client, close: () => client.end() }
  },
  async postgres(url) {
    const { default: postgres } = await import('postgres')
    const client = postgres(url, { max: 1, prepare: false, fetch_types: false })
    return { client, close: () => client.end() }
  },
}

async function connected(url: string): Promise<Connected> {
  for (const connect of Object.values(CLIENTS)) {
    try {
      return await connect(url)
    } catch (error) {
      if ((error as { code?: string }).code !== 'ERR_MODULE_NOT_FOUND') throw unreachable(url, error)
    }
  }
  throw new SluiceError('UNSUPPORTED', `inspect needs a client of Postgres: install one of ${Object.keys(CLIENTS).join(', ')}`)
}

function unreachable(url: string, cause: unknown): SluiceError {
  const { message, code } = cause as { message?: string; code?: string }
  return new SluiceError('STORE', `no Postgres at ${withoutSecrets(url)}: ${message || code}`, { cause })
}

/** Neither user and password nor options, of which one may be the password. */
function withoutSecrets(url: string): string {
  if (!URL.canParse(url)) return 'that URL'
  const { protocol, host, pathname } = new URL(url)
  return `${protocol}//${host}${pathname}`
}
