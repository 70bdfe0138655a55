/**
 * Deadlock soak: three processes decide by several limits, on keys that each call names in another
 * order, on rows that come and go meanwhile. Postgres itself counts the deadlocks. `npm run proof`
 * runs it for longer; `SLUICE_SEED` and `SLUICE_TRACES` (calls of each caller) are its knobs.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../scripts/postgres-server.mjs'
import { postgresMigration } from '../../src/stores/postgres/index.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import { SEED, traceCount } from '../model/trace.ts'
import { ownTable } from '../support/postgres-client.ts'

const PROCESSES = 3
const CALLS = traceCount(25)
const KEYS = { users: 5, tenants: 3, regions: 2 }
/** The two regions admit somewhat less than is asked for. */
const LIMIT = Math.floor((PROCESSES * 2 * 8 * CALLS) / KEYS.regions) - 20

interface Report {
  readonly errors: readonly string[]
  readonly lost: number
  readonly charged: Readonly<Record<string, number>>
  readonly refused: number
}

// A server of its own, where nobody else makes deadlocks, and which looks for them at once.
let server: PostgresServer
beforeAll(async () => {
  server = await startPostgres({ fsync: 'off', deadlock_timeout: '10ms' })
})
afterAll(() => server.remove())

test('no calls wait for each other in a circle, and every permit is accounted for', { timeout: 3_600_000 }, async () => {
  const { pool, table, close } = ownTable(server.url)
  await pool.query(postgresMigration({ table }))
  const reports = await soaked({ url: server.url, table, calls: CALLS, limit: LIMIT, ...KEYS })
  expect(reports.flatMap(({ errors }) => errors)).toEqual([])
  const { rows } = await pool.query('SELECT sum(deadlocks)::int AS deadlocks FROM pg_stat_database')
  expect(rows).toEqual([{ deadlocks: 0 }])
  // They did meet, and some were refused.
  expect(sumOf(reports, ({ lost }) => lost)).toBeGreaterThan(100)
  expect(sumOf(reports, ({ refused }) => refused)).toBeGreaterThan(10)
  for (const key of new Set(reports.flatMap(({ charged }) => Object.keys(charged)))) {
    const [state] = await inspectRows(pool, table, 'soak', key)
    expect(LIMIT - (state?.remaining ?? LIMIT), key).toBe(sumOf(reports, ({ charged }) => charged[key] ?? 0))
  }
  await close()
})

const sumOf = (reports: readonly Report[], of: (report: Report) => number) => reports.reduce((sum, report) => sum + of(report), 0)

/** All begin when all are ready. */
async function soaked(task: object): Promise<Report[]> {
  const script = new URL('./deadlocks.process.mjs', import.meta.url)
  const children = Array.from({ length: PROCESSES }, (_, k) => fork(script, [JSON.stringify({ ...task, seed: SEED + k })]))
  await Promise.all(children.map(messageOf))
  const reports = children.map((child) => messageOf(child) as Promise<Report>)
  for (const child of children) child.send('go')
  return Promise.all(reports)
}

/** Rejects if the process ends without one. */
function messageOf(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    child.once('message', resolve)
    child.once('exit', (code) => reject(new Error(`a process of the soak ended with ${code}`)))
  })
}
