/**
 * The SQLite store alone: its file, its errors, what it writes and when. By `better-sqlite3`;
 * test/sqlite/nodes.test.ts has the other driver.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { concurrency, createLimiter, fixedWindow, gcra, SluiceError, slidingLog, tokenBucket } from '../../src/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { openSqlite } from '../support/stores.ts'

let file: ReturnType<typeof openSqlite>
const opened: { close(): unknown }[] = []
beforeEach(() => {
  file = openSqlite()
})
afterEach(() => {
  for (const each of opened.splice(0)) each.close()
  file.close()
})

/** Another connection, as another program has one. */
function connection(path = file.path, options = {}): Database.Database {
  const database = new Database(path, { timeout: 0, ...options })
  opened.push(database)
  return database
}

const three = fixedWindow({ limit: 3, window: '1h' })

function errorOf(call: () => unknown): SluiceError {
  try {
    call()
  } catch (error) {
    if (error instanceof SluiceError) return error
    throw error
  }
  throw new Error('nothing was thrown')
}

describe('the database and the options', () => {
  test.each([
    ['no path', '', 'must be the path of a file'],
    ['a database in memory', ':memory:', 'must be the path of a file'],
    ['no database', { prepare() {} }, 'must be the path of a file, or a database of node:sqlite or better-sqlite3'],
    ['nothing', undefined, 'must be the path of a file'],
  ])('%s is refused', (_what, from, message) => {
    expect(errorOf(() => sqliteStore(from as string))).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(message) })
  })

  test.each([-1, 60_001, Number.NaN, '5'])('a busyTimeoutMs of %j is refused', (busyTimeoutMs) => {
    const error = errorOf(() => sqliteStore(file.path, { busyTimeoutMs: busyTimeoutMs as number }))
    expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining('must be 0 to 60000 milliseconds') })
  })

  test('an option that is not known is refused', () => {
    expect(errorOf(() => sqliteStore(file.path, { timeout: 5 } as object)).code).toBe('CONFIG')
  })

  test('a folder that is not there is an error that names the file', () => {
    const error = errorOf(() => sqliteStore(join(dirname(file.path), 'missing/limits.db')))
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringContaining('missing/limits.db') })
  })

  test('a file that is no database is an error, and stays as it is', () => {
    const path = join(dirname(file.path), 'notes.txt')
    writeFileSync(path, 'Buy milk. '.repeat(500))
    const error = errorOf(() => sqliteStore(path))
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringMatching(/notes\.txt.*not a database/) })
    expect(readFileSync(path, 'utf8')).toBe('Buy milk. '.repeat(500))
  })

  test('tables of another version are an error, and stay as they are', () => {
    connection().exec('UPDATE sluice_clock SET layout = 2')
    expect(errorOf(() => sqliteStore(file.path)).message).toContain('they have the layout 2, and this one knows 1')
    expect(file.store.size).toBe(0)
  })

  test('a limiter needs a name', () => {
    expect(errorOf(() => createLimiter(three, { store: file.store })).code).toBe('CONFIG')
  })
})

test('a place needs a lease: nobody would free that of a process that died', () => {
  const make = () => createLimiter(concurrency({ max: 1 }), { name: 'jobs', store: file.store })
  expect(errorOf(make)).toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining("limit 'default' needs a lease in a file of SQLite"),
  })
})

