// One process on a file whose disk is slow: takes from one key when it is told to, so often, and
// reports what it was told, and how long each call stood still.
import Database from 'better-sqlite3'
import { createLimiter, fixedWindow } from '../../dist/index.js'
import { sqliteStore } from '../../dist/stores/sqlite/index.js'

const { path, limit, synchronous, busyTimeoutMs } = JSON.parse(process.argv[2])

/** With `synchronous` a database of the user's own, otherwise a file of the store's. */
function opened() {
  if (synchronous === undefined) return sqliteStore(path, { busyTimeoutMs })
  const database = new Database(path)
  database.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}`)
  return sqliteStore(database, { busyTimeoutMs })
}

const limiter = createLimiter(fixedWindow({ limit, window: '366d', anchor: 'first' }), { name: 'api', store: opened() })

function called() {
  const fromMs = performance.now()
  try {
    const { allowed } = limiter.consume('k')
    return { allowed, tookMs: performance.now() - fromMs }
  } catch ({ code }) {
    return { code, tookMs: performance.now() - fromMs }
  }
}

process.on('message', (calls) => process.send(Array.from({ length: calls }, called)))
process.send('ready')
