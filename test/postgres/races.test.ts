/**
 * Several processes take from one key of a Postgres at once, half of their connections through
 * pgbouncer in transaction mode.
 */
import { afterAll, beforeAll, inject, test } from 'vitest'
import { type Pgbouncer, startPgbouncer } from '../../scripts/postgres-server.mjs'
import { ownTable } from '../support/postgres-client.ts'
import { expectExactRace, RACES } from '../support/race.ts'

/** Each decision is a commit. */
const PACE = { capacity: 60, perSecond: 20, windowMs: 5_000, calls: 30, least: 30 }
const HAMMER = new URL('./hammer.process.mjs', import.meta.url)
/**
 * What is particular to a store is how it writes, not what: one small state, one that grows, and
 * several rows at once.
 */
const OURS = RACES.filter(([name]) => ['gcra', 'slidingLog', 'all six'].includes(name))

let pgbouncer: Pgbouncer
beforeAll(async () => {
  const { hostname, port } = new URL(inject('postgresUrl'))
  pgbouncer = await startPgbouncer({ host: hostname, port: Number(port) })
})
afterAll(() => pgbouncer.remove())

test.each(OURS)('%s: every admission is right, and nobody was refused for nothing', async (_, names) => {
  const { table, close } = ownTable()
  await expectExactRace(HAMMER, { urls: [inject('postgresUrl'), pgbouncer.url], table }, names, PACE)
  await close()
})
