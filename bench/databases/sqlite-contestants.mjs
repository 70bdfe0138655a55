// Limiters on a SQLite file, each made on a path: `make(path)` gives `call(key)`, which answers
// whether it was allowed, at once or later, and `fill(key)`, after which the key is refused.
import Database from 'better-sqlite3'
import flexible from 'rate-limiter-flexible'
import { createLimiter, fixedWindow } from '../../dist/index.js'
import { sqliteStore } from '../../dist/stores/sqlite/index.js'

export const LIMIT = 1_000_000
const WINDOW_S = 3_600

/**
 * The settings of the file that Sluice chooses, for the others too. Sluice copies the log itself,
 * as often as this has SQLite do it.
 */
const SAME = 'PRAGMA page_size = 1024; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 4000'

export const CONTESTANTS = {
  async sluice(path) {
    const store = sqliteStore(path, { busyTimeoutMs: 30_000 })
    const limiter = createLimiter(fixedWindow({ limit: LIMIT, window: `${WINDOW_S}s`, anchor: 'first' }), { name: 'bench', store })
    return { call: (key) => limiter.consume(key).allowed, fill: (key) => limiter.consume(key, LIMIT), close: () => store.close() }
  },
  /** The floor: a prepared statement that only counts, without a limiter. */
  async floor(path) {
    const database = new Database(path, { timeout: 30_000 })
    database.exec(`${SAME}; CREATE TABLE IF NOT EXISTS counts (key TEXT PRIMARY KEY, count INTEGER, expire INTEGER) WITHOUT ROWID`)
    const add = database.prepare(
      'INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET count = count + excluded.count RETURNING count',
    )
    const count = (key, cost) => add.get(key, cost, Date.now() + WINDOW_S * 1_000).count <= LIMIT
    return { call: (key) => count(key, 1), fill: (key) => count(key, LIMIT), close: () => database.close() }
  },
  'rate-limiter-flexible': (path) => flexibleOn(path, SAME),
  /** As its documentation sets it up: the settings of SQLite. */
  'rate-limiter-flexible, settings of SQLite': (path) => flexibleOn(path, ''),
}

async function flexibleOn(path, settings) {
  const database = new Database(path, { timeout: 30_000 })
  database.exec(settings)
  const limiter = await new Promise((resolve, reject) => {
    const options = { storeClient: database, storeType: 'better-sqlite3', tableName: 'limits', points: LIMIT, duration: WINDOW_S }
    const made = new flexible.RateLimiterSQLite(options, (error) => (error ? reject(error) : resolve(made)))
  })
  const consume = (key, points) =>
    limiter.consume(key, points).then(
      () => true,
      (refusal) => {
        if (refusal instanceof Error) throw refusal
        return false
      },
    )
  return { call: (key) => consume(key, 1), fill: (key) => consume(key, LIMIT), close: () => database.close() }
}