describe('a database of the user', () => {
  test('is used as it is, with its journal and its settings, beside tables of others, and stays open', () => {
    const database = connection(join(dirname(file.path), 'app.db'))
    database.exec('CREATE TABLE users (id INTEGER PRIMARY KEY); PRAGMA synchronous = FULL')
    database.defaultSafeIntegers(true)
    const store = sqliteStore(database)
    const limiter = createLimiter(three, { name: 'api', store })
    expect([1, 2, 3, 4].map(() => limiter.tryAcquire('u1'))).toEqual([true, true, true, false])
    expect(limiter.peek('u1').remaining).toBe(0)
    store.close()
    expect(errorOf(() => limiter.tryAcquire('u1')).code).toBe('CLOSED')
    expect(database.pragma('journal_mode', { simple: true })).toBe('delete')
    expect(database.pragma('synchronous', { simple: true })).toBe(2n)
    expect(database.prepare('SELECT count(*) FROM users').pluck().get()).toBe(0n)
  })

  test('in the middle of a transaction decides nothing, because that could be taken back', () => {
    const database = connection()
    const limiter = createLimiter(three, { name: 'api', store: sqliteStore(database) })
    database.exec('BEGIN')
    for (const call of [() => limiter.tryAcquire('u1'), () => limiter.peek('u1')]) {
      expect(errorOf(call)).toMatchObject({ code: 'STORE', message: expect.stringContaining('has a transaction open') })
    }
    database.exec('COMMIT')
    expect(limiter.consume('u1').remaining).toBe(2)
  })

  test('that is read-only answers questions and refusals, and says why it takes nothing', () => {
    const limiter = createLimiter(three, { name: 'api', store: file.store })
    limiter.consume('full', 3)
    const readonly = createLimiter(three, { name: 'api', store: sqliteStore(connection(file.path, { readonly: true })) })
    expect(readonly.peek('full').allowed).toBe(false)
    expect(errorOf(() => readonly.consume('u1'))).toMatchObject({ code: 'STORE', message: expect.stringContaining('read-only') })
    const empty = connection(join(dirname(file.path), 'empty.db'))
    empty.pragma('query_only = 1')
    expect(errorOf(() => sqliteStore(empty))).toMatchObject({ code: 'STORE', message: expect.stringContaining('read-only') })
  })
})

describe('a file whose lock another process holds', () => {
  test('answers questions, and refuses who was refused; a take is an error after busyTimeoutMs, and charges nothing', () => {
    const store = sqliteStore(file.path, { busyTimeoutMs: 5 })
    opened.push(store)
    const limiter = createLimiter(three, { name: 'api', store })
    limiter.consume('full', 3)
    const other = connection()
    other.exec('BEGIN IMMEDIATE')
    expect(limiter.peek('u1').remaining).toBe(3)
    const error = errorOf(() => limiter.consume('u1'))
    expect(error).toMatchObject({ code: 'STORE', isolated: false })
    expect(error.message).toContain('another process held the lock for longer than busyTimeoutMs')
    expect(store.collisions).toBeGreaterThan(0)
    other.exec('COMMIT')
    expect(limiter.consume('full').allowed).toBe(false)
    // A key that was refused is looked at first, which needs no lock.
    other.exec('BEGIN IMMEDIATE')
    expect(limiter.consume('full').allowed).toBe(false)
    other.exec('COMMIT')
    expect(limiter.consume('u1').remaining).toBe(2)
  })

  test('is not waited for with a busyTimeoutMs of 0', () => {
    const store = sqliteStore(file.path, { busyTimeoutMs: 0 })
    opened.push(store)
    const limiter = createLimiter(three, { name: 'api', store })
    connection().exec('BEGIN IMMEDIATE')
    expect(errorOf(() => limiter.tryAcquire('u1')).code).toBe('STORE')
    expect(store.collisions).toBe(0)
  })
})

describe('a full disk', () => {
  test('is an error that leaves everything as it was; who is held is answered, and all goes on when there is room', () => {
    const database = connection()
    const limiter = createLimiter(
      { log: slidingLog({ limit: 500, window: '1h' }), daily: fixedWindow({ limit: 500, window: '1d' }) },
      {
        name: 'api',
        store: sqliteStore(database),
      },
    )
    limiter.consume('held', 500)
    const pages = database.pragma('page_count', { simple: true }) as number
    database.pragma(`max_page_count = ${pages + 6}`)
    const taken: string[] = []
    const error = errorOf(() => {
      for (let k = 0; k < 10_000; k++) {
        limiter.consume(`key:${k}`)
        taken.push(`key:${k}`)
      }
    })
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringContaining('the disk is full') })
    expect(taken.length).toBeGreaterThan(5)
    // Both limits of each key, or none.
    expect(file.store.size).toBe(2 * (taken.length + 1))
    expect(limiter.consume('held').allowed).toBe(false)
    expect(limiter.peek(`key:${taken.length}`).remaining).toBe(500)
    database.pragma('max_page_count = 100000')
    expect(limiter.consume(`key:${taken.length}`).remaining).toBe(499)
    for (const key of taken) expect(limiter.peek(key).remaining).toBe(499)
  })
})

