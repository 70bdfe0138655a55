/**
 * The Postgres store alone: its clients, statements, rows, rights and isolation levels. On a real
 * server.
 */
import pg from 'pg'
import postgres from 'postgres'
import { afterEach, describe, expect, inject, test, vi } from 'vitest'
import { createLimiter, fixedWindow, gcra, slidingLog } from '../../src/index.ts'
import { type PostgresClient, postgresMigration, postgresStore } from '../../src/stores/postgres/index.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { optionsOfTheGuide, ownTable, type TestTable } from '../support/postgres-client.ts'

const open: (() => unknown)[] = []
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function ownedTable(): TestTable {
  const owned = ownTable()
  open.push(owned.close)
  return owned
}

/** What a client was asked, in the order of the answers. */
function watched({ pool }: TestTable): {
  readonly client: PostgresClient
  readonly sent: string[]
  readonly errors: string[]
  lost: number
} {
  const seen = {
    sent: [] as string[],
    errors: [] as string[],
    lost: 0,
    client: {
      async query(text: string, values: unknown[]) {
        const [verb = text.slice(0, 20)] = /read|swap/.exec(text) ?? []
        try {
          const result = await pool.query(text, values)
          seen.sent.push(verb)
          if (verb === 'swap') seen.lost += result.rows.length
          return result
        } catch (error) {
          seen.errors.push((error as { code: string }).code)
          throw error
        }
      },
    },
  }
  return seen
}

/** What the guide says to set. */
const GUIDE = optionsOfTheGuide('postgres')
const HOUR = gcra({ rate: '1/h', burst: 40 })

describe('every client', () => {
  const url = inject('postgresUrl')
  const clients: Readonly<Record<string, () => PostgresClient>> = {
    'pg, a pool'() {
      const pool = new pg.Pool({ connectionString: url, max: 3 })
      open.push(() => pool.end())
      return pool
    },
    'postgres, preparing'() {
      const sql = postgres(url, { ...GUIDE, max: 3, onnotice: () => undefined })
      open.push(() => sql.end())
      return sql
    },
    'postgres, not preparing'() {
      const sql = postgres(url, { ...GUIDE, max: 3, prepare: false, onnotice: () => undefined })
      open.push(() => sql.end())
      return sql
    },
    'postgres, with other names of columns'() {
      const sql = postgres(url, { ...GUIDE, max: 3, transform: postgres.camel, onnotice: () => undefined })
      open.push(() => sql.end())
      return sql
    },
    'anything with query(text, values), that gives the rows'() {
      const { pool } = ownedTable()
      return { query: async (text: string, values: unknown[]) => (await pool.query(text, values)).rows }
    },
  }

  test.each(Object.entries(clients))('%s: two processes hold one limit exactly', async (_, make) => {
    const { table } = ownedTable()
    const limiters = [make(), make()].map((client) =>
      createLimiter(HOUR, { name: 'api', store: postgresStore(client, { table, migrate: true, denialCache: false }) }),
    )
    const asked = Array.from({ length: 120 }, (_, k) => limiters[k % 2]?.consume('u'))
    expect((await Promise.all(asked)).filter((decision) => decision?.allowed)).toHaveLength(40)
  })
})

test('a client of postgres that fetches types is warned about, and one that is made as the guide says is not', () => {
  const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
  try {
    const url = inject('postgresUrl')
    postgresStore(postgres(url, GUIDE))
    postgresStore({ unsafe: async () => [] })
    expect(warn).not.toHaveBeenCalled()
    postgresStore(postgres(url))
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      expect.stringContaining('make the client with fetch_types: false'),
      expect.objectContaining({ code: 'SLUICE_FETCH_TYPES' }),
    )
  } finally {
    warn.mockRestore()
  }
})

