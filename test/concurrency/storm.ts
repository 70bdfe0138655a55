/**
 * A storm: real threads that are terminated one after the other, many of them in the middle of a
 * step, on one shared store. Afterwards it is known how many calls failed, and whether any did that
 * must not: a call may fail only while dead threads hold more places than the store has to spare.
 *
 * Starting a thread is what bounds the pace. It takes 45 ms of a processor before the first line of
 * a thread's own code runs, and twice that until 60 modules are loaded. So a victim is one file,
 * and it makes only a few calls before it may be terminated.
 */
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { build } from 'rolldown'
import { createLimiter, gcra, SluiceError } from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { SharedMemory, STATE, THREAD } from '../../src/stores/shared-memory/layout.ts'
import { numberOf } from '../../src/stores/shared-memory/thread.ts'
import { Random } from '../model/random.ts'
import { audit } from './audit.ts'

export interface Storm {
  /** How many threads are terminated; in the result how many were. */
  readonly victims: number
  /** Whether the store is told of the end of each by `store.watch`. */
  readonly isWatched: boolean
  /**
   * The places of the store. `AT_WORK` of them are for the threads at work, and the rest is to
   * spare for the dead.
   */
  readonly maxThreads: number
  readonly reclaimAfterMs: number
}

export interface StormResult extends Storm {
  /** From the start of the first thread to the end of the last. */
  readonly ms: number
  /**
   * What the process used of all processors meanwhile: with two, no storm can be over in less than
   * half of it.
   */
  readonly cpuMs: number
  /** How many threads ended in the middle of a step. */
  readonly inStep: number
  /** The most places that dead threads held at the same time. */
  readonly mostDead: number
  /** The longest that a dead thread held a place, from the news of its end on. */
  readonly longestDeadMs: number
  readonly calls: number
  /** The calls that threw `STORE`. */
  readonly failed: number
  /** What was not as promised. */
  readonly wrongs: readonly string[]
}

/** A place that a dead thread holds: where, and in which step. */
interface DeadPlace {
  readonly at: number
  readonly state: number
  readonly sinceMs: number
}

const VICTIMS_AT_ONCE = 3
/** The victims, and the thread that terminates them: it makes calls, too. */
export const AT_WORK = VICTIMS_AT_ONCE + 1

/**
 * How long a dead thread of which nobody told holds its place: the other threads look once a
 * second, first and last time included.
 */
export function backAfterMs(reclaimAfterMs: number): number {
  return reclaimAfterMs + 2_000
}

/** A key is idle after half a millisecond. */
const LIMIT = { rate: '2000/s', burst: 1 } as const
/** Few keys, so that most calls search for a place of an idle one in the middle of a step. */
const MAX_KEYS = 100
/**
 * A victim makes 1 to so many calls before it may be terminated: most end in code that was just
 * loaded, some in code that was compiled.
 */
const MOST_CALLS = 100
/**
 * Seldom enough that the thread that terminates the others does not take their processor, also
 * where its calls wait in vain for a millisecond.
 */
const OWN_CALL_EVERY_MS = 3
/** The places of the counters that all threads add to. */
const CALLS = 0
const FAILED = 1

