/**
 * One time for all threads. In Node `process.hrtime` reads one clock for the whole process, but
 * what is missing from it to 1970 is found anew by each thread, from the wall clock of that moment:
 * if that was set meanwhile, the threads disagree. So the thread that makes the memory writes down
 * what it found, and the others use that. In Bun, Deno and browsers each thread counts from its own
 * start, and there is nothing in common but the wall clock: there they are as far apart as that was
 * set, or moved, between the starts of two threads.
 */
import { fixedDoubles } from './bytes.ts'
import { LATEST_US, type SharedMemory } from './layout.ts'

type HrTime = () => [seconds: number, nanoseconds: number]

interface Runtime {
  readonly process?: { readonly hrtime?: HrTime; readonly versions?: { readonly node?: string; readonly bun?: string } }
  readonly Deno?: unknown
}

/** Bun and Deno have a `process` like Node's, too. */
export function isNode(): boolean {
  const { process, Deno } = globalThis as Runtime
  return process?.versions?.node !== undefined && process.versions.bun === undefined && Deno === undefined
}

/** Where there is one clock for all threads. */
function commonHrtime(): HrTime | undefined {
  return isNode() ? (globalThis as Runtime).process?.hrtime : undefined
}

/**
 * What is missing from the common clock to 1970, as this thread finds it; 0 where there is no
 * common clock.
 */
export function originUs(): number {
  const read = commonHrtime()
  if (read === undefined) return 0
  const nowUs = Math.floor((performance.timeOrigin + performance.now()) * 1000)
  const [seconds, nanoseconds] = read()
  return nowUs - seconds * 1_000_000 - Math.floor(nanoseconds / 1000)
}

/**
 * The time of all threads that were given that origin, or undefined where their own clocks are as
 * good.
 */
export function timeFrom(origin: number): (() => number) | undefined {
  const read = commonHrtime()
  if (read === undefined || origin === 0) return undefined
  return () => {
    const time = read()
    return origin + time[0] * 1_000_000 + ((time[1] / 1000) | 0)
  }
}

/**
 * A clock that lies back by less stands still until it has caught up: readings of one time differ
 * by some noise, and to go on from the latest would add that up. One that lies back by more goes on
 * from there at its own pace.
 */
const FAR_US = 100_000
/** The latest time is written down when it is so much later than the one that stands there. */
const WRITE_EVERY_US = 1_000

const READ = 0
const AHEAD = 1
const FROM = 2
const TO = 3

/**
 * The time of this thread by its clock, and no earlier than the latest that any thread has read: a
 * record of another thread would otherwise look as if its own clock had stepped back. Only a clock
 * that itself steps back takes the common time back with it, by as much, as it does in the memory
 * of one thread.
 *
 * `isOneForAll`: it is the clock that threads have in common, and nothing is written down until one
 * comes that has another.
 */
export function commonTime({ doubles, atomic }: SharedMemory, nowUs: () => number, isOneForAll: boolean): () => number {
  // What was read last; how much is added to it; and a swap, which is of the bits of both doubles.
  const times = fixedDoubles(4)
  const halves = new Int32Array(times.buffer)
  const swap = (fromUs: number, toUs: number): boolean => {
    times[FROM] = fromUs
    times[TO] = toUs
    const [fromLow, fromHigh, toLow, toHigh] = halves.subarray(FROM * 2) as unknown as [number, number, number, number]
    return atomic.swapPair(LATEST_US * 2, fromLow, fromHigh, toLow, toHigh)
  }

  /** `us`: the time of this thread. `backUs`: by how much its clock has stepped back. */
  function otherwise(us: number, latestUs: number, backUs: number): number {
    if (backUs > 0) {
      const commonUs = Math.max(us, latestUs - backUs)
      if (commonUs < latestUs) swap(latestUs, commonUs)
      return commonUs
    }
    if (us < latestUs) {
      // A plain reading may have been of two halves that never stood there together.
      if (!swap(latestUs, latestUs)) return now()
      if (latestUs - us > FAR_US) times[AHEAD] = (times[AHEAD] as number) + latestUs - us
      return latestUs
    }
    swap(latestUs, us)
    return us
  }

  function now(): number {
    // Before the clock: of clocks that agree, what is read later is no earlier.
    const latestUs = doubles[LATEST_US] as number
    const readUs = nowUs()
    if (latestUs === 0 && isOneForAll) return readUs
    const backUs = (times[READ] as number) - readUs
    times[READ] = readUs
    const us = readUs + (times[AHEAD] as number)
    const aheadUs = us - latestUs
    return backUs <= 0 && aheadUs >= 0 && aheadUs < WRITE_EVERY_US ? us : otherwise(us, latestUs, backUs)
  }

  return now
}
