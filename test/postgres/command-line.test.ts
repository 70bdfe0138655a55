/** `sluice migrate --postgres` and `sluice inspect --postgres`, as programs. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, inject, test } from 'vitest'
import { createLimiter, fixedWindow, gcra } from '../../src/index.ts'
import { postgresMigration } from '../../src/stores/postgres/index.ts'
import { ownTable } from '../support/postgres-client.ts'

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))
const sluice = (...args: string[]) => spawnSync(process.execPath, [MAIN, ...args], { encoding: 'utf8' })

test('the output of migrate makes the table, also a second time, and inspect reads its rows', async () => {
  const { pool, table, store, close } = ownTable()
  const { status, stdout } = sluice('migrate', '--postgres', '--table', table, '--unlogged')
  expect(status).toBe(0)
  expect(stdout.trim()).toBe(postgresMigration({ table, unlogged: true }).trim())
  for (let time = 0; time < 2; time++) await pool.query(stdout)
  const limits = { burst: gcra({ rate: '1/h', burst: 5 }), daily: fixedWindow({ limit: 10, window: '366d' }) }
  await createLimiter(limits, { name: 'api', store: store({ migrate: false }) }).consume('user:42', 2)
  const inspected = sluice('inspect', 'api:user:42', '--postgres', inject('postgresUrl'), '--table', table)
  expect(inspected.stdout).toMatch(/^api:user:42:burst burst\n {2}gcra: up to 5 at once.*\n {2}3 of 5 left now.*\n {2}its row may go in /)
  expect(inspected.stdout).toContain('8 of 10 left now')
  const json = sluice('inspect', 'api:user:42', '--postgres', inject('postgresUrl'), '--table', table, '--json')
  expect(JSON.parse(json.stdout)).toMatchObject([
    { policy: 'burst', remaining: 3 },
    { policy: 'daily', remaining: 8 },
  ])
  const absent = sluice('inspect', 'api:user:4', '--postgres', inject('postgresUrl'), '--table', table)
  expect(absent).toMatchObject({ status: 3, stdout: expect.stringContaining('api:user:4: no such key') })
  await close()
})

test('wrong usage is told', () => {
  expect(sluice('migrate')).toMatchObject({ status: 2, stderr: expect.stringContaining('--postgres') })
  expect(sluice('migrate', '--postgres', '--table', 'A b')).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('table "A b" must be'),
  })
  expect(sluice('inspect', 'api', '--postgres', inject('postgresUrl'))).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('limiter:key'),
  })
  for (const url of ['postgres://me:secret@127.0.0.1:1/none', 'postgres://127.0.0.1:1/none?user=me&password=secret']) {
    expect(sluice('inspect', 'api:u', '--postgres', url)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/no Postgres at postgres:\/\/127\.0\.0\.1:1\/none: .*ECONNREFUSED/),
    })
  }
})
