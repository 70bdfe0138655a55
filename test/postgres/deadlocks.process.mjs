// One process of the deadlock soak: decisions by three limits on keys in any order, from several
// stores, and a report of what was charged where, of the errors of the server, and of the rows that
// others had written first.
import pg from 'pg'
import { createLimiter, fixedWindow } from '../../dist/index.js'
import { postgresStore } from '../../dist/stores/postgres/index.js'

const { url, table, seed, calls, users, tenants, regions, limit } = JSON.parse(process.argv[2])
const STORES = 2
const CALLERS = 8

/** A number from 0 to below 1, by the seed: a linear congruence is enough for an order. */
let state = seed
function chance() {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 2 ** 32
}
const one = (prefix, count) => `${prefix}${Math.floor(chance() * count)}`

const report = { errors: [], lost: 0, charged: {}, refused: 0 }
const year = fixedWindow({ limit, window: '366d' })
/**
 * Three limits that are counted in the end, and one whose rows are idle at once, so that they are
 * swept while others are written.
 */
const limits = { user: year, tenant: year, region: year, moment: fixedWindow({ limit: 1_000, window: '1ms' }) }

function limiterOn(pool) {
  const query = async (text, values) => {
    try {
      const result = await pool.query(text, values)
      if (text.includes('_swap')) report.lost += result.rows.length
      return result
    } catch (error) {
      report.errors.push(error.code)
      throw error
    }
  }
  const store = postgresStore({ query }, { table, denialCache: false, maxBatch: 4 })
  return createLimiter(limits, { name: 'soak', store, storeTimeoutMs: 60_000 })
}

async function call(limiter) {
  for (let k = 0; k < calls; k++) {
    const key = { user: one('u', users), tenant: one('t', tenants), region: one('r', regions), moment: one('m', 1e9) }
    // Rows that come and go: nobody counts those.
    if (chance() < 0.1) await limiter.reset({ user: one('gone', 3), tenant: one('gone', 3), region: one('gone', 3), moment: key.moment })
    if (chance() < 0.1) await limiter.consume({ user: one('gone', 3), tenant: one('gone', 3), region: one('gone', 3), moment: key.moment })
    const { allowed } = await limiter.consume(key)
    if (!allowed) report.refused += 1
    else for (const name of ['user', 'tenant', 'region']) report.charged[key[name]] = (report.charged[key[name]] ?? 0) + 1
  }
}

const pools = Array.from({ length: STORES }, () => new pg.Pool({ connectionString: url, max: 4 }))
const limiters = pools.map(limiterOn)
await limiters[0].peek('u')
process.send('ready')
await new Promise((resolve) => process.once('message', resolve))
await Promise.all(limiters.flatMap((limiter) => Array.from({ length: CALLERS }, () => call(limiter))))
for (const pool of pools) await pool.end()
process.send(report, () => process.disconnect())
