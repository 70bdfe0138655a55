/**
 * Faults of a real server, and of the network and the pooler before it. The promises: a decision
 * that was answered is charged once; one that was not answered is charged once or not at all, and
 * never sent again; one that the server says did not happen is sent again.
 */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { type PostgresServer, startPgbouncer, startPostgres, startStandby, USER } from '../../scripts/postgres-server.mjs'
import { createLimiter, fixedWindow, gcra } from '../../src/index.ts'
import { postgresMigration, postgresStore } from '../../src/stores/postgres/index.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import { optionsOfTheGuide, ownTable, type TestTable } from '../support/postgres-client.ts'

const YEAR = fixedWindow({ limit: 1_000_000, window: '366d' })
const WAIT = { timeout: 30_000, interval: 50 }

let server: PostgresServer
const open: (() => unknown)[] = []
beforeAll(async () => {
  server = await startPostgres({ fsync: 'off' })
})
afterAll(() => server.remove())
afterEach(async () => {
  for (const close of open.splice(0)) await close()
})

function ownedTable(url = server.url, table?: string): TestTable {
  const owned = ownTable(url, table)
  open.push(owned.close)
  return owned
}

function limiterOn(store: ReturnType<typeof postgresStore>) {
  const limiter = createLimiter(YEAR, { name: 'api', store, onStoreError: 'throw', storeTimeoutMs: 30_000 })
  open.push(() => limiter.close())
  return limiter
}

async function usedOf({ pool, table }: TestTable, key: string): Promise<number> {
  const [state] = await inspectRows(pool, table, 'api', key)
  return state === undefined ? 0 : state.limit - state.remaining
}

/**
 * Takes from a few keys until it is told to stop, and counts what was answered, and what was not.
 */
