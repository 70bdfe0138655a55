/**
 * Law 7 for the windows: same tape, same decisions, same state, on every store. The levels are in
 * stores-agree.test.ts.
 */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import type { WindowKind } from '../../src/testing/window-oracle.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { openSqlite } from '../support/stores.ts'
import { playRedis, playSync, playUntold } from './play.ts'
import { type Recorded, recordTrace } from './tape.ts'
import { CALLS_PER_TRACE, SEED, traceCount } from './trace.ts'
import { WINDOW_KINDS, windowScopes, windowTrace } from './window-trace.ts'

const LIMITER = 'agree'
/**
 * The largest state of a trace, with its figures: 100 slots, and a log of 2,000 that is in debt.
 */
const MOST_WORDS: Readonly<Record<WindowKind, number>> = { fixedWindow: 10, slidingWindow: 110, slidingLog: 10_012 }
/**
 * How many traces are on their way to Redis at one time: it answers them interleaved, each on a key
 * of its own.
 */
const AT_ONCE = 50

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

describe.each(WINDOW_KINDS)('on every step of every tape of %s', (kind) => {
  test('memory answers and holds what it should', () => {
    const traces = traceCount(100)
    const steps = onEveryTape(traces, kind, (tape, key) => {
      const store = memoryStore()
      playSync(store, store, tape, LIMITER, key)
    })
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('shared memory answers and holds what it should', () => {
    const traces = traceCount(100)
    const store = sharedStore({ maxKeys: traces, maxThreads: 1, recordWords: MOST_WORDS[kind] })
    // Another store on the same memory reads what is held, as another thread would.
    const other = sharedStore(store.handle)
    const steps = onEveryTape(traces, kind, (tape, key) => playSync(store, other, tape, LIMITER, key))
    console.log(`shared memory agrees on ${steps} steps of ${kind} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('SQLite answers and holds what it should', () => {
    const traces = traceCount(12)
    const { store, path, close } = openSqlite()
    // Another store on the same file reads what is held, as another process would.
    const other = sqliteStore(path)
    const steps = onEveryTape(traces, kind, (tape, key) => playSync(store, other, tape, LIMITER, key))
    other.close()
    close()
    console.log(`SQLite agrees on ${steps} steps of ${kind} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('Redis answers and holds what it should', async () => {
    const traces = traceCount(80)
    let steps = 0
    for (let first = 0; first < traces; first += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, traces - first) }, (_, k) => SEED + first + k)
      const played = await Promise.all(
        seeds.map((seed) => playRedis(redis, `agree-${kind}`, recorded(kind, seed, `trace:${seed}`), LIMITER, `trace:${seed}`)),
      )
      steps += played.reduce((sum, each) => sum + each, 0)
    }
    console.log(`Redis agrees on ${steps} steps of ${kind} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test.each(['memory', 'shared memory'] as const)('yes or no from %s is what a told step says, and leaves the same', (where) => {
    const traces = traceCount(where === 'memory' ? 150 : 60)
    const shared = sharedStore({ maxKeys: traces, maxThreads: 1, recordWords: MOST_WORDS[kind] })
    let untold = 0
    const steps = onEveryTape(traces, kind, (tape, key) => {
      untold += playUntold(where === 'memory' ? memoryStore() : shared, tape, LIMITER, key)
    })
    expect(untold).toBeGreaterThan(steps / 5)
  })
})

function onEveryTape(traces: number, kind: WindowKind, play: (tape: readonly Recorded[], key: string) => void): number {
  let steps = 0
  for (let k = 0; k < traces; k++) {
    const key = `trace:${SEED + k}`
    const tape = recorded(kind, SEED + k, key)
    play(tape, key)
    steps += tape.length
  }
  return steps
}

function recorded(kind: WindowKind, seed: number, key: string): Recorded[] {
  const trace = windowTrace(kind, seed)
  return recordTrace(trace, windowScopes(trace, LIMITER), key)
}