describe('a damaged file', () => {
  test('is an error', () => {
    const path = join(dirname(file.path), 'damaged.db')
    const store = sqliteStore(path)
    const limiter = createLimiter(three, { name: 'api', store })
    for (let k = 0; k < 300; k++) limiter.consume(`key:${k}`)
    store.close()
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xff, 2_048, bytes.length - 1_024))
    const error = errorOf(() => {
      const damaged = sqliteStore(path)
      opened.push(damaged)
      const again = createLimiter(three, { name: 'api', store: damaged })
      for (let k = 0; k < 300; k++) again.consume(`key:${k}`)
    })
    expect(error).toMatchObject({ code: 'STORE', message: expect.stringContaining('damaged') })
  })

  test.each([
    ['text', Buffer.from('hello, this is no state of anything')],
    ['nothing', Buffer.alloc(0)],
    ['a state and a byte more', undefined],
  ])('one state that is %s is an error of its key alone, which reset mends', (_what, bytes) => {
    const limiter = createLimiter(three, { name: 'api', store: file.store })
    limiter.consume('u1')
    const other = connection()
    const id = 'api:u1:default'
    const now = other.prepare('SELECT state FROM sluice_states WHERE id = ?').pluck().get(id) as Buffer
    other.prepare('UPDATE sluice_states SET state = ? WHERE id = ?').run(bytes ?? Buffer.concat([now, Buffer.from([0])]), id)
    for (const call of [() => limiter.consume('u1'), () => limiter.peek('u1')]) {
      expect(errorOf(call)).toMatchObject({
        code: 'STORE',
        isolated: true,
        message: expect.stringContaining('limit \'default\' for key "u1"'),
      })
    }
    expect(limiter.consume('u2').remaining).toBe(2)
    limiter.reset('u1')
    expect(limiter.consume('u1').remaining).toBe(2)
  })

  test('another algorithm under the same name is an error, and keeps what was used', () => {
    createLimiter(three, { name: 'api', store: file.store }).consume('u1', 2)
    const bucket = createLimiter(tokenBucket({ capacity: 3, refill: '1/s' }), { name: 'api', store: file.store })
    expect(errorOf(() => bucket.consume('u1')).message).toContain('is a fixedWindow in this store, it cannot be a tokenBucket too')
    expect(createLimiter(three, { name: 'api', store: file.store }).peek('u1').remaining).toBe(1)
  })
})

