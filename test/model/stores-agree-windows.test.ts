/** Law 7 for the windows: same tape, same decisions, same decoded state, on every store. Leaky bucket is in stores-agree.test.ts. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Algorithm, type EncodedState, figuresNamed } from '../../src/algorithms/algorithm.ts'
import { type MemoryStore, memoryStore } from '../../src/stores/memory/memory-store.ts'
import { redisStore } from '../../src/stores/redis/index.ts'
import { keyOfPart } from '../../src/stores/redis/keys.ts'
import { READ_STRING } from '../../src/stores/redis/script.ts'
import { type SharedStore, sharedStore } from '../../src/stores/shared-memory/index.ts'
import type { Part, Scope } from '../../src/stores/store.ts'
import type { WindowKind } from '../../src/testing/window-oracle.ts'
import { decode } from '../support/decode.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { sectionOf } from '../support/sections.ts'
import { type Decoded, Playback, type Recorded, recordTrace } from './tape.ts'
import { CALLS_PER_TRACE, SEED, traceCount } from './trace.ts'
import { WINDOW_KINDS, windowScopes, windowTrace } from './window-trace.ts'

const LIMITER = 'agree'
/** The largest state of a trace, with its figures: 1,000 slots, and a log of 2,000. */
const MOST_WORDS: Readonly<Record<WindowKind, number>> = { fixedWindow: 7, slidingWindow: 1_007, slidingLog: 5_006 }
/** How many traces are on their way to Redis at one time: it answers them interleaved, each on a key of its own. */
const AT_ONCE = 50

let redis: TestRedis

beforeAll(async () => {
  redis = await connectRedis()
})

afterAll(() => redis.close())

describe.each(WINDOW_KINDS)('on every step of every tape of %s', (kind) => {
  test('shared memory answers and holds what memory does', () => {
    const traces = traceCount(250)
    const store = sharedStore({ maxKeys: traces, maxThreads: 1, recordWords: MOST_WORDS[kind] })
    // Another store on the same memory reads what is held, as another thread would.
    const other = sharedStore(store.handle)
    const steps = onEveryTape(traces, kind, (tape, key) => playShared(store, other, tape, key))
    console.log(`memory and shared memory agree on ${steps} steps of ${kind} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test('Redis answers and holds what memory does', async () => {
    const traces = traceCount(180)
    let steps = 0
    for (let first = 0; first < traces; first += AT_ONCE) {
      const seeds = Array.from({ length: Math.min(AT_ONCE, traces - first) }, (_, k) => SEED + first + k)
      const played = await Promise.all(seeds.map((seed) => playRedis(kind, seed)))
      steps += played.reduce((sum, each) => sum + each, 0)
    }
    console.log(`memory and Redis agree on ${steps} steps of ${kind} (${traces} traces)`)
    expect(steps).toBe(traces * CALLS_PER_TRACE)
  })

  test.each([
    { way: 'tryTake', where: 'memory' },
    { way: 'take', where: 'memory' },
    { way: 'tryTake', where: 'shared memory' },
    { way: 'take', where: 'shared memory' },
  ] as const)('the short way ($way) of $where answers what its long way does and leaves the same', ({ way, where }) => {
    const traces = traceCount(where === 'memory' ? 200 : 60)
    const shared = sharedStore({ maxKeys: traces, maxThreads: 1, recordWords: MOST_WORDS[kind] })
    let short = 0
    const steps = onEveryTape(traces, kind, (tape, key) => {
      short += playShortWay(where === 'memory' ? memoryStore() : shared, way, tape, key)
    })
    console.log(`the short way (${way}) of ${where} agrees on ${short} of ${steps} steps of ${kind} (${traces} traces)`)
    expect(short).toBeGreaterThan(steps / 5)
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
  return recordTrace(trace, windowScopes(trace, LIMITER), key, asText)
}

/** A state as text, field by field in one order; and reading it back gives the same state again. */
function asText(algorithm: Algorithm, state: EncodedState | undefined): Decoded {
  if (state === undefined) return undefined
  const text = sortedText(state)
  const words = new Float64Array(MOST_WORDS[algorithm.type as WindowKind])
  const rule = algorithm.ruleOf(figuresNamed(decode(algorithm, state, words, 0)), 0)
  const again = sortedText(algorithm.encode(rule, words, 0))
  if (again !== text) throw new Error(`${text} reads back as ${again}`)
  return text
}

function sortedText(state: EncodedState): string {
  if (typeof state === 'string') return state
  return Object.entries(state)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(', ')
}

function playShared(store: SharedStore, other: SharedStore, tape: readonly Recorded[], key: string): void {
  const playback = new Playback()
  for (const step of tape) {
    const answers = store.apply(playback.stepFor(step))
    playback.compare(step, answers, [heldIn(other, step.step.scope, key)])
  }
}

function heldIn(store: MemoryStore | SharedStore, scope: Scope, key: string): Decoded {
  store.open?.(scope, () => 0)
  const [{ name, rule }] = scope.limits as [Scope['limits'][number]]
  return asText(rule.algorithm, store.inspect(LIMITER, name, key))
}

/** Takes go the short way where there is one, all else the long one. Tells how many went the short way. */
function playShortWay(store: MemoryStore | SharedStore, way: 'tryTake' | 'take', tape: readonly Recorded[], key: string): number {
  const playback = new Playback()
  let short = 0
  for (const each of tape) {
    const { step, verdicts } = each
    const [{ cost }] = step.parts as [Part]
    const answer = step.op === 'take' ? store.lane?.(step.scope, () => step.nowUs as number)[way](key, cost) : undefined
    const answers = answer === undefined ? store.apply(playback.stepFor(each)) : typeof answer === 'boolean' ? verdicts : [answer]
    playback.compare(each, answers, [heldIn(store, step.scope, key)])
    if (answer === undefined) continue
    short += 1
    const wrong = typeof answer === 'boolean' && answer !== (verdicts[0]?.outcome === 'allowed')
    if (wrong) throw new Error(`the short way says ${answer}: ${JSON.stringify(each.call)}`)
  }
  return short
}

/** Plays one tape step by step: the next is sent when the one before is answered and its state is read. */
async function playRedis(kind: WindowKind, seed: number): Promise<number> {
  const prefix = `agree-${kind}`
  const key = `trace:${seed}`
  const store = redisStore(redis, { prefix })
  const playback = new Playback()
  const tape = recorded(kind, seed, key)
  for (const each of tape) {
    const answers = await store.apply(playback.stepFor(each))
    const [part] = each.step.parts as [Part]
    playback.compare(each, answers, [
      asText(part.rule.algorithm, await heldInRedis(kind, part.limit, keyOfPart({ prefix, hashTag: undefined }, LIMITER, part))),
    ])
  }
  return tape.length
}

/** Reads a state the way `sluice inspect` does. */
async function heldInRedis(kind: WindowKind, name: string, key: string): Promise<EncodedState | undefined> {
  if (kind === 'fixedWindow') return sectionOf(name, await redis.send(['EVAL', READ_STRING, '1', key]))
  const command = kind === 'slidingWindow' ? ['HGETALL', key] : ['ZRANGE', key, '0', '-1', 'WITHSCORES']
  return fieldsOf(await redis.send(command))
}

/** Pairs come as an object, as a list of pairs or, from an older protocol, as one flat list; none at all is no key. */
function fieldsOf(reply: unknown): EncodedState | undefined {
  const flat = Array.isArray(reply) ? reply.flat() : Object.entries(reply ?? {}).flat()
  const entries = flat.flatMap((name, k) => (k % 2 === 0 ? [[name, String(flat[k + 1])]] : []))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}