describe('statements', () => {
  test('a turn takes two, whatever the number of decisions; a refusal one; what waits for a hot key travels together', async () => {
    const owned = ownedTable()
    const { client, sent } = watched(owned)
    const store = postgresStore(client, { table: owned.table, migrate: true, denialCache: false })
    const both = { burst: gcra({ rate: '1/h', burst: 100 }), daily: fixedWindow({ limit: 1_000, window: '366d' }) }
    const limiter = createLimiter(both, { name: 'api', store })
    await limiter.peek('warm')
    sent.length = 0
    await Promise.all(Array.from({ length: 30 }, (_, k) => limiter.consume(`u${k}`)))
    expect(sent).toEqual(['read', 'swap'])
    await limiter.consume('hot', 98)
    sent.length = 0
    expect(await limiter.consume('hot', 3)).toMatchObject({ allowed: false, remaining: 2 })
    expect(sent).toEqual(['read'])
    sent.length = 0
    // One turn after the other, while the first is under way.
    const turns = []
    for (let turn = 0; turn < 50; turn++) {
      turns.push(limiter.consume('warm'))
      await new Promise(setImmediate)
    }
    const remaining = (await Promise.all(turns)).map((decision) => decision.remaining)
    expect(remaining).toEqual(Array.from({ length: 50 }, (_, k) => 99 - k))
    expect(sent.length).toBeLessThan(100)
  })

  test('rows that another client wrote in the meantime are decided again, those of one decision together', async () => {
    const owned = ownedTable()
    const seen = [watched(owned), watched(owned), watched(owned)]
    const limits = { user: fixedWindow({ limit: 60, window: '366d' }), tenant: fixedWindow({ limit: 150, window: '366d' }) }
    const limiters = seen.map(({ client }) =>
      createLimiter(limits, {
        name: 'api',
        store: postgresStore(client, { table: owned.table, migrate: true, denialCache: false, maxBatch: 4 }),
        storeTimeoutMs: 60_000,
      }),
    )
    // Users and tenants in an order that differs from call to call: without one order of the locks
    // this deadlocks within moments.
    const calls = Array.from({ length: 450 }, (_, k) => ({ user: `u${(k * 7) % 5}`, tenant: `t${(k * 11) % 2}` }))
    const decisions = await Promise.all(calls.map((key, k) => limiters[k % 3]?.consume(key)))
    // The table was missing at first.
    expect(seen.flatMap(({ errors }) => errors).filter((code) => code !== '42883')).toEqual([])
    expect(seen.reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan(10)
    const admitted = calls.filter((_, k) => decisions[k]?.allowed)
    for (const name of ['user', 'tenant'] as const) {
      for (const key of new Set(calls.map((call) => call[name]))) {
        const [state] = (await inspectRows(owned.pool, owned.table, 'api', key)).filter(({ policy }) => policy === name)
        expect((state?.limit ?? 0) - (state?.remaining ?? 0)).toBe(admitted.filter((call) => call[name] === key).length)
      }
    }
    expect(admitted).toHaveLength(300)
  })
})

test('of several new rows none stays behind when another client has entered one of them', async () => {
  const owned = ownedTable()
  const limits = { user: fixedWindow({ limit: 5, window: '366d' }), tenant: fixedWindow({ limit: 1, window: '366d' }) }
  const other = createLimiter(limits, { name: 'api', store: owned.store() })
  await other.peek({ user: 'b', tenant: 't' })
  const swaps: number[] = []
  const query = async (text: string, values: unknown[]) => {
    const isFirst = text.includes('_swap') && swaps.length === 0
    if (isFirst) await other.consume({ user: 'b', tenant: 't' })
    const result = await owned.pool.query(text, values)
    if (text.includes('_swap')) swaps.push(result.rows.length)
    return result
  }
  const limiter = createLimiter(limits, { name: 'api', store: postgresStore({ query }, { table: owned.table }) })
  expect(await limiter.consume({ user: 'a', tenant: 't' })).toMatchObject({ allowed: false, policy: 'tenant' })
  expect(swaps).toEqual([2])
  const { rows } = await owned.pool.query(`SELECT id FROM ${owned.table} ORDER BY id`)
  expect(rows).toEqual([{ id: 'api:b:user' }, { id: 'api:t:tenant' }])
})

describe('rows', () => {
  const count = async ({ pool, table }: TestTable, where = 'true') =>
    Number((await pool.query(`SELECT count(*) AS n FROM ${table} WHERE ${where}`)).rows[0].n)

  test('any two keys are two rows, whatever is in them', async () => {
    const owned = ownedTable()
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 1 }), { name: 'api', store: owned.store({ denialCache: false }) })
    const long = '限'.repeat(1_023)
    const keys = ['a', 'a:default', 'a:b', ':', '%', '%25', '%00', '\0', '"', '\\', "'", '{}', 'NULL', `${long}a`, `${long}b`]
    expect(await Promise.all(keys.map((key) => admitted(limiter, key)))).toEqual(keys.map(() => true))
    expect(await Promise.all(keys.map((key) => admitted(limiter, key)))).toEqual(keys.map(() => false))
    const { rows } = await owned.pool.query(`SELECT id FROM ${owned.table}`)
    const digests = rows.map(({ id }) => /^api:(sha256:\w{64}):default$/.exec(id)?.[1]).filter((key) => key !== undefined)
    expect(digests).toHaveLength(2)
    // What looks like the digest of another key is not that key.
    expect((await limiter.consume(digests[0] as string)).allowed).toBe(true)
    expect(rows.map(({ id }) => id)).toContain('api:a:b:default')
  })

  test('questions, refusals, and what gives back make none; reset takes it away; and a person can read it', async () => {
    const owned = ownedTable()
    const limiter = createLimiter(gcra({ rate: '1/h', burst: 5 }), { name: 'api', store: owned.store() })
    await limiter.peek('u')
    await limiter.consume('u', 0)
    await limiter.refund('u', 2)
    expect(await count(owned)).toBe(0)
    const { resetAfterMs } = await limiter.consume('u', 3)
    // Another key that begins alike.
    await limiter.consume('u:2')
    const [state, ...others] = await inspectRows(owned.pool, owned.table, 'api', 'u')
    await limiter.reset('u:2')
    expect(others).toEqual([])
    expect(state).toMatchObject({ key: 'api:u:default', type: 'gcra', limit: 5, remaining: 2, numbers: '5 1 3600000000' })
    expect(Math.abs((state?.ttlMs as number) - resetAfterMs)).toBeLessThan(60_000)
    await limiter.reset('u')
    expect(await count(owned)).toBe(0)
  })

  test('idle ones go in passing, when new ones come, and no others', async () => {
    const owned = ownedTable()
    const limiter = createLimiter(HOUR, { name: 'api', store: owned.store() })
    await limiter.consume('mine', 40)
    const insert = `INSERT INTO ${owned.table} SELECT 'old:' || k || ':default', k, '\\x00', 1 FROM generate_series(1, 2000) k`
    await owned.pool.query(insert)
    // Pages are looked at by chance: of the last few one may be missed for long.
    const few = 200
    for (let turn = 0; turn < 100 && (await count(owned, 'idle_us = 1')) > few; turn++) {
      await Promise.all(Array.from({ length: 64 }, (_, k) => limiter.consume(`new${turn}:${k}`)))
    }
    expect(await count(owned, 'idle_us = 1')).toBeLessThanOrEqual(few)
    expect((await limiter.consume('mine')).allowed).toBe(false)
    const fresh = await count(owned, "id LIKE 'api:new%'")
    expect(fresh % 64).toBe(0)
    // A look at a page for sixteen new rows.
    expect(fresh).toBeLessThan(6_400)
  })

  test('one of another algorithm fails the decisions on it alone, and stays as it is', async () => {
    const owned = ownedTable()
    const limiter = createLimiter(HOUR, { name: 'api', store: owned.store() })
    await limiter.consume('u', 40)
    for (const limit of [fixedWindow({ limit: 10, window: '1h' }), slidingLog({ limit: 10, window: '1h' })]) {
      const other = createLimiter(limit, { name: 'api', store: owned.store(), onStoreError: 'throw' })
      const [held, fresh] = await Promise.allSettled([other.consume('u'), other.consume(`new:${limit.type}`)])
      expect(held).toMatchObject({ status: 'rejected', reason: { code: 'STORE', isolated: true } })
      expect(String((held as PromiseRejectedResult).reason.message)).toContain(`is a gcra in this store, it cannot be a ${limit.type} too`)
      expect(fresh).toMatchObject({ status: 'fulfilled', value: { remaining: 9 } })
    }
    expect(await limiter.peek('u')).toMatchObject({ allowed: false, remaining: 0 })
  })

  test('one that something else wrote fails the decisions on it alone, and reset mends it', async () => {
    const owned = ownedTable()
    const limiter = createLimiter(HOUR, { name: 'api', store: owned.store(), onStoreError: 'throw' })
    await limiter.consume('good')
    await owned.pool.query(`INSERT INTO ${owned.table} VALUES ('api:bad:default', 1, 'hello', 9e15)`)
    const [bad, good] = await Promise.allSettled([limiter.consume('bad'), limiter.consume('good')])
    expect(bad).toMatchObject({ status: 'rejected', reason: { code: 'STORE', isolated: true } })
    expect(String((bad as PromiseRejectedResult).reason.message)).toContain('api:bad:default')
    expect(good).toMatchObject({ status: 'fulfilled', value: { remaining: 38 } })
    expect(limiter.health().state).toBe('up')
    await limiter.reset('bad')
    expect(await limiter.consume('bad')).toMatchObject({ allowed: true, remaining: 39 })
  })

  test('a log of thousands of entries is one row too', async () => {
    const owned = ownedTable()
    const limiter = createLimiter(slidingLog({ limit: 5_000, window: '1h' }), { name: 'api', store: owned.store() })
    for (let turn = 0; turn < 10; turn++) await limiter.consume('u', 400)
    expect(await limiter.consume('u', 1_000)).toMatchObject({ allowed: true, remaining: 0 })
    expect(await limiter.consume('u')).toMatchObject({ allowed: false })
  })
})

