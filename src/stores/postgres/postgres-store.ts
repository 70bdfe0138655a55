/** State in Postgres: what a user holds. */
import { invalid, onlyKnown } from '../../algorithms/rate.ts'
import { AsyncStore } from '../remote/async-store.ts'
import { PLAIN } from '../remote/batches.ts'
import { ASYNC_STORE_OPTIONS, type AsyncStoreOptions, checkedMaxBatch } from '../remote/options.ts'
import { type PostgresClient, queryOf } from './client.ts'
import { PostgresDriver } from './driver.ts'
import { migration, type Names, namesOf } from './schema.ts'

export interface PostgresTable {
  /** The table, or schema and table: `limits.sluice`. Default `'sluice'`. */
  readonly table?: string
  /**
   * Whether the table is made unlogged: faster, empty after a crash of the server, and not on its
   * replicas. Default false.
   */
  readonly unlogged?: boolean
}

export interface PostgresStoreOptions extends AsyncStoreOptions, PostgresTable {
  /**
   * Whether to make the table and its functions where they are missing. Needs the right to create
   * them. Default false.
   */
  readonly migrate?: boolean
  /** How many connections of the pool are used at a time, at most. 1 to 100, default 4. */
  readonly maxConnections?: number
}

const TABLE_OPTIONS = ['table', 'unlogged'] as const
/** What waits for a row travels together with more than one turn's. */
const BATCHES_IN_A_CALL = 4

export function postgresStore(pool: PostgresClient, options: PostgresStoreOptions = {}): AsyncStore {
  onlyKnown(options, [...TABLE_OPTIONS, 'migrate', 'maxConnections', ...ASYNC_STORE_OPTIONS], 'postgresStore')
  const { migrate = false, maxConnections = 4 } = options
  const { names, isUnlogged } = checkedTable(options, 'postgresStore')
  if (typeof migrate !== 'boolean') throw invalid('postgresStore migrate', migrate, 'must be true or false')
  if (!Number.isInteger(maxConnections) || maxConnections < 1 || maxConnections > 100) {
    throw invalid('postgresStore maxConnections', maxConnections, 'must be a whole number from 1 to 100')
  }
  const maxBatch = checkedMaxBatch(options, 'postgresStore')
  const mostWeight = maxBatch === 1 ? 1 : maxBatch * PLAIN * BATCHES_IN_A_CALL
  const driver = new PostgresDriver(queryOf(pool), { names, isUnlogged, isMigrating: migrate, mostCalls: maxConnections, mostWeight })
  return new AsyncStore(driver, options, 'postgresStore')
}

/**
 * The SQL that makes the table and its functions: what `sluice migrate --postgres` prints. It may
 * be run again.
 */
export function postgresMigration(options: PostgresTable = {}): string {
  onlyKnown(options, TABLE_OPTIONS, 'postgresMigration')
  const { names, isUnlogged } = checkedTable(options, 'postgresMigration')
  return migration(names, isUnlogged)
}

function checkedTable({ table = 'sluice', unlogged = false }: PostgresTable, who: string): { names: Names; isUnlogged: boolean } {
  if (typeof table !== 'string' || !/^(?:[a-z_][a-z0-9_]{0,62}\.)?[a-z_][a-z0-9_]{0,50}$/.test(table)) {
    throw invalid(`${who} table`, table, 'must be a name of lower-case letters, digits and _ (51 at most), or a schema, a dot and a name')
  }
  if (typeof unlogged !== 'boolean') throw invalid(`${who} unlogged`, unlogged, 'must be true or false')
  return { names: namesOf(table), isUnlogged: unlogged }
}
