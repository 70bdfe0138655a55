/**
 * Law 7 on Postgres: random tapes, recorded on the least of stores, get the same answers and leave
 * the same rows.
 */
import { afterAll, describe, expect, test } from 'vitest'
import type { AsyncStore } from '../../src/index.ts'
import { inspectRows } from '../../src/stores/postgres/inspect.ts'
import type { Failures } from '../../src/stores/store.ts'
import { compare, type Recorded, record, recordTrace, shownFields, stepFor } from '../model/tape.ts'
import { CALLS_PER_TRACE, SEED, traceCount } from '../model/trace.ts'
import { WINDOW_KINDS, windowScopes, windowTrace } from '../model/window-trace.ts'
import { ownTable, type TestTable } from '../support/postgres-client.ts'

const LIMITER = 'agree'

type Recording = (seed: number, key: string) => Recorded[]

/** One limit alone, and two on one key, whose rows are written together or not at all. */
const RECORDINGS: Readonly<Record<string, Recording>> = {
  gcra: (seed, key) => record(seed, ['gcra'], LIMITER, key),
  tokenBucket: (seed, key) => record(seed, ['tokenBucket'], LIMITER, key),
  leakyBucket: (seed, key) => record(seed, ['leakyBucket'], LIMITER, key),
  'gcra and tokenBucket on one key': (seed, key) => record(seed, ['gcra', 'tokenBucket'], LIMITER, key),
  ...Object.fromEntries(
    WINDOW_KINDS.map((kind): [string, Recording] => [
      kind,
      (seed, key) => {
        const trace = windowTrace(kind, seed)
        return recordTrace(trace, windowScopes(trace, LIMITER), key)
      },
    ]),
  ),
}

const table = ownTable()
afterAll(() => table.close())

describe.each(Object.keys(RECORDINGS))('on every step of every tape of %s', (name) => {
  test('Postgres answers and holds what it should', async () => {
    const traces = traceCount(12)
    const store = table.store()
    // Each trace has a key of its own, so those that are under way at one time travel in the same
    // calls.
    const played = await Promise.all(
      Array.from({ length: traces }, (_, k) => {
        const key = `${name}:${SEED + k}`
        return play(store, table, (RECORDINGS[name] as Recording)(SEED + k, key), key)
      }),
    )
    expect(played.reduce((sum, steps) => sum + steps, 0)).toBe(traces * CALLS_PER_TRACE)
  })
})

/**
 * The next step is sent when the one before is answered and its rows are read, the way
 * `sluice inspect` does.
 */
async function play(store: AsyncStore, { pool, table }: TestTable, tape: readonly Recorded[], key: string): Promise<number> {
  for (const recorded of tape) {
    const step = stepFor(recorded)
    const [failure] = (await store.driver.apply([step])) as Failures
    if (failure !== undefined) throw failure
    const answers = step.op === 'forget' ? [] : step.parts.map(({ verdict }) => ({ ...verdict }))
    const rows = await inspectRows(pool, table, LIMITER, key)
    const states = recorded.step.scope.limits.map(({ name }) => {
      const found = rows.find(({ policy = 'default' }) => policy === name)
      return { fields: shownFields(found?.state), numbers: found?.numbers }
    })
    compare(recorded, answers, states)
  }
  return tape.length
}