describe.each(['read committed', 'repeatable read', 'serializable'])('with %s as the default of the database', (isolation) => {
  function limiterOn(owned: TestTable) {
    const options = `-c default_transaction_isolation=${isolation.replace(' ', '\\ ')}`
    const pool = new pg.Pool({ connectionString: inject('postgresUrl'), max: 2, options })
    open.push(() => pool.end())
    const seen = watched({ ...owned, pool })
    const store = postgresStore(seen.client, { table: owned.table, migrate: true, denialCache: false, maxBatch: 4 })
    return { seen, limiter: createLimiter(HOUR, { name: 'api', store, storeTimeoutMs: 60_000 }) }
  }

  test('it is exact', async () => {
    const owned = ownedTable()
    const limiters = [0, 1, 2].map(() => limiterOn(owned).limiter)
    const answers = await Promise.all(Array.from({ length: 90 }, (_, k) => limiters[k % 3]?.consume('u')))
    expect(answers.filter((decision) => decision?.allowed)).toHaveLength(40)
  })

  test('a decision whose row is written by another transaction before it ends is decided again', async () => {
    const owned = ownedTable()
    const { seen, limiter } = limiterOn(owned)
    await limiter.consume('u', 10)
    const other = await owned.pool.connect()
    await other.query('BEGIN')
    await other.query(`UPDATE ${owned.table} SET version = version + 1`)
    const decision = limiter.consume('u')
    const waiting = `SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%${owned.table}_swap%'`
    await vi.waitFor(async () => expect((await owned.pool.query(waiting)).rows).toHaveLength(1), { timeout: 10_000 })
    await other.query('COMMIT')
    other.release()
    expect(await decision).toMatchObject({ allowed: true, remaining: 29 })
    expect(isolation === 'read committed' ? seen.lost : seen.errors.filter((code) => code === '40001').length).toBe(1)
  })
})