async function hammer(limiter: ReturnType<typeof limiterOn>, isOver: () => boolean): Promise<{ answered: number; failed: number }> {
  const counts = { answered: 0, failed: 0 }
  const worker = async (key: string) => {
    while (!isOver()) {
      try {
        const { allowed } = await limiter.consume(key)
        if (allowed) counts.answered += 1
      } catch {
        counts.failed += 1
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    }
  }
  await Promise.all(Array.from({ length: 24 }, (_, k) => worker(`k${k % 6}`)))
  return counts
}

async function usedInAll(owned: TestTable): Promise<number> {
  const used = await Promise.all(Array.from({ length: 6 }, (_, k) => usedOf(owned, `k${k}`)))
  return used.reduce((sum, each) => sum + each, 0)
}

test('backends that are terminated in the middle of batches charge nothing twice', async () => {
  const owned = ownedTable()
  const limiters = [limiterOn(owned.store()), limiterOn(ownedTable(server.url, owned.table).store())]
  await limiters[0]?.consume('k0')
  let isOver = false
  const hammers = limiters.map((limiter) => hammer(limiter, () => isOver))
  const admin = ownedTable().pool
  // Those that are just at work for the limiters.
  const atWork = `state = 'active' AND query LIKE '%${owned.table}%' AND pid <> pg_backend_pid()`
  const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${atWork}`
  let ended = 0
  while (ended < 10) ended += (await admin.query(terminate)).rowCount ?? 0
  await vi.waitFor(() => expect(limiters.map((limiter) => limiter.health().state)).toEqual(['up', 'up']), WAIT)
  isOver = true
  const counts = await Promise.all(hammers)
  const answered = 1 + counts.reduce((sum, each) => sum + each.answered, 0)
  const failed = counts.reduce((sum, each) => sum + each.failed, 0)
  const used = await usedInAll(owned)
  expect(failed).toBeGreaterThan(0)
  expect(used).toBeGreaterThanOrEqual(answered)
  expect(used).toBeLessThanOrEqual(answered + failed)
})

test('a backend that is killed with -9 takes the server down for a moment: nothing is charged twice, only an unlogged table is empty', async () => {
  const owned = ownedTable()
  const volatile = ownedTable()
  const limiter = limiterOn(owned.store())
  const unlogged = limiterOn(volatile.store({ unlogged: true }))
  await unlogged.consume('u', 7)
  expect(await usedOf(volatile, 'u')).toBe(7)
  await limiter.consume('k0')
  let isOver = false
  const hammering = hammer(limiter, () => isOver)
  const admin = ownedTable().pool
  const atWork = `SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%${owned.table}%' AND pid <> pg_backend_pid()`
  let pid: number | undefined
  while (pid === undefined) pid = (await admin.query(atWork)).rows[0]?.pid
  process.kill(pid, 'SIGKILL')
  // All connections are lost, and the server recovers from its log.
  await vi.waitFor(async () => expect(await usedOf(volatile, 'u')).toBe(0), WAIT)
  await vi.waitFor(() => expect(limiter.health().state).toBe('up'), WAIT)
  isOver = true
  const { answered, failed } = await hammering
  const used = await usedInAll(owned)
  expect(failed).toBeGreaterThan(0)
  expect(used).toBeGreaterThanOrEqual(answered + 1)
  expect(used).toBeLessThanOrEqual(answered + 1 + failed)
})

test('a client of postgres, made as the guide says, loses a connection at its first query: the decision fails, and nothing else', async () => {
  const READY = Buffer.from('Z\0\0\0\x05I', 'latin1')
  let cuts = 0
  const network = createServer((near) => {
    const far = connect(server.port, server.host)
    const cut = () => near.resetAndDestroy() && far.destroy()
    for (const socket of [near, far]) socket.on('error', cut).on('close', cut)
    let isReady = false
    far.on('data', (data) => {
      isReady = isReady || data.includes(READY)
      near.write(data)
    })
    near.on('data', (data) => {
      if (!isReady || cuts === 3) far.write(data)
      else {
        cuts += 1
        cut()
      }
    })
  })
  await once(network.listen(0, '127.0.0.1'), 'listening')
  const { port } = network.address() as AddressInfo
  const sql = postgres(`postgres://${USER}@127.0.0.1:${port}/postgres`, optionsOfTheGuide('postgres'))
  open.push(
    () => sql.end({ timeout: 0 }),
    () => network.close(),
  )
  const { table, pool } = ownedTable()
  await pool.query(postgresMigration({ table }))
  const limiter = limiterOn(postgresStore(sql, { table }))
  // Vitest fails where a rejection is handled by nothing.
  await expect(limiter.consume('u')).rejects.toMatchObject({ code: 'STORE' })
  await vi.waitFor(() => expect(limiter.health().state).toBe('up'), WAIT)
  expect(cuts).toBe(3)
  expect(await limiter.consume('u')).toMatchObject({ allowed: true })
})

test.each(['SIGINT', 'SIGQUIT'] as const)(
  'a server that ended by %s and started again, behind pgbouncer, has forgotten nothing',
  async (signal) => {
    const pgbouncer = await startPgbouncer(server, { server_login_retry: 1, query_wait_timeout: 3 })
    open.push(() => pgbouncer.remove())
    const limiter = limiterOn(ownedTable(pgbouncer.url).store())
    await limiter.consume('u', 700)
    await server.stop(signal)
    await expect(limiter.consume('u')).rejects.toMatchObject({ code: 'STORE' })
    await server.start()
    await vi.waitFor(() => expect(limiter.health().state).toBe('up'), WAIT)
    expect(await limiter.consume('u', 1)).toMatchObject({ remaining: 999_299 })
  },
)

test('a standby decides nothing, not even questions; once promoted it goes on from what it has', async () => {
  const owned = ownedTable()
  await limiterOn(owned.store()).consume('u', 5)
  const standby = await startStandby(server, { fsync: 'off' })
  open.push(() => standby.remove())
  const there = ownedTable(standby.url, owned.table)
  const limiter = limiterOn(there.store())
  await expect(limiter.peek('u')).rejects.toThrow(/connect to the primary/)
  standby.promote()
  await vi.waitFor(() => expect(limiter.health().state).toBe('up'), WAIT)
  expect(await limiter.consume('u', 2)).toMatchObject({ allowed: true, remaining: 999_993 })
})

test('a failover under load: what a synchronous standby was promoted with is all that was answered, and callers find it by themselves', async () => {
  const primary = await startPostgres({ fsync: 'off' })
  open.push(() => primary.remove())
  const { pool, table } = ownedTable(primary.url)
  await pool.query(postgresMigration({ table }))
  const standby = await startStandby(primary, { fsync: 'off' })
  open.push(() => standby.remove())
  await pool.query("ALTER SYSTEM SET synchronous_standby_names = '*'")
  await pool.query('SELECT pg_reload_conf()')
  const inStep = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
  await vi.waitFor(async () => expect((await pool.query(inStep)).rows).toHaveLength(1), WAIT)
  const hosts = [primary, standby].map(({ host, port }) => `${host}:${port}`)
  const sql = postgres(`postgres://${USER}@${hosts}/postgres`, {
    ...optionsOfTheGuide('postgres'),
    max: 4,
    target_session_attrs: 'read-write',
    onnotice: () => undefined,
  })
  open.push(() => sql.end({ timeout: 0 }))
  const limiter = limiterOn(postgresStore(sql, { table }))
  let isOver = false
  const hammering = hammer(limiter, () => isOver)
  const before = ownedTable(primary.url, table)
  await vi.waitFor(async () => expect(await usedInAll(before)).toBeGreaterThan(200), WAIT)
  await primary.stop('SIGQUIT')
  standby.promote()
  const after = ownedTable(standby.url, table)
  const found = await usedInAll(after)
  await vi.waitFor(async () => expect(await usedInAll(after)).toBeGreaterThan(found), WAIT)
  isOver = true
  const { answered, failed } = await hammering
  const used = await usedInAll(after)
  expect(used).toBeGreaterThanOrEqual(answered)
  expect(used).toBeLessThanOrEqual(answered + failed)
})

describe('between client and server', () => {
  /** Does something before or after some statement is run. */
  function between(owned: TestTable, around: (verb: string, run: () => Promise<pg.QueryResult>) => Promise<pg.QueryResult>) {
    const query = (text: string, values: unknown[]) =>
      around(/read|swap/.exec(text)?.[0] ?? 'migrate', () => owned.pool.query(text, values))
    return limiterOn(postgresStore({ query }, { table: owned.table, migrate: true }))
  }

  test('a process that stands still between the two trips holds up nobody', async () => {
    const owned = ownedTable()
    await limiterOn(owned.store()).consume('u')
    let go: () => void = () => undefined
    const isStanding = new Promise<void>((resolve) => {
      go = resolve
    })
    let isAtSwap = false
    const standing = between(owned, async (verb, run) => {
      isAtSwap ||= verb === 'swap'
      if (verb === 'swap') await isStanding
      return run()
    })
    const late = standing.consume('u')
    await vi.waitFor(() => expect(isAtSwap).toBe(true), WAIT)
    const other = limiterOn(owned.store())
    for (let k = 0; k < 5; k++) await other.consume('u')
    go()
    // It is decided again, after the others.
    expect(await late).toMatchObject({ remaining: 999_993 })
    expect(await usedOf(owned, 'u')).toBe(7)
  })

  test('a table that is still missing when the server comes back is made then', async () => {
    const owned = ownedTable()
    let isThere = false
    const limiter = between(owned, async (_, run) => {
      if (!isThere) throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
      return run()
    })
    await expect(limiter.consume('u')).rejects.toMatchObject({ code: 'STORE' })
    isThere = true
    await vi.waitFor(() => expect(limiter.health().state).toBe('up'), WAIT)
    expect(await limiter.consume('u')).toMatchObject({ remaining: 999_999 })
  })

  test('an answer that is lost after the commit is a failure, and is not sent again', async () => {
    const owned = ownedTable()
    await limiterOn(owned.store()).consume('u')
    const sent: string[] = []
    const limiter = between(owned, async (verb, run) => {
      sent.push(verb)
      const result = await run()
      if (verb === 'swap' && sent.length === 2) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
      return result
    })
    await expect(limiter.consume('u')).rejects.toMatchObject({ code: 'STORE', message: expect.stringContaining('ECONNRESET') })
    expect(sent.slice(0, 2)).toEqual(['read', 'swap'])
    expect(await usedOf(owned, 'u')).toBe(2)
  })

  test.each(['40001', '40P01'])('a decision that was rolled back with %s is decided anew and charged once', async (code) => {
    const owned = ownedTable()
    await limiterOn(owned.store()).consume('u')
    let swaps = 0
    const limiter = between(owned, async (verb, run) => {
      if (verb === 'swap') swaps += 1
      if (verb === 'swap' && swaps <= 2) throw Object.assign(new Error('rolled back'), { code, severity: 'ERROR' })
      return run()
    })
    expect(await limiter.consume('u')).toMatchObject({ remaining: 999_998 })
    expect(swaps).toBe(3)
    expect(await usedOf(owned, 'u')).toBe(2)
  })

  test('a lock that another client keeps on the table fails decisions, and no longer', async () => {
    const owned = ownedTable()
    const limiter = limiterOn(owned.store())
    await limiter.consume('u')
    const other = await owned.pool.connect()
    await other.query(`BEGIN; LOCK TABLE ${owned.table}`)
    await expect(limiter.consume('u')).rejects.toThrow(/another session holds a lock/)
    await other.query('COMMIT')
    other.release()
    await vi.waitFor(() => expect(limiter.health().state).toBe('up'), WAIT)
    expect(await limiter.consume('u')).toMatchObject({ remaining: 999_998 })
  })

  test('a decision that was given up before it was written is not written', async () => {
    const owned = ownedTable()
    await limiterOn(owned.store()).consume('u')
    let go: () => void = () => undefined
    const isHeld = new Promise<void>((resolve) => {
      go = resolve
    })
    const query = async (text: string, values: unknown[]) => {
      const result = await owned.pool.query(text, values)
      if (text.includes('_read')) await isHeld
      return result
    }
    const store = postgresStore({ query }, { table: owned.table })
    const limiter = createLimiter(YEAR, { name: 'api', store, onStoreError: 'throw', storeTimeoutMs: 5 })
    await expect(limiter.consume('u')).rejects.toMatchObject({ code: 'STORE' })
    limiter.close()
    go()
    // What comes after it on the same row has waited for it.
    const after = limiterOn(store)
    expect(await after.consume('u')).toMatchObject({ remaining: 999_998 })
  })
})

test('no words of the database reach the callers of a limiter that has a fallback', async () => {
  const pool = new pg.Pool({ connectionString: 'postgres://nobody:secret@127.0.0.1:1/none' })
  open.push(() => pool.end())
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 2 }), { name: 'api', store: postgresStore(pool), onStoreError: 'local' })
  expect(await limiter.consume('u')).toMatchObject({ allowed: true, degraded: true })
  expect(limiter.health()).toMatchObject({
    state: 'down',
    error: { code: 'STORE', message: expect.stringMatching(/^Postgres: .*ECONNREFUSED/) },
  })
  expect(JSON.stringify(limiter.health())).not.toContain('secret')
})
