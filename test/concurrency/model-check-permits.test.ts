/**
 * All interleavings of a few threads on places that are held until they are released, at each
 * operation of `Atomics`: take, give back, renew and stand in line. Every answer, and the state
 * afterwards, must be what some order of the whole steps gives on the memory store. And of a thread
 * that ends anywhere and is told of: nothing is left of what it held, and all that others hold is
 * there.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Op } from '../../src/algorithms/decide.ts'
import { concurrency, memoryStore } from '../../src/index.ts'
import { compiled } from '../../src/limiter/options.ts'
import { type SharedHandle, sharedStore } from '../../src/stores/shared-memory/index.ts'
import { RECORD_HEADER_WORDS, SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { Part, type Scope, Step } from '../../src/stores/step.ts'
import type { SyncStore } from '../../src/stores/store.ts'
import { audit } from './audit.ts'
import { type Explored, explore, runFor, sitesOf, type World } from './scheduler.ts'

const NOW_US = 1_700_000_000_000_000
/** Tokens of a key in one microsecond count up from it. */
const [FIRST, SECOND] = [NOW_US, NOW_US + 1]
/** Figures, nine words and four entries; four pairs. */
const FEW_STATE_WORDS = 2 + 9 + 4 * 3
const FEW_HOLDER_WORDS = 9
const [ENDED, WORKING, WATCHING] = [11, 12, 13]

interface Call {
  readonly op: Op
  readonly key: string
  readonly cost: number
  /** What is given back or renewed, or the place in line. */
  readonly token: number
}

const take = (cost = 1, key = 'k'): Call => ({ op: 'take', key, cost, token: -1 })
const give = (token: number, cost = 1, key = 'k'): Call => ({ op: 'give', key, cost, token })
const renew = (token: number, cost = 1): Call => ({ op: 'renew', key: 'k', cost, token })
const line = (place = 0, cost = 1): Call => ({ op: 'line', key: 'k', cost, token: place })