describe('set-up', () => {
  test('a table that is missing is said, and what to do; many make it at once', async () => {
    const owned = ownedTable()
    const without = createLimiter(HOUR, { name: 'api', store: owned.store({ migrate: false }), onStoreError: 'throw' })
    await expect(without.consume('u')).rejects.toThrow(/sluice migrate --postgres.*migrate: true/)
    without.close()
    const stores = Array.from({ length: 8 }, () => owned.store({ denialCache: false }))
    const answers = stores.map((store) => createLimiter(HOUR, { name: 'api', store, onStoreError: 'throw' }).consume('u', 10))
    expect((await Promise.all(answers)).filter(({ allowed }) => allowed)).toHaveLength(4)
  })

  test('a user needs four rights on the table, and none to make it', async () => {
    const { pool, table } = ownedTable()
    const role = `${table}_role`
    await pool.query(postgresMigration({ table, unlogged: true }))
    await pool.query(`CREATE ROLE ${role} LOGIN`)
    await pool.query(`GRANT SELECT, INSERT, UPDATE ON ${table} TO ${role}`)
    const mine = new pg.Pool({ connectionString: inject('postgresUrl').replace('postgres@', `${role}@`), max: 2 })
    open.push(() => mine.end())
    const limiter = createLimiter(HOUR, { name: 'api', store: postgresStore(mine, { table, migrate: true }), onStoreError: 'throw' })
    await limiter.consume('u')
    await expect(limiter.reset('u')).rejects.toThrow(/rights.*docs\/guides\/postgres\.md/)
    expect(limiter.health().state).toBe('down')
    await pool.query(`GRANT DELETE ON ${table} TO ${role}`)
    await vi.waitFor(() => expect(limiter.health().state).toBe('up'), { timeout: 10_000 })
    await limiter.reset('u')
    const keys = Array.from({ length: 64 }, (_, k) => `k${k}`)
    expect((await Promise.all(keys.map((key) => admitted(limiter, key)))).every(Boolean)).toBe(true)
    await expect(mine.query('CREATE TABLE other (id int)')).rejects.toThrow(/permission denied/)
    await pool.query(`DROP TABLE ${table}; DROP ROLE ${role}`)
  })

  test.each([
    [{ table: 'Sluice' }, /table "Sluice" must be a name/],
    [{ table: 'a.b.c' }, /table "a.b.c" must be/],
    [{ table: 'x"; DROP TABLE y; --' }, /table .* must be/],
    [{ unlogged: 1 }, /unlogged 1 must be true or false/],
    [{ migrate: 'yes' }, /migrate "yes" must be true or false/],
    [{ maxConnections: 0 }, /maxConnections 0 must be a whole number from 1 to 100/],
    [{ maxBatch: 0 }, /maxBatch 0 must be/],
    [{ prefix: 'x' }, /prefix/],
  ])('the options %j are refused', (options, message) => {
    expect(() => postgresStore({ query: async () => [] }, options as object)).toThrow(message)
  })

  test.each([undefined, null, {}, 'postgres://localhost'])('%j is no pool', (pool) => {
    expect(() => postgresStore(pool as never)).toThrow(/pool .* must be a Pool of pg/)
  })
})