export async function storm({ victims, isWatched, maxThreads, reclaimAfterMs }: Storm): Promise<StormResult> {
  const limit = gcra(LIMIT)
  const store = sharedStore({ maxKeys: MAX_KEYS, maxThreads, limits: limit, reclaimAfterMs })
  const memory = new SharedMemory(store.handle)
  const limiter = createLimiter(limit, { name: 'storm', store })
  const counters = new Int32Array(new SharedArrayBuffer(8))
  const random = new Random(17)
  const code = await victimCode()
  const wrongs: string[] = []
  let deadPlaces: DeadPlace[] = []
  let [begun, ended, inStep, mostDead, longestDeadMs, failedBefore] = [0, 0, 0, 0, 0, 0]

  async function victim(number: number): Promise<void> {
    const workerData = { handle: store.handle, counters, limit: LIMIT, number, calls: random.magnitude(1, MOST_CALLS) }
    const worker = new Worker(code, { eval: true, workerData })
    const thread = numberOf(worker.threadId)
    worker.once('error', (error) => wrongs.push(`thread ${number}: ${error.message}`))
    // Before the store is told.
    worker.once('exit', () => bury(thread))
    if (isWatched) store.watch(worker)
    const exit = new Promise((resolve) => worker.once('exit', resolve))
    await Promise.race([new Promise((resolve) => worker.once('message', resolve)), exit])
    await Promise.all([worker.terminate(), exit])
    if (isWatched && placesOf(thread).length > 0) wrongs.push(`thread ${number} has ended and still has a place`)
    ended += 1
  }

  /**
   * Dead threads hold no more places than after the last burial until now, so that tells whether a
   * call since then may have failed.
   */
  function bury(thread: number): void {
    judge()
    const places = placesOf(thread)
    inStep += places.length
    if (isWatched) return
    deadPlaces.push(...places)
    mostDead = Math.max(mostDead, deadPlaces.length)
  }

  function judge(): void {
    const spare = maxThreads - AT_WORK
    const failed = Atomics.load(counters, FAILED)
    if (failed > failedBefore && deadPlaces.length <= spare) {
      wrongs.push(
        `calls that failed: ${failed - failedBefore}, though dead threads held ${deadPlaces.length} places, and ${spare} are to spare`,
      )
    }
    failedBefore = failed
    deadPlaces = deadPlaces.filter(({ at, state }) => memory.ints[at + STATE] === state)
  }

  function placesOf(thread: number): DeadPlace[] {
    const { ints, journalCount } = memory
    const cells = Array.from({ length: journalCount }, (_, cell) => memory.journalAt(cell))
    const held = cells.filter((at) => ((ints[at + STATE] as number) & 1) === 1 && ints[at + THREAD] === thread)
    return held.map((at) => ({ at, state: ints[at + STATE] as number, sinceMs: performance.now() }))
  }

  /** This thread calls meanwhile, too, and sees how long the dead hold their places. */
  function callToo(): void {
    const nowMs = performance.now()
    for (const { at, state, sinceMs } of deadPlaces) {
      if (memory.ints[at + STATE] === state) longestDeadMs = Math.max(longestDeadMs, nowMs - sinceMs)
    }
    const call = Atomics.add(counters, CALLS, 1)
    try {
      limiter.tryAcquire(`own:${call}`)
    } catch (error) {
      if (error instanceof SluiceError && error.code === 'STORE') Atomics.add(counters, FAILED, 1)
      else wrongs.push(`the thread that terminates the others: ${error}`)
    }
  }

  async function oneAfterTheOther(): Promise<void> {
    while (begun < victims && wrongs.length === 0) {
      begun += 1
      await victim(begun)
    }
  }

  async function untilPlacesAreBack(): Promise<void> {
    const endMs = performance.now() + 2 * backAfterMs(reclaimAfterMs)
    for (judge(); deadPlaces.length > 0 && performance.now() < endMs; judge()) await new Promise((resolve) => setTimeout(resolve, 10))
  }

  const startMs = performance.now()
  const startCpu = process.cpuUsage()
  const calling = setInterval(callToo, OWN_CALL_EVERY_MS)
  await Promise.all(Array.from({ length: VICTIMS_AT_ONCE }, oneAfterTheOther))
  const ms = performance.now() - startMs
  const { user, system } = process.cpuUsage(startCpu)
  await untilPlacesAreBack()
  clearInterval(calling)
  const { faults, takenCells } = audit(store.handle)
  wrongs.push(...faults)
  if (takenCells > 0) wrongs.push(`${takenCells} places are taken, though all threads have ended`)
  if (ended < victims) wrongs.push(`only ${ended} of ${victims} threads were terminated`)
  const [calls, failed] = counters as unknown as [number, number]
  return {
    victims: ended,
    isWatched,
    maxThreads,
    reclaimAfterMs,
    ms,
    cpuMs: (user + system) / 1000,
    inStep,
    mostDead,
    longestDeadMs,
    calls,
    failed,
    wrongs,
  }
}

/** The victim and what it needs of the built package as one file. */
async function victimCode(): Promise<string> {
  const input = fileURLToPath(new URL('storm.worker.mjs', import.meta.url))
  const { output } = await build({ input, platform: 'node', write: false, output: { format: 'cjs' } })
  return output[0].code
}