let threadId = 0
beforeAll(() => {
  vi.spyOn(process, 'getBuiltinModule').mockImplementation((() => ({ threadId })) as unknown as typeof process.getBuiltinModule)
  // Without WebAssembly every operation goes through `Atomics`.
  vi.stubGlobal('WebAssembly', undefined)
  vi.stubGlobal('crypto', { getRandomValues: (seeds: Int32Array) => seeds.fill(1) })
})
afterAll(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

type Limit = ReturnType<typeof concurrency>

function scopeOf(limit: Limit): Scope {
  return { name: 'model', limits: compiled(limit) }
}

type Answer = readonly [
  granted: boolean,
  outcome: string,
  remaining: number,
  retryUs: string,
  resetUs: string,
  enteredUs: number,
  given: number,
]

function stepsOn(limit: Limit, store: SyncStore): (call: Call) => Answer {
  const scope = scopeOf(limit)
  const [{ name, rule }] = scope.limits as [Scope['limits'][number]]
  const states = store.open(scope, () => NOW_US)
  return ({ op, key, cost, token }) => {
    const hasTicket = op === 'renew' || (op === 'line' && token > 0)
    const part = new Part(name, rule, key, cost, hasTicket ? { numbers: rule.numbers, words: Float64Array.of(token) } : undefined)
    const granted = states.apply(new Step(op, scope, [part], -1, op === 'give' ? token : -1, undefined), true)
    const { outcome, remaining, retryUs, resetUs, enteredUs, given } = part.verdict
    return [granted, outcome, remaining, `${retryUs}`, `${resetUs}`, enteredUs, op === 'take' ? 0 : (given as number)]
  }
}

interface Inspected extends SyncStore {
  inspect(limiter: string, limit: string, key: string): unknown
}

function endOf(store: Inspected, keys: readonly string[]): unknown {
  return keys.map((key) => Object.entries((store.inspect('model', 'default', key) ?? {}) as object).map(String))
}

function as<T>(id: number, act: () => T): T {
  threadId = id
  return act()
}

interface Setting {
  readonly before: readonly Call[]
  readonly threads: readonly (readonly Call[])[]
  /** The thread that may be stopped at any point. */
  readonly stoppable?: number
}

const keysOf = ({ before, threads }: Setting) => [...new Set([...before, ...threads.flat()].map(({ key }) => key))]

/** All orders of whole steps, of so many of each thread. */
function orders(counts: readonly number[], order: readonly number[] = []): (readonly number[])[] {
  if (counts.every((count) => count === 0)) return [order]
  return counts.flatMap((count, k) =>
    count === 0
      ? []
      : orders(
          counts.map((each, at) => (at === k ? each - 1 : each)),
          [...order, k],
        ),
  )
}

/** What orders of whole steps answer and leave. `done`: how many steps each thread does. */
function ends(limit: Limit, { before, threads }: Setting, keys: readonly string[], done: readonly number[]): string[] {
  return orders(done).map((order) => {
    const store = memoryStore()
    const apply = stepsOn(limit, store)
    for (const call of before) apply(call)
    const results: unknown[][] = threads.map(() => [])
    for (const k of order) results[k]?.push(apply((threads[k] as readonly Call[])[results[k].length] as Call))
    return JSON.stringify([results.map((each, k) => (done[k] === threads[k]?.length ? each : 'stopped')), endOf(store, keys)])
  })
}

function storeWith(limit: Limit, { before, threads }: Setting, maxKeys = 2) {
  const store = as(0, () => sharedStore({ maxKeys, maxThreads: threads.length + 1, limits: limit, reclaimAfterMs: 3_600_000 }))
  before.forEach(stepsOn(limit, store))
  const memory = new SharedMemory(store.handle)
  return { handle: store.handle, world: { buffer: store.handle.buffer, constant: constantIn(memory, limit), ...sitesOf(memory) } }
}

/**
 * The catalog, and the room for entries and holders beyond the first few in each record. Without
 * these it would take minutes.
 */
function constantIn(memory: SharedMemory, limit: Limit): World['constant'] {
  const [{ rule }] = compiled(limit) as [Scope['limits'][number]]
  const behindStates = rule.figures.length + rule.words
  const ranges: [number, number][] = [[memory.catalogAt, memory.journalsAt]]
  for (let record = 1; record <= memory.recordCount; record++) {
    const wordsAt = memory.recordAt(record) + RECORD_HEADER_WORDS * 2
    ranges.push([wordsAt + FEW_STATE_WORDS * 2, wordsAt + behindStates * 2])
    ranges.push([wordsAt + (behindStates + FEW_HOLDER_WORDS) * 2, memory.recordAt(record + 1)])
  }
  return ranges.map(([from, to]) => [from * 4, to * 4])
}

const threadFor = (limit: Limit, handle: SharedHandle, id: number, calls: readonly Call[]) => ({
  run: () => as(id, () => calls.map(stepsOn(limit, sharedStore(handle)))),
})

function stateIn(limit: Limit, handle: SharedHandle, keys: readonly string[]): unknown {
  const store = sharedStore(handle)
  store.open(scopeOf(limit), () => NOW_US)
  return endOf(store, keys)
}

function checked(limit: Limit, setting: Setting): Explored {
  const { handle, world } = storeWith(limit, setting)
  const keys = keysOf(setting)
  const counts = setting.threads.map(({ length }) => length)
  const whole = new Set(ends(limit, setting, keys, counts))
  const stopped = new Set(
    setting.stoppable === undefined ? [] : [0, 1].flatMap((most) => ends(limit, setting, keys, [most, ...counts.slice(1)])),
  )
  const threads = setting.threads.map((calls, k) => threadFor(limit, handle, ENDED + k, calls))
  const check = (results: readonly unknown[]) => {
    expect(audit(handle).faults).toEqual([])
    const isStopped = results[0] === undefined
    const end = JSON.stringify([results.map((result) => result ?? 'stopped'), stateIn(limit, handle, keys)])
    if (isStopped) expect([...stopped].map(anyFirst)).toContain(anyFirst(end))
    else expect(whole).toContain(end)
  }
  const explored = explore({ ...world, threads, check }, setting.stoppable === undefined ? {} : { stoppable: setting.stoppable })
  const { schedules, states, ends: endCount, collisions } = explored
  console.log(
    `${setting.threads.flat().map(({ op }) => op)}: ${schedules} schedules, ${states} states, ${endCount} ends, ${collisions.head} lost swaps`,
  )
  return explored
}

/** Whatever the first thread was answered: it was stopped, and its caller was not told. */
function anyFirst(end: string): string {
  const [[, ...others], state] = JSON.parse(end) as [unknown[], unknown]
  return JSON.stringify([others, state])
}

const [ENDLESS, LEASED] = [concurrency({ max: 2 }), concurrency({ max: 2, lease: '1s' })]

describe('every interleaving of two threads, of which one may be stopped anywhere', () => {
  test.each([
    ['take the last place, without a lease', ENDLESS, [take()], [[take()], [take()]]],
    ['take the last place, with a lease', LEASED, [take()], [[take()], [take()]]],
    ['bring a new key', ENDLESS, [], [[take(2)], [take()]]],
    ['release one permit twice', ENDLESS, [take()], [[give(FIRST)], [give(FIRST)]]],
    ['release one permit and take another', LEASED, [take()], [[give(FIRST)], [take()]]],
    ['renew and release the same permit', LEASED, [take()], [[renew(FIRST)], [give(FIRST)]]],
    ['renew one and take another', LEASED, [take()], [[renew(FIRST)], [take()]]],
    ['count a lost permit again and take', LEASED, [], [[renew(FIRST - 5)], [take()]]],
    ['stand in line and release', ENDLESS, [take(2)], [[line()], [give(FIRST, 2)]]],
    ['stand in line both', LEASED, [take(2)], [[line()], [line()]]],
    ['are next in line and stand in it', LEASED, [take(2), line(), give(FIRST, 2)], [[line(SECOND)], [line()]]],
    ['leave the line and stand in it', ENDLESS, [take(2), line()], [[give(SECOND)], [line()]]],
  ] as [string, Limit, Call[], Call[][]][])('that %s', (_name, limit, before, threads) => {
    const { collisions } = checked(limit, { before, threads, stoppable: 0 })
    expect(collisions.head).toBeGreaterThan(0)
  })
})

describe('a thread that has ended anywhere holds nothing, and the others hold all of theirs, wherever they are in their steps then', () => {
  test.each([
    ['took, from a key that another takes from', ENDLESS, [take()], [take()], [take()]],
    ['stood in line', ENDLESS, [take(2)], [line()], [give(FIRST, 2)]],
  ] as [string, Limit, Call[], Call[], Call[]][])('that %s', (_name, limit, before, dying, working) => {
    const setting: Setting = { before, threads: [dying, working, []] }
    const keys = keysOf(setting)
    const expected = new Set([...Array(dying.length + 1).keys()].flatMap((done) => endsWithout(limit, setting, keys, done)))
    const explored = new Set<string>()
    let [schedules, points] = [0n, 1]
    for (let isDone = false; !isDone; points++) {
      const { handle, world } = storeWith(limit, setting, 1)
      const check = ([answers]: readonly unknown[]) => {
        expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
        expect(expected).toContain(JSON.stringify([answers, stateIn(limit, handle, keys)]))
      }
      const threads = [threadFor(limit, handle, WORKING, working), endedFor(limit, handle)]
      isDone = runFor({ ...world, threads, check }, threadFor(limit, handle, ENDED, dying), points)
      // What follows depends on the bytes and on nothing else.
      const bytes = Buffer.from(new Uint8Array(handle.buffer)).toString('latin1')
      if (!explored.has(bytes)) schedules += explore({ ...world, threads, check }).schedules
      explored.add(bytes)
    }
    console.log(`${dying.map(({ op }) => op)} and ended: ${points} points, ${schedules} schedules`)
    expect(points).toBeGreaterThan(8)
  })

  /** A thread that says that another has ended. */
  function endedFor(limit: Limit, handle: SharedHandle) {
    const tell = () => {
      const store = sharedStore(handle)
      store.open(scopeOf(limit), () => NOW_US)
      store.ended(ENDED)
    }
    return { run: () => as(WATCHING, tell) }
  }

  /**
   * The ends of orders in which the first thread does so many of its steps, and then gives back
   * each of the tokens that it has.
   */
  function endsWithout(limit: Limit, { before, threads }: Setting, keys: readonly string[], done: number): string[] {
    const [dying, working] = threads as [readonly Call[], readonly Call[]]
    const isInOrder = (order: readonly number[]) => order.indexOf(1) >= done
    return orders([done + 1, working.length])
      .filter(isInOrder)
      .map((order) => {
        const store = memoryStore()
        const apply = stepsOn(limit, store)
        for (const call of before) apply(call)
        const own = dying.slice(0, done).map((call) => tokenOf(call, apply(call)))
        const answers: unknown[] = []
        for (const k of order.slice(done)) {
          if (k === 1) answers.push(apply(working[answers.length] as Call))
          else for (const token of own) apply(give(token, 2))
        }
        return JSON.stringify([answers, endOf(store, keys)])
      })
  }

  /** What a thread has by a step. */
  function tokenOf({ op, token }: Call, [, , , , , enteredUs]: Answer): number {
    return op === 'renew' || op === 'give' ? token : enteredUs
  }
})
