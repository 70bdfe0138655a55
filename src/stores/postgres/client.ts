/**
 * Any client becomes one function that runs a statement and gives its rows. A client is recognised
 * by what it can do, and nothing is changed on it.
 */
import { SluiceError, shown, warnOnce } from '../../errors.ts'

export type SqlRow = Readonly<Record<string, unknown>>

/** Runs one statement in a transaction of its own. All values are texts. */
export type Query = (text: string, values: readonly string[]) => Promise<readonly SqlRow[]>

type Rows = { readonly rows: readonly unknown[] } | readonly unknown[]

/**
 * A pool of `pg`, or anything else with its `query`: one that gives the rows themselves will do
 * too.
 */
export interface QueryClient {
  // biome-ignore lint/suspicious/noExplicitAny: clients declare their values and rows in many ways
  query(text: string, values: any[]): PromiseLike<any>
}

/** `postgres` (postgres.js). */
export interface PostgresJs {
  // biome-ignore lint/suspicious/noExplicitAny: as it is declared there
  unsafe(text: string, values: any[], options?: any): PromiseLike<any>
  readonly options?: { readonly prepare?: boolean; readonly fetch_types?: boolean }
}

export type PostgresClient = QueryClient | PostgresJs

export function queryOf(client: PostgresClient): Query {
  if (can(client, 'unsafe')) return postgresJsQuery(client as PostgresJs)
  if (can(client, 'query')) return async (text, values) => rowsOf(await (client as QueryClient).query(text, [...values]))
  throw new SluiceError(
    'CONFIG',
    `postgresStore pool ${shown(client)} must be a Pool of pg, a client of postgres, or have query(text, values)`,
  )
}

function can(client: unknown, name: string): boolean {
  const isObject = typeof client === 'function' || (typeof client === 'object' && client !== null)
  return isObject && typeof (client as Record<string, unknown>)[name] === 'function'
}

/**
 * What it does not prepare it sends in two trips. Its user has said whether it may prepare: behind
 * pgbouncer it may not.
 */
function postgresJsQuery(client: PostgresJs): Query {
  const { prepare = true, fetch_types = false } = client.options ?? {}
  if (fetch_types) warnOfTypes()
  return async (text, values) => rowsOf(await client.unsafe(text, [...values], { prepare }))
}

/** It makes that query itself, so its promise is in no other hands. */
function warnOfTypes(): void {
  warnOnce(
    'SLUICE_FETCH_TYPES',
    'a connection of postgres.js that ends while it fetches types is a rejection that nothing can catch, and ends the process: make the client with fetch_types: false (Sluice needs no types)',
  )
}

function rowsOf(result: Rows): readonly SqlRow[] {
  const rows = Array.isArray(result) ? result : (result as { rows?: unknown } | undefined)?.rows
  if (Array.isArray(rows)) return rows as SqlRow[]
  throw new SluiceError('CONFIG', `postgresStore pool: query(text, values) gave ${shown(result)}, and it must give rows, or { rows }`)
}
