/**
 * A database of `node:sqlite` or `better-sqlite3`: the little that both have in common, and how one
 * is opened by its path.
 */
import { SluiceError } from '../../errors.ts'
import { storeError } from './failure.ts'

/** `DatabaseSync` of `node:sqlite`, or `Database` of `better-sqlite3`. */
export interface SqliteDatabase {
  prepare(sql: string): SqliteStatement
  exec(sql: string): unknown
  close(): unknown
  /**
   * Whether a transaction is open: the two have different names for it, and the first ones of
   * `node:sqlite` have none.
   */
  readonly isTransaction?: boolean
  readonly inTransaction?: boolean
}

export interface SqliteStatement {
  // biome-ignore lint/suspicious/noExplicitAny: each driver has its own types of what can be bound
  get(...values: any[]): unknown
  // biome-ignore lint/suspicious/noExplicitAny: as above
  all(...values: any[]): unknown[]
  // biome-ignore lint/suspicious/noExplicitAny: as above
  run(...values: any[]): unknown
}

/** What a database may have been told about all statements, taken back for ours. */
interface Settings {
  setReadBigInts?(on: boolean): unknown
  setReturnArrays?(on: boolean): unknown
  safeIntegers?(on: boolean): unknown
}

export function prepared(database: SqliteDatabase, sql: string): SqliteStatement {
  const statement = database.prepare(sql) as SqliteStatement & Settings
  statement.setReadBigInts?.(false)
  statement.setReturnArrays?.(false)
  statement.safeIntegers?.(false)
  return statement
}

type Opens<Options> = new (path: string, options?: Options) => SqliteDatabase

interface Runtime {
  readonly process?: {
    getBuiltinModule?(name: 'node:sqlite'): { readonly DatabaseSync: Opens<never> } | undefined
    getBuiltinModule?(name: 'node:module'): { createRequire(from: string): (name: string) => Opens<{ timeout: number }> }
  }
}

/**
 * Opens a file by what there is: `node:sqlite` comes with Node 22.13 and later. Locks are waited
 * for by the store, not by the driver.
 */
export function openDatabase(path: string): SqliteDatabase {
  const { process } = globalThis as Runtime
  const builtin = process?.getBuiltinModule?.('node:sqlite')
  const open = builtin === undefined ? openerOfBetterSqlite3(process) : () => new builtin.DatabaseSync(path)
  try {
    return open(path)
  } catch (cause) {
    throw storeError(cause, `SQLite could not open ${path}`)
  }
}

function openerOfBetterSqlite3(process: Runtime['process']): (path: string) => SqliteDatabase {
  try {
    const require = process?.getBuiltinModule?.('node:module').createRequire(import.meta.url)
    if (require === undefined) throw new Error('this runtime has no node:module')
    const Database = require('better-sqlite3')
    return (path) => new Database(path, { timeout: 0 })
  } catch (cause) {
    throw new SluiceError(
      'UNSUPPORTED',
      'sqliteStore needs node:sqlite, which Node has from 22.13 on, or the package better-sqlite3: npm install better-sqlite3@12',
      { cause },
    )
  }
}
