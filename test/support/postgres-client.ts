import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import pg from 'pg'
import { inject } from 'vitest'
import type { AsyncStore } from '../../src/index.ts'
import { type PostgresStoreOptions, postgresStore } from '../../src/stores/postgres/index.ts'

export interface TestTable {
  readonly pool: pg.Pool
  readonly table: string
  /** A store on it; the first that is asked makes the table. */
  store(options?: PostgresStoreOptions): AsyncStore
  close(): Promise<void>
}

const newName = () => `t_${randomUUID().replaceAll('-', '').slice(0, 12)}`

/** A table of its own in the tests' own server, or in another. */
export function ownTable(url: string = inject('postgresUrl'), table = newName()): TestTable {
  const pool = poolAt(url)
  return tableIn(pool, table, () => pool.end())
}

let shared: pg.Pool | undefined

/**
 * A table of its own on connections that many tests share: to make them takes longer than most
 * tests.
 */
export function sharedTable(): TestTable {
  shared ??= poolAt(inject('postgresUrl'))
  return tableIn(shared, newName(), async () => undefined)
}

function poolAt(connectionString: string): pg.Pool {
  const pool = new pg.Pool({ connectionString, max: 4, allowExitOnIdle: true })
  // A connection that is lost while nobody uses it: the pool makes another.
  pool.on('error', () => undefined)
  return pool
}

function tableIn(pool: pg.Pool, table: string, close: () => Promise<void>): TestTable {
  return { pool, table, close, store: (options = {}) => postgresStore(pool, { table, migrate: true, ...options }) }
}

/** Of the table of clients in docs/guides/postgres.md: what is to be set in any case. */
export function optionsOfTheGuide(client: string): Readonly<Record<string, boolean>> {
  const guide = readFileSync(new URL('../../docs/guides/postgres.md', import.meta.url), 'utf8')
  const rows = guide.matchAll(new RegExp(`^\\| \`${client}\` +\\| \`(\\w+): (true|false)\` +\\|`, 'gm'))
  return Object.fromEntries(Array.from(rows, ([, option = '', value]) => [option, value === 'true']))
}
