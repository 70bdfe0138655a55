/**
 * A store of your own that answers later: states as bytes in a table that is far away. Put a
 * database in its place, and make `apply` one transaction. The driver decides batches. `asyncStore`
 * does the rest, as for Redis: it gathers the decisions of one turn of the event loop, repeats
 * refusals that still hold without asking, and sees to timeouts, circuit breaker and fallbacks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, fixedWindow, gcra } from 'sluice'
import { asyncStore, decide, load, type Part, readState, type Step, type StoreDriver, writeState } from 'sluice/store'
import { storeCases } from 'sluice/testing'

type Rows = Map<string, Uint8Array>

/** A stand-in for a database: each transaction takes a trip, and is alone with the rows. */
class Database {
  isDown = false
  transactions = 0
  readonly #rows: Rows = new Map()

  async transaction<T>(run: (rows: Rows) => T): Promise<T> {
    await sleep(1)
    if (this.isDown) throw new Error('connection refused')
    this.transactions += 1
    return run(this.#rows)
  }
}

class TableDriver implements StoreDriver {
  /** Other processes may use the same table. */
  readonly shared = true
  readonly #database: Database

  constructor(database: Database) {
    this.#database = database
  }

  async apply(steps: readonly Step[]): Promise<void> {
    await this.#database.transaction((rows) => {
      for (const step of steps) applyTo(rows, step)
    })
  }
}

function applyTo(rows: Rows, { op, scope, parts, aheadUs, ofUs, nowUs }: Step): void {
  const idOf = ({ limit, key }: Part) => JSON.stringify([scope.name, limit, key])
  if (op === 'forget') {
    for (const part of parts) rows.delete(idOf(part))
    return
  }
  for (const part of parts) {
    const bytes = rows.get(idOf(part))
    load(part, bytes && readState(bytes, 0))
  }
  // The database's clock, which all processes share; only tests give a time.
  const atUs = nowUs ?? Date.now() * 1000
  decide(op, parts, atUs, aheadUs, ofUs, true)
  for (const part of parts) {
    const { own, s, i, limit, verdict, changed } = part
    if (changed) rows.set(idOf(part), writeState(own, s, i, atUs + verdict.resetUs, limit))
  }
}

const database = new Database()
const limiter = createLimiter(
  { burst: gcra({ rate: '1/min', burst: 3 }), daily: fixedWindow({ limit: 1_000, window: '1d' }) },
  { name: 'api', store: asyncStore(new TableDriver(database), { denialCache: { maxMs: 10_000 } }), onStoreError: 'local' },
)
const users = ['ann', 'bob', 'eve']
await Promise.all(users.map((user) => limiter.consume(user, 3)))
console.log(`${users.length} decisions, ${database.transactions} transaction`)

const knocks = []
for (let k = 0; k < 10; k++) knocks.push(await limiter.consume('eve'))
console.log(`${knocks.length} refusals, ${database.transactions - 1} transaction`)

database.isDown = true
const { allowed, degraded } = await limiter.consume('joe')
console.log(`the store is ${limiter.health().state}: allowed ${allowed}, by the fallback: ${degraded}`)
limiter.close()

// The cases that every store must pass, for your own tests: each resolves, or rejects with what was
// wrong.
const cases = storeCases(() => asyncStore(new TableDriver(new Database())))
const results = await Promise.allSettled(cases.map(([, run]) => run()))
const failed = cases.filter((_, k) => results[k]?.status === 'rejected').map(([name]) => name)
console.log(failed.length === 0 ? 'all cases pass' : failed)

// prints:
// 3 decisions, 1 transaction
// 10 refusals, 1 transaction
// the store is down: allowed true, by the fallback: true
// all cases pass
