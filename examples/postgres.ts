/**
 * One limit for several processes, in a Postgres: no Redis is needed. Two limiters with a pool each
 * stand for two processes here. `DATABASE_URL` says where the database is; `migrate: true` makes
 * the table. In production run what `sluice migrate --postgres` prints.
 */
import pg from 'pg'
import { createLimiter, fixedWindow, gcra } from 'sluice'
import { postgresStore } from 'sluice/postgres'

const { DATABASE_URL: connectionString = 'postgres://localhost/postgres' } = process.env

function aProcess() {
  const pool = new pg.Pool({ connectionString, max: 5, query_timeout: 3_000 })
  pool.on('error', (error) => console.error(error.message))
  const limits = { burst: gcra({ rate: '1/min', burst: 10 }), daily: fixedWindow({ limit: 1_000, window: '1d' }) }
  const store = postgresStore(pool, { table: 'sluice_example', migrate: true })
  return { limiter: createLimiter(limits, { name: 'api', store, onStoreError: 'throw' }), pool }
}

const processes = [aProcess(), aProcess()]
await processes[0]?.limiter.reset('user:42')

// At the same time, from both: all limits agree and are charged, or none is.
const calls = Array.from({ length: 30 }, (_, k) => processes[k % 2]?.limiter.consume('user:42'))
const decisions = await Promise.all(calls)
const refused = decisions.find((decision) => !decision?.allowed)
console.log(`${decisions.filter((decision) => decision?.allowed).length} of ${decisions.length} are let in`)
console.log(`the others wait for ${refused?.policy}, ${Math.ceil((refused?.retryAfterMs ?? 0) / 60_000)} min`)

for (const { limiter, pool } of processes) {
  limiter.close()
  await pool.end()
}

// prints:
// 10 of 30 are let in
// the others wait for burst, 1 min
