/**
 * Rows that are not there: what a process makes of one that came and went while it stood still, and
 * how many idle ones stay. On a real server, and by its clock.
 */
import { randomUUID } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import pg from 'pg'
import { afterEach, describe, expect, inject, test, vi } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { postgresMigration, postgresStore } from '../../src/stores/postgres/index.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import { ownTable, type TestTable } from '../support/postgres-client.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

async function madeTable(): Promise<TestTable> {
  const owned = ownTable()
  open.push(owned.close)
  await owned.pool.query(postgresMigration({ table: owned.table }))
  return owned
}

const HOUR = gcra({ rate: '1/h', burst: 1_000 })
const API = { name: 'api', storeTimeoutMs: 60_000, onStoreError: 'throw' } as const

/** A store of a process that does something before each of its second trips. */
function storeOn({ pool, table }: TestTable, beforeSwap: () => unknown = () => undefined) {
  const sent: string[] = []
  const query = async (text: string, values: unknown[]) => {
    const isSwap = text.includes('_swap')
    if (isSwap) await beforeSwap()
    sent.push(isSwap ? 'swap' : 'read')
    return pool.query(text, values)
  }
  return { store: postgresStore({ query }, { table, denialCache: false }), sent }
}

const countOf = async ({ pool, table }: TestTable, where: string): Promise<number> =>
  Number((await pool.query(`SELECT count(*) AS n FROM ${table} WHERE ${where}`)).rows[0].n)

/** New keys, which stay in use, until none of the key's rows is left. */
async function sweepAway(owned: TestTable, key: string): Promise<void> {
  const others = createLimiter(HOUR, { ...API, name: 'others', store: storeOn(owned).store })
  await vi.waitFor(
    async () => {
      await Promise.all(Array.from({ length: 64 }, () => others.consume(randomUUID())))
      expect(await countOf(owned, `id LIKE 'api:${key}:%'`)).toBe(0)
    },
    { timeout: 30_000, interval: 0 },
  )
}

describe.each(['read committed', 'repeatable read', 'serializable'])('with %s as the default of the database', (isolation) => {
  test.each([
    ['one limit', { user: gcra({ rate: '10/s', burst: 1 }) }],
    ['two limits', { user: gcra({ rate: '10/s', burst: 1 }), tenant: gcra({ rate: '20/s', burst: 1 }) }],
  ])('%s: a process that stands still after it read no row does not enter one that others had used up since', async (_, limits) => {
    const owned = await madeTable()
    const options = `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`
    const pool = new pg.Pool({ connectionString: inject('postgresUrl'), max: 2, options })
    open.push(() => pool.end())
    const events = new EventEmitter()
    const { store } = storeOn({ ...owned, pool }, () => events.emit('standing') && once(events, 'going on'))
    const late = createLimiter(limits, { ...API, store }).consume('k')
    await once(events, 'standing')
    const first = await createLimiter(limits, { ...API, store: storeOn(owned).store }).consume('k')
    expect(first.allowed).toBe(true)
    await sweepAway(owned, 'k')
    events.emit('going on')
    const second = await late
    expect(second.allowed).toBe(true)
    // One in 100 ms.
    expect(second.atMs - first.atMs).toBeGreaterThanOrEqual(100)
  })
})

