/**
 * A real PostgreSQL whose clock is set while it runs, by libfaketime: back by moments and by days,
 * and forward again. Nothing else goes by that clock, so what callers see is what the store makes
 * of it.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { fakeTimeLibrary, type PostgresWithClock, startPostgresWithClock } from '../../scripts/postgres-server.mjs'
import { createLimiter, fixedWindow, gcra, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { postgresMigration } from '../../src/stores/postgres/index.ts'
import { ownTable, type TestTable } from '../support/postgres-client.ts'

const isMissing = fakeTimeLibrary() === undefined
if (isMissing) console.log('The clock of PostgreSQL is not set back: there is no libfaketime (on Debian and Ubuntu npm test installs it)')

/** An hour, and a sub-window more where there are ten. */
const LONGEST_MS = 1.1 * 3_600_000
const DAY_S = 86_400
const CAPACITY = 20
/** An hour from empty to full, or a window. */
const LIMITS: Readonly<Record<string, Limit>> = {
  gcra: gcra({ rate: `${CAPACITY}/h`, burst: CAPACITY }),
  tokenBucket: tokenBucket({ refill: `${CAPACITY}/h`, capacity: CAPACITY }),
  leakyBucket: leakyBucket({ leak: `${CAPACITY}/h`, capacity: CAPACITY }),
  // Not by the hour of the day: that may end while the test runs.
  fixedWindow: fixedWindow({ limit: CAPACITY, window: '1h', anchor: 'first' }),
  slidingWindow: slidingWindow({ limit: CAPACITY, window: '1h' }),
  slidingLog: slidingLog({ limit: CAPACITY, window: '1h' }),
}

describe.skipIf(isMissing)('the clock of the server', () => {
  let server: PostgresWithClock
  let owned: TestTable
  beforeAll(async () => {
    server = await startPostgresWithClock({ fsync: 'off' })
    owned = ownTable(server.url)
    await owned.pool.query(postgresMigration({ table: owned.table }))
  })
  afterAll(async () => {
    await owned.close()
    await server.remove()
  })
  beforeEach(() => server.setClock(0))

  const limiterOf = (type: string) => {
    const store = owned.store({ migrate: false, denialCache: false })
    return createLimiter(LIMITS[type] as Limit, { name: type, maxAheadMs: 0, store, storeTimeoutMs: 60_000 })
  }

  test.each(Object.keys(LIMITS))('%s: set back it frees nothing, and holds nobody for longer than a window', async (type) => {
    const limiter = limiterOf(type)
    const { atMs } = await limiter.consume('u', CAPACITY)
    server.setClock(-30)
    expect((await limiter.peek('other')).atMs).toBeLessThan(atMs)
    expect(await limiter.consume('u')).toMatchObject({ allowed: false, remaining: 0 })
    server.setClock(-3 * DAY_S)
    const held = await limiter.consume('u')
    expect(held).toMatchObject({ allowed: false, remaining: 0 })
    expect(held.resetAfterMs).toBeLessThanOrEqual(LONGEST_MS)
    // What is idle by then is as new, days before it was written.
    server.setClock(-3 * DAY_S + 2 * 3_600)
    expect(await limiter.consume('u')).toMatchObject({ allowed: true, remaining: CAPACITY - 1 })
  })

  test('stepped to and fro under load it gives out each permit once', async () => {
    let isOver = false
    const counts = Object.keys(LIMITS).map(async (type) => {
      const limiters = [limiterOf(type), limiterOf(type)]
      let admitted = 0
      let refused = 0
      while (!isOver || refused === 0) {
        const answers = await Promise.all(limiters.map((limiter) => limiter.consume('hot')))
        admitted += answers.filter(({ allowed }) => allowed).length
        refused += answers.filter(({ allowed }) => !allowed).length
      }
      return [type, admitted]
    })
    const back: number[] = []
    const seconds = async () => Number((await owned.pool.query('SELECT extract(epoch FROM clock_timestamp()) AS now')).rows[0].now)
    for (let step = 0; step < 40; step++) {
      const before = await seconds()
      server.setClock(-((step * 7) % 5))
      if ((await seconds()) < before) back.push(step)
    }
    isOver = true
    expect(await Promise.all(counts)).toEqual(Object.keys(LIMITS).map((type) => [type, CAPACITY]))
    expect(back.length).toBeGreaterThan(10)
  })
})
