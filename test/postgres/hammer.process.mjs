// One process of the race: several pools that take from one key as fast as they can, and a report
// of every decision.
import pg from 'pg'
import { limitsFrom } from '../../dist/config/index.js'
import { createLimiter } from '../../dist/index.js'
import { postgresStore } from '../../dist/stores/postgres/index.js'

const { urls, table, limits, key, connections, calls, costs } = JSON.parse(process.argv[2])

/** Some directly, some through pgbouncer. */
async function hammer(seed) {
  const pool = new pg.Pool({ connectionString: urls[seed % urls.length], max: 2 })
  const store = postgresStore(pool, { table, migrate: true })
  const limiter = createLimiter(limitsFrom(limits), { name: 'race', store, maxAheadMs: 0, storeTimeoutMs: 60_000 })
  await limiter.peek(key)
  process.send('ready')
  await go
  const decisions = []
  for (let call = 0; call < calls; call++) {
    const cost = costs[(seed + call) % costs.length]
    const { atMs, allowed } = await limiter.consume(key, cost)
    decisions.push([Math.round(atMs * 1000), cost, allowed])
  }
  await pool.end()
  return decisions
}

const go = new Promise((resolve) => process.once('message', resolve))
const decisions = (await Promise.all(Array.from({ length: connections }, (_, k) => hammer(k)))).flat()
process.send(decisions, () => process.disconnect())