describe('writes', () => {
  const digest = () => {
    const database = connection()
    const rows = database.prepare('SELECT * FROM sluice_states').raw().all()
    return createHash('sha256')
      .update(JSON.stringify([rows, database.pragma('data_version')]))
      .digest('hex')
  }

  test('is nothing for a question, a refusal, a refund of nothing, and a cost of 0', () => {
    const limiter = createLimiter(three, { name: 'api', store: file.store })
    limiter.consume('full', 3)
    const wal = () => readFileSync(`${file.path}-wal`).length
    const [before, size] = [digest(), wal()]
    for (let k = 0; k < 10; k++) {
      limiter.peek('full')
      limiter.peek('unknown')
      limiter.consume('full')
      limiter.consume('unknown', 0)
      limiter.refund('unknown', 1)
    }
    expect(digest()).toBe(before)
    expect(wal()).toBe(size)
  })

  test('keys of any text stay apart, and other limiters too', () => {
    const keys = [
      'a:b',
      'a',
      'b:a',
      'a\0b',
      'a\u0000',
      "a'; DROP TABLE sluice_states; --",
      'ключ',
      '🔑',
      'x'.repeat(1_024),
      'a:default',
      ':',
    ]
    const limiters = ['a', 'a.b', 'b'].map((name) => createLimiter({ default: three, a: three }, { name, store: file.store }))
    for (const limiter of limiters) for (const key of keys) expect(limiter.consume(key).remaining, key).toBe(2)
    expect(file.store.size).toBe(2 * limiters.length * keys.length)
    expect(file.store.inspect('a', 'default', 'a:b')).toMatchObject({ count: 1 })
    expect(file.store.inspect('a', 'default', 'nobody')).toBeUndefined()
  })

  test('idle rows leave as new ones come, whichever process brings them, and none that is in use', () => {
    const clock = fakeClock()
    const limits = { short: gcra({ rate: '1/s', burst: 1 }), long: fixedWindow({ limit: 5, window: '1d' }) }
    const options = { name: 'api', clock, maxAheadMs: 0 }
    const limiter = createLimiter(limits, { ...options, store: file.store })
    for (let k = 0; k < 200; k++) limiter.consume(`key:${k}`)
    clock.advanceMs(3_000)
    // Short-lived processes: each opens the file, brings one key and is gone.
    for (let k = 0; k < 210; k++) {
      const store = k % 10 === 0 ? sqliteStore(file.path) : file.store
      createLimiter(limits, { ...options, store }).consume(`later:${k}`)
      if (store !== file.store) store.close()
    }
    // The first ones' short limits are gone, their long ones are not.
    expect(file.store.size).toBe(2 * 210 + 200)
    for (let k = 0; k < 200; k++) expect(limiter.peek(`key:${k}`).parts.long.remaining).toBe(4)
  })

  test('a row that is idle does not leave while the step writes it that brings a new one', () => {
    const clock = fakeClock()
    const limits = { user: fixedWindow({ limit: 1, window: '1s' }), tenant: fixedWindow({ limit: 1, window: '1s' }) }
    const limiter = createLimiter(limits, { name: 'api', store: file.store, clock })
    for (let k = 0; k < 20; k++) {
      const admitted = [`a${k}`, `b${k}`].map((user) => limiter.tryAcquire({ user, tenant: 't' }))
      expect(admitted, `round ${k}`).toEqual([true, false])
      clock.advanceMs(60_000)
    }
  })

  test('no id has a NUL: some drivers read a text up to the first, and another row would be swept', () => {
    const limiter = createLimiter(three, { name: 'api', store: file.store })
    for (const key of ['a\u0000', 'a%00', 'a%2500']) limiter.consume(key)
    const ids = connection().prepare('SELECT id FROM sluice_states').pluck().all()
    expect(ids.sort()).toEqual(['api:a%00:default', 'api:a%2500:default', 'api:a%252500:default'])
  })

  test('goes from the log into the file in passing: a reader that stays makes the log longer, and it begins anew when the reader is gone', () => {
    const limiter = createLimiter(fixedWindow({ limit: 1_000_000, window: '1d', anchor: 'first' }), { name: 'api', store: file.store })
    const takes = (count: number) => {
      for (let k = 0; k < count; k++) limiter.consume(`key:${k % 50}`)
    }
    const log = () => statSync(`${file.path}-wal`).size
    const pages = 4_000 * (1_024 + 24)
    takes(9_000)
    expect(log()).toBeLessThan(1.1 * pages)
    const reader = connection()
    reader.exec('BEGIN')
    reader.prepare('SELECT count(*) FROM sluice_states').get()
    takes(9_000)
    expect(log()).toBeGreaterThan(2 * pages)
    reader.exec('COMMIT')
    takes(4_000)
    const longest = log()
    takes(13_000)
    expect(log()).toBe(longest)
    expect(limiter.peek('key:0').remaining).toBe(1_000_000 - (180 + 180 + 80 + 260))
  })

  test('has the write-ahead log beside it, and nothing is lost when the store is closed', () => {
    const limiter = createLimiter(three, { name: 'api', store: file.store })
    limiter.consume('u1')
    expect(existsSync(`${file.path}-wal`)).toBe(true)
    file.store.close()
    const again = sqliteStore(file.path)
    opened.push(again)
    expect(createLimiter(three, { name: 'api', store: again }).peek('u1').remaining).toBe(2)
  })
})
