/**
 * Law 7: same tape, same decisions, same state, on every store. The tape is recorded on the least
 * of stores, which stands beside the oracle in the tests of the laws.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/stores/memory/memory-store.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { redisKey } from '../../src/stores/redis/keys.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { sqliteStore } from '../../src/stores/sqlite/index.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { openSqlite } from '../support/stores.ts'
import { playRedis, playSync, playUntold } from './play.ts'
import { ruleOf } from './run-trace.ts'
import { type Recorded, record } from './tape.ts'
import { CALLS_PER_TRACE, SEED, traceCount } from './trace.ts'

const LIMITER = 'agree'

/** One limit alone, and two on one key that are decided as one. */
const MIXES: readonly { readonly mix: string; readonly kinds: readonly OracleKind[] }[] = [
  { mix: 'gcra', kinds: ['gcra'] },
  { mix: 'token bucket', kinds: ['tokenBucket'] },
  { mix: 'leaky bucket', kinds: ['leakyBucket'] },
  { mix: 'gcra and token bucket on one key', kinds: ['gcra', 'tokenBucket'] },
]

/**
 * How many traces are on their way to Redis at one time: it answers them interleaved, each on a key
 * of its own.
 */
const AT_ONCE = 100

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

describe.each(MIXES)('on every step of every tape of $mix', ({ mix, kinds }) => {
  test('memory answers and holds what it should', () => {
    const traces = traceCount(kinds.length === 1 ? 300 : 150)
    const steps = onEveryTape(traces, kinds, (tape, key) => {
      const store = memoryStore()
      playSync(store, store, tape, LIMITER, key)
    })
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('shared memory answers and holds what it should', () => {
    const traces = traceCount(kinds.length === 1 ? 300 : 150)
    const store = sharedStore({ maxKeys: traces })
    // Another store on the same memory reads what is held, as another thread would.
    const other = sharedStore(store.handle)
    const steps = onEveryTape(traces, kinds, (tape, key) => playSync(store, other, tape, LIMITER, key))
    console.log(`shared memory agrees on ${steps} steps of ${mix} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('SQLite answers and holds what it should', () => {
    const traces = traceCount(20)
    const { store, path, close } = openSqlite()
    // Another store on the same file reads what is held, as another process would.
    const other = sqliteStore(path)
    const steps = onEveryTape(traces, kinds, (tape, key) => playSync(store, other, tape, LIMITER, key))
    other.close()
    close()
    console.log(`SQLite agrees on ${steps} steps of ${mix} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('Redis answers and holds what it should', async () => {
    const traces = traceCount(kinds.length === 1 ? 70 : 40)
    const prefix = `agree-${kinds.join('-')}`
    // Of several states of a key Redis forgets what is idle, and a clock that steps back would find
    // it gone.
    const forwardOnly = kinds.length > 1
    let steps = 0
    for (let first = 0; first < traces; first += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, traces - first) }, (_, k) => SEED + first + k)
      const played = await Promise.all(
        seeds.map((seed) =>
          playRedis(redis, prefix, record(seed, kinds, LIMITER, `trace:${seed}`, { forwardOnly }), LIMITER, `trace:${seed}`),
        ),
      )
      steps += played.reduce((sum, each) => sum + each, 0)
    }
    console.log(`Redis agrees on ${steps} steps of ${mix} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })
})

describe.each([
  { where: 'memory', most: 400, open: () => memoryStore() },
  { where: 'shared memory', most: 200, open: () => sharedStore({ maxKeys: 10, maxThreads: 1 }) },
])('yes or no from $where', ({ most, open }) => {
  test.each(['gcra', 'tokenBucket', 'leakyBucket'] as const)('is what a told step says, and leaves the same: %s', (kind) => {
    let untold = 0
    const steps = onEveryTape(traceCount(most), [kind], (tape, key) => {
      untold += playUntold(open(), tape, LIMITER, key)
    })
    expect(untold).toBeGreaterThan(steps / 5)
  })
})

test('no key in Redis lives for ever: it lives until it is idle, rounded up', async () => {
  const store = redisStore(redis, { prefix: 'agree-ttl' })
  for (const kind of ['gcra', 'tokenBucket', 'leakyBucket'] as const) {
    const rule = ruleOf(kind, { capacity: 10, permits: 3, periodUs: 20_000_000 })
    const scope: Scope = { name: LIMITER, limits: [{ name: kind, rule }] }
    const part = new Part(kind, rule, kind, 4)
    await store.driver.apply([new Step('take', scope, [part], -1, -1, undefined)])
    const leftMs = Number(await redis.send(['PTTL', redisKey({ prefix: 'agree-ttl', hashTag: undefined }, LIMITER, kind)]))
    expect(part.verdict.resetUs).toBe(26_666_667)
    // By an eighth of 66.7 s.
    expect(leftMs).toBeLessThanOrEqual(26_667 + 8_334)
    expect(leftMs).toBeGreaterThan(16_667)
  }
})

function onEveryTape(traces: number, kinds: readonly OracleKind[], play: (tape: readonly Recorded[], key: string) => void): number {
  let steps = 0
  for (let k = 0; k < traces; k++) {
    const key = `trace:${SEED + k}`
    const tape = record(SEED + k, kinds, LIMITER, key)
    play(tape, key)
    steps += tape.length
  }
  return steps
}
