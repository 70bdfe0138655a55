/** Law 7: same tape, same decisions, same decoded state, on every store. The memory store stands beside the oracle in the tests of the laws. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EncodedState } from '../../src/algorithms/algorithm.ts'
import { type MemoryStore, memoryStore } from '../../src/stores/memory/memory-store.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { keyOfPart } from '../../src/stores/redis/keys.ts'
import { READ_STRING } from '../../src/stores/redis/script.ts'
import { type SharedStore, sharedStore } from '../../src/stores/shared-memory/index.ts'
import type { Part, Scope } from '../../src/stores/store.ts'
import type { OracleKind } from '../../src/testing/oracle.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { sectionOf } from '../support/sections.ts'
import { ruleOf } from './run-trace.ts'
import { type Decoded, decoded, Playback, type Recorded, record } from './tape.ts'
import { CALLS_PER_TRACE, SEED, traceCount } from './trace.ts'

const LIMITER = 'agree'

/** One limit alone, and two on one key that are decided as one. */
const MIXES: readonly { readonly mix: string; readonly kinds: readonly OracleKind[] }[] = [
  { mix: 'gcra', kinds: ['gcra'] },
  { mix: 'token bucket', kinds: ['tokenBucket'] },
  { mix: 'leaky bucket', kinds: ['leakyBucket'] },
  { mix: 'gcra and token bucket on one key', kinds: ['gcra', 'tokenBucket'] },
]

/** How many traces are on their way to Redis at one time: it answers them interleaved, each on a key of its own. */
const AT_ONCE = 100

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

describe.each(MIXES)('on every step of every tape of $mix', ({ mix, kinds }) => {
  test('shared memory answers and holds what memory does', () => {
    const traces = traceCount(kinds.length === 1 ? 800 : 400)
    const store = sharedStore({ maxKeys: traces })
    // Another store on the same memory reads what is held, as another thread would.
    const other = sharedStore(store.handle)
    const steps = onEveryTape(traces, kinds, (tape, key) => playShared(store, other, tape, key))
    console.log(`memory and shared memory agree on ${steps} steps of ${mix} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('Redis answers and holds what memory does', async () => {
    const traces = traceCount(kinds.length === 1 ? 200 : 120)
    let steps = 0
    for (let first = 0; first < traces; first += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, traces - first) }, (_, k) => SEED + first + k)
      const played = await Promise.all(seeds.map((seed) => playRedis(redis, seed, kinds)))
      steps += played.reduce((sum, each) => sum + each, 0)
    }
    console.log(`memory and Redis agree on ${steps} steps of ${mix} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })
})

describe.each([
  { where: 'memory', most: 800, open: () => memoryStore() },
  { where: 'shared memory', most: 200, open: () => sharedStore({ maxKeys: 10, maxThreads: 1 }) },
])('the short way of $where', ({ where, most, open }) => {
  test.each(['gcra', 'tokenBucket', 'leakyBucket'] as const)('takes when the long way does and leaves the same: %s', (kind) => {
    const traces = traceCount(most)
    let short = 0
    const steps = onEveryTape(traces, [kind], (tape, key) => {
      short += playShortWay(open(), tape, key)
    })
    console.log(`the short way of ${where} agrees on ${short} of ${steps} steps of ${kind} (${traces} traces)`)
    expect(short).toBeGreaterThan(steps / 5)
  })
})

test('no key in Redis lives for ever: its time to live is the time until idle, rounded up', async () => {
  const store = redisStore(redis, { prefix: 'agree-ttl' })
  for (const kind of ['gcra', 'tokenBucket', 'leakyBucket'] as const) {
    const rule = ruleOf(kind, { capacity: 10, permits: 3, periodUs: 20_000_000 }, 0)
    const scope: Scope = { name: LIMITER, limits: [{ name: kind, rule }] }
    const part = { limit: kind, rule, key: 'k', cost: 4 }
    const [verdict] = await store.apply({ op: 'take', scope, parts: [part], aheadUs: -1, ofUs: -1, nowUs: undefined })
    const leftMs = Number(await redis.send(['PTTL', keyOfPart({ prefix: 'agree-ttl', hashTag: undefined }, LIMITER, part)]))
    expect(verdict?.resetUs).toBe(26_666_667)
    // Rounded up to the millisecond, by gcra to 2^20 µs of the clock.
    expect(leftMs).toBeLessThanOrEqual(kind === 'gcra' ? 26_667 + 1_049 : 26_667)
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

function playShared(store: SharedStore, other: SharedStore, tape: readonly Recorded[], key: string): void {
  const playback = new Playback()
  for (const recorded of tape) {
    const answers = store.apply(playback.stepFor(recorded))
    playback.compare(recorded, answers, heldIn(other, recorded.step.scope, key))
  }
}

function heldIn(store: MemoryStore | SharedStore, scope: Scope, key: string): Decoded[] {
  store.open?.(scope, () => 0)
  return scope.limits.map(({ name, rule }) => decoded(rule.algorithm, store.inspect(LIMITER, name, key)))
}

/** Ordinary takes go the short way where there is one, all else the long one. Tells how many went the short way. */
function playShortWay(store: MemoryStore | SharedStore, tape: readonly Recorded[], key: string): number {
  const playback = new Playback()
  let short = 0
  for (const recorded of tape) {
    const { step, verdicts, held } = recorded
    const [{ cost }] = step.parts as [Part]
    const taken =
      step.op === 'take' && step.aheadUs < 0 ? store.lane?.(step.scope, () => step.nowUs as number).tryTake(key, cost) : undefined
    const answers = taken === undefined ? store.apply(playback.stepFor(recorded)) : verdicts
    const states = heldIn(store, step.scope, key)
    playback.compare(recorded, answers, states)
    if (taken === undefined) continue
    short += 1
    if (taken !== (verdicts[0]?.outcome === 'allowed'))
      throw new Error(`the short way says ${taken}: ${JSON.stringify([recorded.call, held])}`)
  }
  return short
}

/** Plays one tape step by step: the next is sent when the one before is answered and its states are read. */
async function playRedis(client: TestRedis, seed: number, kinds: readonly OracleKind[]): Promise<number> {
  const prefix = `agree-${kinds.join('-')}`
  const key = `trace:${seed}`
  const store = redisStore(client, { prefix })
  const playback = new Playback()
  const tape = record(seed, kinds, LIMITER, key)
  for (const recorded of tape) {
    const answers = await store.apply(playback.stepFor(recorded))
    const states = await Promise.all(recorded.step.scope.limits.map((limit) => heldInRedis(client, prefix, limit, key)))
    playback.compare(recorded, answers, states)
  }
  return tape.length
}

/** Reads a state the way `sluice inspect` does. */
async function heldInRedis(client: TestRedis, prefix: string, { name, rule }: Scope['limits'][number], key: string): Promise<Decoded> {
  const redisName = keyOfPart({ prefix, hashTag: undefined }, LIMITER, { key, limit: name, rule })
  const state =
    rule.algorithm.type === 'gcra'
      ? sectionOf(name, await client.send(['EVAL', READ_STRING, '1', redisName]))
      : fieldsOf(await client.send(['HGETALL', redisName]))
  return decoded(rule.algorithm, (state ?? undefined) as EncodedState | undefined)
}

/** A hash comes as an object or, from an older protocol, as a flat list of names and values; one without fields is no hash at all. */
function fieldsOf(reply: unknown): EncodedState | undefined {
  const entries = Array.isArray(reply)
    ? reply.flatMap((name, k) => (k % 2 === 0 ? [[name, reply[k + 1]]] : []))
    : Object.entries(reply ?? {})
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