describe('a process whose every trip is late', () => {
  const lateOn = (owned: TestTable) => storeOn(owned, () => owned.pool.query('SELECT pg_sleep(0.3)'))

  test('enters a new key with one trip more, charged once', async () => {
    const { store, sent } = lateOn(await madeTable())
    const limiter = createLimiter(HOUR, { ...API, store })
    expect(await limiter.consume('k', 3)).toMatchObject({ allowed: true, remaining: 997 })
    expect(sent).toEqual(['read', 'swap', 'swap'])
    sent.length = 0
    expect(await limiter.consume('k', 2)).toMatchObject({ allowed: true, remaining: 995 })
    expect(sent).toEqual(['read', 'swap'])
  })

  test('enters several new rows of one decision, beside one that is there', async () => {
    const owned = await madeTable()
    const { store, sent } = lateOn(owned)
    const limiter = createLimiter({ user: gcra({ rate: '1/h', burst: 5 }), tenant: gcra({ rate: '1/h', burst: 4 }) }, { ...API, store })
    await limiter.consume({ user: 'a', tenant: 't' }, 3)
    expect(sent).toEqual(['read', 'swap', 'swap'])
    sent.length = 0
    expect(await limiter.consume({ user: 'b', tenant: 't' })).toMatchObject({ allowed: true, remaining: 0, policy: 'tenant' })
    expect(sent).toEqual(['read', 'swap', 'swap'])
    const left = async (key: string) => (await inspectRows(owned.pool, owned.table, 'api', key)).map(({ remaining }) => remaining)
    expect([await left('a'), await left('b'), await left('t')]).toEqual([[2], [4], [0]])
  })

  test('leaves a row without a state for a moment, which is a new key to everybody', async () => {
    const owned = await madeTable()
    const other = createLimiter(HOUR, { ...API, store: storeOn(owned).store })
    const seen: unknown[] = []
    let attempts = 0
    const { store } = storeOn(owned, async () => {
      attempts += 1
      if (attempts === 1) await owned.pool.query('SELECT pg_sleep(0.3)')
      if (attempts !== 2) return
      seen.push(await countOf(owned, "state = ''"), await inspectRows(owned.pool, owned.table, 'api', 'k'))
      seen.push((await other.peek('k')).remaining, (await other.consume('k', 10)).remaining)
    })
    const limiter = createLimiter(HOUR, { ...API, store })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 989 })
    expect(seen).toEqual([1, [], 1_000, 990])
    expect(attempts).toBe(3)
  })
})

test('idle rows are fewer than those in use, however many new keys come', async () => {
  const owned = await madeTable()
  const { pool, table } = owned
  // As between two runs of VACUUM, however slow this machine is.
  await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`)
  const limiter = createLimiter(HOUR, { ...API, store: storeOn(owned).store })
  const inUse = 1_024
  const idle: number[] = []
  for (let turn = 0; turn < 200; turn++) {
    await Promise.all(Array.from({ length: 64 }, (_, k) => limiter.consume(`${turn}:${k}`)))
    const newest = Array.from({ length: inUse / 64 }, (_, k) => `'${turn - k}'`)
    await pool.query(`UPDATE ${table} SET idle_us = 1 WHERE idle_us > 1 AND split_part(id, ':', 2) NOT IN (${newest})`)
    idle.push(await countOf(owned, 'idle_us = 1'))
  }
  expect(await countOf(owned, 'idle_us > 1')).toBe(inUse)
  expect(Math.max(...idle.slice(100))).toBeLessThan(inUse)
})

describe('versions', () => {
  /** What the version before called. */
  const FORMER = 'ids text[], versions bigint[], states bytea[], idles bigint[], groups int[], sweeps int'
  const ANSWER = 'TABLE (place bigint, held_version bigint, held_state text, now_us bigint)'

  test('a process on the table of the version before says what to run, which may be run while others decide', async () => {
    const owned = await madeTable()
    const { pool, table } = owned
    await pool.query(`DROP FUNCTION ${table}_swap(text[], bigint[], bytea[], bigint[], int[], bigint, int)`)
    await pool.query(`CREATE OR REPLACE FUNCTION ${table}_swap(${FORMER}) RETURNS ${ANSWER} LANGUAGE plpgsql AS 'BEGIN END'`)
    const limiter = createLimiter(HOUR, { ...API, store: storeOn(owned).store })
    await expect(limiter.consume('k')).rejects.toMatchObject({
      code: 'STORE',
      message: expect.stringMatching(/missing or of an older version of Sluice: run what `sluice migrate --postgres` prints/),
    })
    await pool.query(postgresMigration({ table }))
    await vi.waitFor(() => expect(limiter.health().state).toBe('up'), { timeout: 10_000 })
    expect(await limiter.consume('k')).toMatchObject({ allowed: true, remaining: 999 })
  })

  test('a process of the version before is told to be updated, and writes nothing', async () => {
    const owned = await madeTable()
    const { pool, table } = owned
    const call = `SELECT * FROM ${table}_swap('{api:k:default}', '{NULL}', '{""}', '{1}', '{NULL}', 0)`
    await expect(pool.query(call)).rejects.toThrow(/table .* is of a later version of Sluice than this process: update the process/)
    expect(await countOf(owned, 'true')).toBe(0)
  })
})
