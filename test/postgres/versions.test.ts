/**
 * The oldest PostgreSQL that is supported and the newest there is, beside the system's, which all
 * other tests use. From the npm registry.
 */
import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { startPostgresFrom } from '../../scripts/postgres-server.mjs'
import { createLimiter, gcra } from '../../src/index.ts'
import { postgresMigration } from '../../src/stores/postgres/index.ts'
import { storeCases } from '../../src/testing/index.ts'
import { installed, installRuntimes, OLDEST_NODE, whyMissing } from '../package/runtimes.ts'
import { ownTable } from '../support/postgres-client.ts'

const missing = whyMissing(OLDEST_NODE)
if (missing !== undefined) console.log(`PostgreSQL 13 and 18 are not tried: ${missing}`)

beforeAll(() => installRuntimes(), 900_000)

describe.skipIf(missing !== undefined).each(['13', '18'])('on PostgreSQL %s', (version) => {
  test('the published cases hold, three stores hold one limit together, and idle rows go', async () => {
    const folder = join(installed, `postgres${version}`)
    // Libraries by their short names, which packages cannot carry.
    execFileSync(process.execPath, ['scripts/hydrate-symlinks.js'], { cwd: folder })
    const server = await startPostgresFrom(join(folder, 'native'), { fsync: 'off' })
    const { pool, table, store, close } = ownTable(server.url)
    expect((await pool.query('SHOW server_version')).rows[0].server_version).toMatch(new RegExp(`^${version}\\.`))
    await pool.query(postgresMigration({ table }))
    const cases = storeCases(async () => {
      await pool.query(`TRUNCATE ${table}`)
      return store()
    })
    for (const [name, run] of cases) await run().catch((error) => expect.soft(error, name).toBeUndefined())
    await pool.query(`TRUNCATE ${table}`)
    const limits = { user: gcra({ rate: '1/h', burst: 40 }), tenant: gcra({ rate: '1/h', burst: 90 }) }
    const options = { name: 'api', storeTimeoutMs: 60_000 }
    const limiters = [0, 1, 2].map(() => createLimiter(limits, { ...options, store: store({ denialCache: false, maxBatch: 2 }) }))
    const asked = Array.from({ length: 300 }, (_, k) => limiters[k % 3]?.consume({ user: `u${k % 5}`, tenant: `t${k % 2}` }))
    expect((await Promise.all(asked)).filter((decision) => decision?.allowed)).toHaveLength(180)
    const others = createLimiter(gcra({ rate: '1/h', burst: 1 }), { name: 'others', store: store() })
    const twoThousand = async () => {
      for (let turn = 0; turn < 40; turn++) await Promise.all(Array.from({ length: 50 }, () => others.consume(randomUUID())))
    }
    await twoThousand()
    await pool.query(`UPDATE ${table} SET idle_us = 1`)
    await twoThousand()
    const { rows } = await pool.query(`SELECT count(*)::int AS all_rows, count(*) FILTER (WHERE idle_us = 1)::int AS idle FROM ${table}`)
    expect(rows[0].all_rows - rows[0].idle).toBe(2_000)
    expect(rows[0].idle).toBeLessThan(200)
    await close()
    await server.remove()
  })
})
