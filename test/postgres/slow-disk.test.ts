/**
 * A PostgreSQL that commits to a disk that is slow, or stands still: a real server whose syncs are
 * held up. What was answered is charged once, what was not at most once; the policies answer in
 * time; all of it goes on by itself.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type PostgresServer, startPostgres } from '../../scripts/postgres-server.mjs'
import { createLimiter, fixedWindow } from '../../src/index.ts'
import { postgresStore } from '../../src/stores/postgres/index.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import { permitsOnSlowDisk } from '../permits/on-slow-disk.ts'
import { ownTable, type TestTable } from '../support/postgres-client.ts'
import { until } from '../support/redis-servers.ts'
import { mendAll, slowDisk, whyNoSlowDisk, withChildren } from '../support/slow-disk.ts'

if (whyNoSlowDisk !== undefined) console.log(`The disk of PostgreSQL is not slowed down: ${whyNoSlowDisk}`)

const CAPACITY = 60
const LIMIT = fixedWindow({ limit: CAPACITY, window: '366d', anchor: 'first' })
/** What a process that is on its own may give out. */
const LOCAL_SHARE = 0.1
const SLOW_MS = 300
const FOREVER_MS = 600_000
/** The disk is a real one, and others use it. */
const STORE_TIMEOUT_MS = 3_000
const CALLS_WELL = 30
const CALLS_ILL = 12

/** Without the store. */
const BY_POLICY = { throw: 0, deny: 0, allow: CALLS_ILL, local: CAPACITY * LOCAL_SHARE }

describe.skipIf(whyNoSlowDisk !== undefined)('PostgreSQL', () => {
  let server: PostgresServer
  const open: (() => unknown)[] = []
  beforeAll(async () => {
    server = await startPostgres({ fsync: 'on', checkpoint_timeout: '1h' })
  })
  afterAll(() => server.remove())
  afterEach(async () => {
    for (const close of open.splice(0)) await close()
  })
  // Before the others.
  afterEach(mendAll)

  const owned = (table?: string): TestTable => {
    const own = ownTable(server.url, table)
    open.push(own.close)
    return own
  }
  /** Of all its processes; those that come later are among them. */
  const slow = (ms: number) => slowDisk(withChildren(server.pid), ms)
  const usedOf = async ({ pool, table }: TestTable, name: string) => {
    const [state] = await inspectRows(pool, table, name, 'k')
    return state === undefined ? 0 : state.limit - state.remaining
  }

  test.each(Object.keys(BY_POLICY) as (keyof typeof BY_POLICY)[])(
    'a disk that stands still: the policy answers, %s, and no permit is given twice or lost',
    async (policy) => {
      const table = owned()
      const limiter = createLimiter(LIMIT, {
        name: 'api',
        store: table.store(),
        onStoreError: policy,
        localShare: LOCAL_SHARE,
        storeTimeoutMs: STORE_TIMEOUT_MS,
      })
      open.push(() => limiter.close())
      const counts = { byStore: 0, byPolicy: 0, refused: 0, unanswered: 0 }
      const call = async () => {
        try {
          const { allowed, degraded } = await limiter.consume('k')
          if (degraded) counts.unanswered += 1
          if (degraded && allowed) counts.byPolicy += 1
          if (!degraded) counts[allowed ? 'byStore' : 'refused'] += 1
        } catch (error) {
          expect(error).toMatchObject({ code: 'STORE' })
          counts.unanswered += 1
        }
      }
      for (let k = 0; k < CALLS_WELL / 3; k++) await Promise.all([call(), call(), call()])
      expect(counts.byStore).toBe(CALLS_WELL)
      const disk = await slow(FOREVER_MS)
      for (let k = 0; k < CALLS_ILL / 3; k++) await Promise.all([call(), call(), call()])
      expect({ ...counts, state: limiter.health().state, syncs: disk.syncs }).toEqual({
        byStore: CALLS_WELL,
        byPolicy: BY_POLICY[policy],
        refused: 0,
        unanswered: CALLS_ILL,
        state: 'down',
        syncs: 0,
      })
      await disk.mend()
      await until(async () => limiter.health().state === 'up')
      while (counts.refused === 0) await call()
      expect(counts.unanswered).toBe(CALLS_ILL)
      expect(counts.byStore).toBeLessThanOrEqual(CAPACITY)
      // Those that were under way when it stood still were charged, once.
      expect(counts.byStore).toBeGreaterThanOrEqual(CAPACITY - CALLS_ILL)
      expect(await usedOf(table, 'api')).toBe(CAPACITY)
    },
  )

  test('a disk that stands still costs one wait: probes wait for it too, and leave nothing behind', async () => {
    const { pool, table } = owned()
    let probes = 0
    const query = (text: string, values: string[]) => {
      if (values[0]?.includes('once::')) probes += 1
      return pool.query(text, values)
    }
    const states: string[] = []
    const limiter = createLimiter(LIMIT, {
      name: 'once',
      store: postgresStore({ query }, { table, migrate: true }),
      onStoreError: 'deny',
      storeTimeoutMs: 300,
      onHealth: ({ state }) => states.push(state),
    })
    open.push(() => limiter.close())
    await until(async () => !(await limiter.consume('k')).degraded)
    states.length = 0
    const disk = await slow(FOREVER_MS)
    await until(async () => (await limiter.consume('k')).degraded && probes >= 3)
    expect({ states, syncs: disk.syncs }).toEqual({ states: ['down'], syncs: 0 })
    await disk.mend()
    await until(async () => limiter.health().state === 'up')
    expect(states).toEqual(['down', 'up'])
    expect((await pool.query(`SELECT id FROM ${table}`)).rows).toEqual([{ id: 'once:k:default' }])
  })

  test('a disk that is slow: two processes give out each permit once, and all by the store', async () => {
    const tables = [owned()]
    tables.push(owned(tables[0]?.table))
    const limiters = tables.map((table) =>
      createLimiter(LIMIT, { name: 'slow', store: table.store(), onStoreError: 'deny', storeTimeoutMs: 60_000 }),
    )
    for (const limiter of limiters) open.push(() => limiter.close())
    const answers = await Promise.all(limiters.map((limiter) => limiter.consume('k')))
    const disk = await slow(SLOW_MS)
    const callers = limiters.flatMap((limiter) => Array.from({ length: CAPACITY }, () => limiter.consume('k')))
    answers.push(...(await Promise.all(callers)))
    expect(disk.syncs).toBeGreaterThan(0)
    expect(answers.filter(({ degraded }) => degraded)).toEqual([])
    expect(answers.filter(({ allowed }) => allowed).length).toBe(CAPACITY)
    await disk.mend()
    expect(await usedOf(tables[0] as TestTable, 'slow')).toBe(CAPACITY)
  })

  test('permits are not exceeded, by the time of the server, and all who wait are served when the disk is well', async () => {
    const [table, witness] = [owned(), owned()]
    await permitsOnSlowDisk({
      open: () => owned(table.table).store(),
      slow,
      // Four processes that write one row wait for each other's commits.
      slowMs: 60,
      // A question writes nothing: it waits for no disk.
      nowUs: async () => Number((await witness.pool.query('SELECT extract(epoch FROM clock_timestamp()) * 1e6 AS us')).rows[0].us),
    })
  })
})
