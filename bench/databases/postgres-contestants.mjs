// The contestants on Postgres. Each has a pool of ten connections of its own, and a table that is
// written to the log.
import pg from 'pg'

const PERMITS = 1_000_000
const PERIOD_S = 3600

function openPool(url) {
  const pool = new pg.Pool({ connectionString: url, max: 10 })
  // When the server is gone at the end.
  pool.on('error', () => undefined)
  return pool
}

async function sluice(url) {
  const { createLimiter, fixedWindow } = await import('../../dist/index.js')
  const { postgresStore } = await import('../../dist/stores/postgres/index.js')
  const store = postgresStore(openPool(url), { migrate: true })
  const limiter = createLimiter(fixedWindow({ limit: PERMITS, window: `${PERIOD_S}s` }), { name: 'bench', store })
  return (key) => limiter.consume(key)
}

async function rateLimiterFlexible(url) {
  const { RateLimiterPostgres } = (await import('rate-limiter-flexible')).default
  const limiter = await new Promise((resolve, reject) => {
    const options = { storeClient: openPool(url), tableName: 'flexible', points: PERMITS, duration: PERIOD_S }
    const made = new RateLimiterPostgres(options, (error) => (error ? reject(error) : resolve(made)))
  })
  return (key) => limiter.consume(key)
}

/** The least that counts: one statement, on the server's clock, with a row as wide as Sluice's. */
async function plainUpsert(url) {
  const pool = openPool(url)
  await pool.query(`CREATE TABLE plain (id text PRIMARY KEY, version bigint NOT NULL, state bytea NOT NULL, idle_us bigint NOT NULL)`)
  const state = Buffer.alloc(32)
  const text = `INSERT INTO plain VALUES ($1, 1, $2, extract(epoch FROM clock_timestamp()) * 1000000)
ON CONFLICT (id) DO UPDATE SET version = plain.version + 1, state = $2, idle_us = excluded.idle_us RETURNING version, idle_us`
  return async (key) => (await pool.query(text, [`bench:${key}:default`, state])).rows[0].version <= PERMITS
}

export const CONTESTANTS = { Sluice: sluice, 'rate-limiter-flexible': rateLimiterFlexible, 'one upsert': plainUpsert }

/** All of them, ready to be asked. */
export async function openAll(url) {
  const entries = Object.entries(CONTESTANTS).map(async ([name, open]) => [name, await open(url)])
  return Object.fromEntries(await Promise.all(entries))
}
