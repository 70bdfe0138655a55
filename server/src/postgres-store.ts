/** Counts in Postgres: a pool for the service alone, as the store wants it. */

import { postgresStore } from './sluice.ts'
import type { OpenedStore } from './store.ts'

/** The service makes the table if it is missing and it may. */
export async function openPostgres(url: string, onError: (error: Error) => void): Promise<OpenedStore> {
  if (!URL.canParse(url) || !/^postgres(ql)?:$/.test(new URL(url).protocol)) {
    throw new Error(`the Postgres URL ${JSON.stringify(withoutPassword(url))} must be such as postgres://user:password@host:5432/database`)
  }
  // Only where it is used, as the client of Redis.
  const { default: pg } = await import('pg')
  // A connection that owes an answer for so long is dead, and made anew.
  const pool = new pg.Pool({ connectionString: url, max: 5, connectionTimeoutMillis: 3_000, query_timeout: 3_000, keepAlive: true })
  pool.on('error', onError)
  return { store: postgresStore(pool, { migrate: true }), description: withoutPassword(url), close: () => void pool.end() }
}

/**
 * For people: neither names nor passwords of users, nor options, of which one may be a password.
 */
function withoutPassword(url: string): string {
  return url.replace(/\?.*$/s, '').replace(/^([\w+.-]*:(?:\/\/)?)?.*@/s, '$1')
}
