/**
 * All interleavings of a few threads on the module as it is shipped, at each operation of
 * `Atomics`. The answers of the threads and the state afterwards must equal those of the whole
 * calls in some order, one after the other, on the memory store.
 */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import {
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  type SyncStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { fingerprint } from '../../src/stores/shared-memory/fingerprint.ts'
import { type SharedHandle, sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Journals } from '../../src/stores/shared-memory/journals.ts'
import { SharedMemory } from '../../src/stores/shared-memory/layout.ts'
import { numberOf } from '../../src/stores/shared-memory/thread.ts'
import { audit } from './audit.ts'
import { type Explored, explore, runFor, sitesOf, type World } from './scheduler.ts'

const SECOND_US = 1_000_000
const START_US = 1_700_000_000 * SECOND_US
/** Where the memory's own field for it lies. */
const RECLAIM_AFTER_MS = 9
/**
 * A word of the header that nobody uses: by how many seconds the clock of all threads is ahead of
 * their calls.
 */
const AHEAD_S = 60

type Limits = Limit | Readonly<Record<string, Limit>>

/**
 * One call of a thread: a verb, a key, a cost and the time that the thread's clock shows. `tick`:
 * so many seconds pass, for all threads.
 */
interface Call {
  readonly verb: 'take' | 'reset' | 'refund' | 'tick'
  readonly key: string
  readonly cost: number
  readonly atUs: number
}

const take = (key = 'k', cost = 1, atUs = START_US): Call => ({ verb: 'take', key, cost, atUs })

const tick = (seconds: number): Call => ({ verb: 'tick', key: 'k', cost: seconds, atUs: START_US })

interface Setting {
  readonly limits: Limits
  readonly maxKeys?: number
  /** Calls made before the threads start. */
  readonly before?: readonly Call[]
  readonly threads: readonly (readonly Call[])[]
  readonly stoppable?: number
  readonly brokenSite?: string
  /**
   * The last free record may be on its way in one thread while another is told that there is none:
   * then only what is held is checked.
   */
  readonly mayBeFull?: boolean
}

// Without WebAssembly every operation goes through `Atomics`.
/** What the thread at work is called: all of them are one to Node. */
let threadId = 0
beforeAll(() => {
  vi.spyOn(process, 'getBuiltinModule').mockImplementation((() => ({ threadId })) as unknown as typeof process.getBuiltinModule)
  vi.stubGlobal('WebAssembly', undefined)
  // The same seed every time: which keys share a chain must not change from run to run.
  vi.stubGlobal('crypto', { getRandomValues: (seeds: Int32Array) => seeds.fill(1) })
})
afterAll(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

/**
 * `time`: where it is noted by how much the clock is ahead, if it moves while the threads are at
 * work. Reading it is an operation like others.
 */
function callsOn(limits: Limits, store: SyncStore, time?: Int32Array): (call: Call) => unknown {
  const aheadUs = () => (time === undefined ? 0 : Atomics.load(time, AHEAD_S) * SECOND_US)
  const clock = { atUs: 0, nowUs: () => clock.atUs + aheadUs(), setTimer: () => () => undefined }
  const limiter = createLimiter(limits, { name: 'model', store, clock, maxAheadMs: 0 })
  return ({ verb, key, cost, atUs }) => {
    clock.atUs = atUs
    if (verb === 'tick') return void Atomics.store(time as Int32Array, AHEAD_S, cost)
    if (verb === 'reset') return limiter.reset(key)
    if (verb === 'refund') return limiter.refund(key, cost)
    return limiter.tryAcquire(key, cost)
  }
}

/** What can be seen from outside of a store: how much is left of each key. */
function leftIn(limits: Limits, store: SyncStore, keys: readonly string[], atUs: number): unknown {
  const clock = { nowUs: () => atUs, setTimer: () => () => undefined }
  const limiter = createLimiter(limits, { name: 'model', store, clock, maxAheadMs: 0 })
  return keys.map((key) => {
    const { parts, resetAfterMs } = limiter.peek(key, 0)
    return [key, Object.values(parts).map(({ remaining }) => remaining), resetAfterMs]
  })
}

/**
 * All orders of whole calls: what they answer and leave. A thread that was stopped has done some
 * first part of its calls, and answers nothing.
 */
function sequentialEnds(
  { limits, maxKeys = 1, before = [], threads }: Setting,
  isStopped: readonly boolean[],
  keys: readonly string[],
  atUs: number,
): Set<string> {
  const ends = new Set<string>()
  const walk = (done: readonly number[], order: readonly number[]): void => {
    if (threads.every((calls, k) => done[k] === calls.length || isStopped[k])) {
      const store = memoryStore({ maxKeys })
      const call = callsOn(limits, store, new Int32Array(AHEAD_S + 1))
      for (const each of before) call(each)
      const results: unknown[][] = threads.map(() => [])
      const next = threads.map(() => 0)
      for (const k of order) results[k]?.push(call((threads[k] as readonly Call[])[(next[k] as number)++] as Call))
      ends.add(
        asText(
          results.map((each, k) => (isStopped[k] ? undefined : each)),
          leftIn(limits, store, keys, atUs),
        ),
      )
    }
    for (const [k, calls] of threads.entries()) {
      if ((done[k] as number) < calls.length)
        walk(
          done.map((count, at) => (at === k ? count + 1 : count)),
          [...order, k],
        )
    }
  }
  walk(
    threads.map(() => 0),
    [],
  )
  return ends
}

function asText(results: readonly unknown[], left: unknown): string {
  return JSON.stringify([results.map((result) => result ?? 'stopped'), left])
}

function checked(setting: Setting): Explored {
  const { limits, maxKeys = 1, before = [], threads, stoppable = -1, brokenSite = '', mayBeFull = false } = setting
  const all = [...before, ...threads.flat()]
  const keys = [...new Set(all.map(({ key }) => key))]
  const isMoving = all.some(({ verb }) => verb === 'tick')
  const latestUs = Math.max(...all.map(({ verb, cost, atUs }) => (verb === 'tick' ? atUs + cost * SECOND_US : atUs)))
  const made = sharedStore({ maxKeys, maxThreads: threads.length + 1, limits, reclaimAfterMs: 3_600_000 })
  const { handle } = made
  const call = callsOn(limits, made)
  for (const each of before) call(each)
  const memory = new SharedMemory(handle)
  const expected = new Map<string, Set<string>>()
  const explored = explore(
    {
      buffer: handle.buffer,
      constant: catalogOf(memory),
      threads: threads.map((calls) => ({ run: () => calls.map(callsOn(limits, sharedStore(handle), isMoving ? memory.ints : undefined)) })),
      check(results) {
        const isStopped = results.map((result) => result === undefined)
        const id = `${isStopped}`
        if (!expected.has(id)) expected.set(id, sequentialEnds(setting, isStopped, keys, latestUs))
        const asExpected = () =>
          mayBeFull || expect(expected.get(id)).toContain(asText(results, leftIn(limits, sharedStore(handle), keys, latestUs)))
        expect(audit(handle).faults).toEqual([])
        asExpected()
        takeOverAll(memory)
        expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
        asExpected()
      },
      ...sitesOf(memory),
    },
    { stoppable, brokenSite },
  )
  return explored
}

/**
 * Where the catalog lies, in bytes: the one limiter is in it before the threads begin. Behind it
 * are the pages where they mark that they have it open.
 */
function catalogOf({ catalogAt, journalsAt }: SharedMemory): World['constant'] {
  return [[catalogAt * 4, journalsAt * 4]]
}

/** Takes over the cells of dead threads and gives them back. A cell must have been seen twice. */
function takeOverAll({ handle, ints, journalCount }: SharedMemory): void {
  ints[RECLAIM_AFTER_MS] = 0
  const cells = new Journals(new SharedMemory(handle))
  for (let cell = 0; cell < journalCount; cell++) if (cells.takeOver(cell) || cells.takeOver(cell)) cells.release()
}

function print(title: string, { schedules, states, ends, collisions, longest }: Explored): void {
  const lost = Object.entries(collisions).map(([site, count]) => `${count} at the ${site}`)
  console.log(
    `${title}: ${schedules} schedules, ${states} states, ${ends} ends, up to ${longest} operations a thread; lost swaps: ${lost.join(', ') || 'none'}`,
  )
}

const LIMITS: Readonly<Record<string, Limits>> = {
  gcra: gcra({ rate: '1/s', burst: 2 }),
  tokenBucket: tokenBucket({ refill: '1/s', capacity: 2 }),
  leakyBucket: leakyBucket({ leak: '1/s', capacity: 2 }),
  fixedWindow: fixedWindow({ limit: 2, window: '1s' }),
  slidingWindow: slidingWindow({ limit: 2, window: '1s', slots: 2 }),
  slidingLog: slidingLog({ limit: 2, window: '1s' }),
  'two limits': { burst: gcra({ rate: '1/s', burst: 2 }), daily: fixedWindow({ limit: 3, window: '1d' }) },
}

describe.each(Object.entries(LIMITS))('every interleaving of two threads: %s', (name, limits) => {
  test('that take from a held key', () => {
    const explored = checked({ limits, before: [take()], threads: [[take()], [take()]] })
    print(`${name}, held key`, explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('that bring a new key', () => {
    const explored = checked({ limits, threads: [[take()], [take('k', 2)]] })
    print(`${name}, new key`, explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('while so much time passes at any point that all that was used is free again', () => {
    const explored = checked({ limits, before: [take('k', 1)], threads: [[take('k', 2)], [take('k', 2)], [tick(5)]] })
    print(`${name}, while time passes`, explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('of which one is stopped for ever at any point', () => {
    const explored = checked({ limits, before: [take()], threads: [[take()], [take()]], stoppable: 0 })
    print(`${name}, one stopped`, explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })
})

test('of which one is late, across the edge of a window', () => {
  const limits = fixedWindow({ limit: 2, window: '1s' })
  const late = START_US + SECOND_US - 1
  const explored = checked({
    limits,
    before: [take('k', 1, late)],
    threads: [[take('k', 1, late)], [take('k', 2, START_US + SECOND_US)]],
    stoppable: 0,
  })
  print('a laggard across the edge', explored)
  expect(explored.collisions.head).toBeGreaterThan(0)
})

describe('two threads on one chain', () => {
  const limits = gcra({ rate: '1/s', burst: 2 })

  test('with two keys, the one behind the other', () => {
    const explored = checked({ limits, maxKeys: 2, before: [take('a'), take('b')], threads: [[take('a')], [take('b')]], stoppable: 1 })
    print('two keys', explored)
    expect(explored.states).toBeGreaterThan(100)
  })

  test('while one forgets the key', () => {
    const reset: Call = { verb: 'reset', key: 'k', cost: 0, atUs: START_US }
    const explored = checked({ limits, before: [take()], threads: [[reset], [take()]], stoppable: 0 })
    print('take and reset', explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('while one gives back', () => {
    const refund: Call = { verb: 'refund', key: 'k', cost: 1, atUs: START_US }
    const explored = checked({ limits, before: [take()], threads: [[refund], [take()]], stoppable: 0 })
    print('take and refund', explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('that bring new keys to one free place, taken from an idle key', () => {
    const later = START_US + 100 * SECOND_US
    const explored = checked({
      limits,
      maxKeys: 1,
      before: [take('old')],
      threads: [[take('old', 1, later)], [take('old', 1, later)]],
      stoppable: 0,
    })
    print('an idle key comes back', explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })
})

/** Keys of a table for two: it has four heads, and a record on the first and on the third. */
function keysOnTwoHeads(): { readonly first: readonly string[]; readonly second: readonly string[] } {
  const halves = new Int32Array(2)
  fingerprint('model', 1, 1, halves)
  const [low, high] = halves as unknown as [number, number]
  const headOf = (key: string) => {
    fingerprint(key, low, high, halves)
    return (halves[0] as number) >>> 30
  }
  const keys = Array.from({ length: 40 }, (_, k) => `key:${k}`)
  return { first: keys.filter((key) => headOf(key) === 0), second: keys.filter((key) => headOf(key) === 2) }
}

describe('two threads in a table with one record left', () => {
  const limits = gcra({ rate: '1/s', burst: 2 })
  const { first, second } = keysOnTwoHeads()
  const [held, other] = first as [string, string]
  const [far] = second as [string]

  test('that both want it: one is limited, as the table is full', () => {
    const explored = checked({
      limits,
      maxKeys: 2,
      before: [take(held)],
      threads: [[take(other)], [take(far)]],
      stoppable: 0,
      mayBeFull: true,
    })
    print('the last record', explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('that both want it for one key', () => {
    const explored = checked({
      limits,
      maxKeys: 2,
      before: [take(held)],
      threads: [[take(other)], [take(other)]],
      stoppable: 0,
    })
    print('the last record for one key', explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })

  test('while the key before them is in use', () => {
    const explored = checked({ limits, maxKeys: 2, before: [take(held)], threads: [[take(other)], [take(held)]], stoppable: 0 })
    print('the last record beside a key in use', explored)
    expect(explored.collisions.head).toBeGreaterThan(0)
  })
})

describe('a dead thread is taken over while another works on the same chain', () => {
  const { first, second } = keysOnTwoHeads()
  const [held, other] = first as [string, string]
  const [far] = second as [string]
  const limits = gcra({ rate: '1/s', burst: 3 })

  test.each([
    { dying: take(held), working: take(held), before: [take(held)] },
    { dying: take(other), working: take(held), before: [take(held)] },
    { dying: take(other), working: take(far), before: [take(held)], mayBeFull: true },
    { dying: take(held), working: take(other), before: [take(other), take(held)] },
  ])('wherever it died, taking $dying.key', ({ dying, working, before, mayBeFull }) => {
    // It has its cell after its first operation.
    let [schedules, points, lost] = [0n, 1, 0]
    for (let isDone = false; !isDone; points++) {
      const setting: Setting = { limits, maxKeys: 2, before, threads: [[dying], [working]] }
      const store = sharedStore({ maxKeys: 2, maxThreads: 4, limits, reclaimAfterMs: 3_600_000 })
      const { handle } = store
      before.forEach(callsOn(limits, store))
      const memory = new SharedMemory(handle)
      const keys = [held, other, far]
      const threadFor = (call: Call) => ({ run: () => callsOn(limits, sharedStore(handle))(call) })
      const world = {
        buffer: handle.buffer,
        constant: catalogOf(memory),
        threads: [{ run: () => takeOverFirst(handle) }, threadFor(working)],
        ...sitesOf(memory),
        check([, answer]: readonly unknown[]) {
          expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
          if (mayBeFull) return
          const ends = sequentialEnds(setting, [true, false], keys, START_US)
          expect(ends).toContain(asText([undefined, [answer]], leftIn(limits, sharedStore(handle), keys, START_US)))
        },
      }
      isDone = runFor(world, threadFor(dying), points)
      // It may have died between two steps, with no cell of its own.
      if (((memory.ints[memory.journalAt(1)] as number) & 1) === 0) continue
      const explored = explore(world)
      schedules += explored.schedules
      lost += explored.collisions.head ?? 0
    }
    console.log(`taken over at ${points} points: ${schedules} schedules; lost swaps: ${lost} at the head`)
    expect(points).toBeGreaterThan(6)
  })

  test.each([
    { first: [take(held)], second: [take(held)], before: [take(held)] },
    { first: [take(held)], second: [take(other)], before: [take(other), take(held)] },
    { first: [take(other)], second: [take(held)], before: [take(held)] },
    // The second lets go, and then has in hand, what the first was about to let go.
    { first: [take(held)], second: [take(held), take(held)], before: [take(held)] },
    // The second takes a record out of the chain in which the first was about to use it.
    { first: [take(far)], second: [take(other)], before: [take(held)] },
  ])('two that died one after the other, wherever, are taken over by two at once: %#', ({ first, second, before }) => {
    let [schedules, pairs] = [0n, 0]
    // Several pairs of points leave the same bytes, and what follows depends on nothing else.
    const explored = new Map<string, bigint>()
    const schedulesFrom = (world: World) => {
      const bytes = Buffer.from(new Uint8Array(world.buffer)).toString('latin1')
      const known = explored.get(bytes) ?? explore(world).schedules
      explored.set(bytes, known)
      return known
    }
    const diedAfter = (pointsOfFirst: number, pointsOfSecond: number, abruptly: boolean) => {
      const store = sharedStore({ maxKeys: 2, maxThreads: 4, limits, reclaimAfterMs: 3_600_000 })
      const { handle } = store
      before.forEach(callsOn(limits, store))
      const memory = new SharedMemory(handle)
      const world = {
        buffer: handle.buffer,
        constant: catalogOf(memory),
        threads: [1, 2].map((cell) => ({ run: () => takeOverFirst(handle, cell) })),
        ...sitesOf(memory),
        check: () => expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 }),
      }
      const threadFor = (calls: readonly Call[]) => ({ run: () => calls.map(callsOn(limits, sharedStore(handle))) })
      const isFirstDone = runFor(world, threadFor(first), pointsOfFirst, { abruptly })
      const isSecondDone = runFor(world, threadFor(second), pointsOfSecond, { abruptly })
      const areTaken = [1, 2].every((cell) => ((memory.ints[memory.journalAt(cell)] as number) & 1) === 1)
      if (areTaken) {
        schedules += schedulesFrom(world)
        pairs += 1
      }
      return { isFirstDone, isSecondDone }
    }
    for (let k = 1, isDone = false; !isDone; k++) {
      for (let m = 1, isLast = false; !isLast; m++) {
        const { isFirstDone, isSecondDone } = diedAfter(k, m, false)
        diedAfter(k, m, true)
        isDone = isFirstDone
        isLast = isSecondDone
      }
    }
    console.log(`two taken over at ${pairs} pairs of points: ${schedules} schedules`)
    expect(pairs).toBeGreaterThan(9)
  })

  /**
   * The cell of the thread that died: the second, because the store that made the memory has the
   * first.
   */
  function takeOverFirst(handle: SharedHandle, cell = 1): void {
    const memory = new SharedMemory(handle)
    // For this thread alone, and between two operations.
    memory.ints[RECLAIM_AFTER_MS] = 0
    const cells = new Journals(new SharedMemory(handle))
    memory.ints[RECLAIM_AFTER_MS] = 3_600_000
    const taken = cells.takeOver(cell) || cells.takeOver(cell)
    if (taken) cells.release()
  }
})

describe('a thread that has ended is taken over at once', () => {
  const { first, second } = keysOnTwoHeads()
  const [held, other] = first as [string, string]
  const [far] = second as [string]
  const limits = gcra({ rate: '1/s', burst: 3 })
  const [ENDED, WORKING, WATCHING, OTHER] = [11, 12, 13, 14]

  function as<T>(id: number, act: () => T): T {
    threadId = id
    return act()
  }

  const threadFor = (handle: SharedHandle, id: number, call: Call) => ({
    run: () => as(id, () => callsOn(limits, sharedStore(handle))(call)),
  })

  const freeing = (handle: SharedHandle, id: number, ended: readonly number[]) => ({
    run() {
      const cells = as(id, () => new Journals(new SharedMemory(handle)))
      for (const each of ended) cells.free(numberOf(each))
    },
  })

  function storeWith(before: readonly Call[], maxThreads: number) {
    const store = as(0, () => sharedStore({ maxKeys: 2, maxThreads, limits, reclaimAfterMs: 3_600_000 }))
    before.forEach(callsOn(limits, store))
    const memory = new SharedMemory(store.handle)
    return { handle: store.handle, world: { buffer: store.handle.buffer, constant: catalogOf(memory), ...sitesOf(memory) } }
  }

  test.each([
    { dying: take(held), working: take(held), before: [take(held)] },
    { dying: take(held), working: take(other), before: [take(other), take(held)] },
    { dying: take(other), working: take(held), before: [take(held)] },
    { dying: { ...take(held), verb: 'reset' } as const, working: take(held), before: [take(held)] },
    { dying: take(held), working: take(far), before: [take(held)] },
  ])('wherever it ended, and wherever another is in its step then: %#', ({ dying, working, before }) => {
    const { handle, world } = storeWith(before, 4)
    const keys = [held, other, far]
    const setting: Setting = { limits, maxKeys: 2, before, threads: [[dying], [working]] }
    const threads = [
      threadFor(handle, ENDED, dying),
      threadFor(handle, WORKING, working),
      { ...freeing(handle, WATCHING, [ENDED]), isAfterwards: true },
    ]
    const check = (results: readonly unknown[]) => {
      expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
      const [isStopped, answers] = [results[0] === undefined, results.slice(0, 2).map((result) => [result])]
      const ends = sequentialEnds(setting, [isStopped, false], keys, START_US)
      expect(ends).toContain(asText(isStopped ? [undefined, answers[1]] : answers, leftIn(limits, sharedStore(handle), keys, START_US)))
    }
    const explored = explore({ ...world, threads, check }, { stoppable: 0 })
    print('ended and freed', explored)
    expect(explored.ends).toBeGreaterThan(20)
  })

  test('by two at once, of whom one ends in the middle of that and is taken over in turn', () => {
    let [schedules, points] = [0n, 0]
    for (let isDone = false, operations = 1; !isDone; operations++) {
      for (const abruptly of [false, true]) {
        const { handle, world } = storeWith([take(held)], 2)
        const check = () => expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
        const last = { ...freeing(handle, OTHER, [ENDED, WATCHING]), isAfterwards: true }
        const threads = [freeing(handle, WATCHING, [ENDED]), freeing(handle, WORKING, [ENDED]), last]
        isDone = runFor({ ...world, threads, check }, threadFor(handle, ENDED, take(held)), operations, { abruptly })
        if (audit(handle).takenCells === 0) continue
        schedules += explore({ ...world, threads, check }, { stoppable: 0 }).schedules
        points += 1
      }
    }
    console.log(`taken over by one that ended: ${points} points, ${schedules} schedules`)
    expect(points).toBeGreaterThan(6)
  })

  test('and one that uses its cell after it is not taken for it', () => {
    // There is one cell for all, and it was the ended one's last.
    const { handle, world } = storeWith([take(held)], 1)
    as(ENDED, () => callsOn(limits, sharedStore(handle))(take(held)))
    const { ints, journalsAt } = new SharedMemory(handle)
    const state = ints[journalsAt] as number
    const check = ([answer]: readonly unknown[]) => {
      expect(answer).toBe(true)
      expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
      // Claimed and given back by that one, and by nobody else.
      expect(ints[journalsAt]).toBe(state + 2)
    }
    const threads = [threadFor(handle, WORKING, take(held)), freeing(handle, WATCHING, [ENDED])]
    const explored = explore({ ...world, threads, check })
    print('the cell of an ended thread', explored)
    expect(explored.states).toBeGreaterThan(50)
  })

  test('and the cell of one that goes on is left alone', () => {
    const { handle } = storeWith([take(held)], 4)
    const memory = new SharedMemory(handle)
    const working = as(WORKING, () => new Journals(memory))
    working.claim()
    as(WATCHING, () => new Journals(new SharedMemory(handle))).free(numberOf(ENDED))
    expect(audit(handle)).toMatchObject({ faults: [], takenCells: 1 })
    working.release()
    // Nobody has it now, and it bears the last one's name.
    as(WATCHING, () => new Journals(new SharedMemory(handle))).free(numberOf(WORKING))
    expect(audit(handle)).toMatchObject({ faults: [], takenCells: 0 })
  })
})

test('the check notices if the swap of a head does not compare', () => {
  const setting = { limits: gcra({ rate: '1/s', burst: 2 }), before: [take()], threads: [[take()], [take()]] }
  expect(() => checked({ ...setting, brokenSite: 'head' })).toThrow()
})

test('every interleaving of three threads on one held key', () => {
  const explored = checked({ limits: gcra({ rate: '1/s', burst: 3 }), before: [take()], threads: [[take()], [take()], [take()]] })
  print('three threads', explored)
  expect(explored.collisions.head).toBeGreaterThan(0)
})
