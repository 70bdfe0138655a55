/**
 * One time for all threads. In Node `process.hrtime` reads one clock for the whole process, but
 * what is missing from it to 1970 is found anew by each thread, from the wall clock of that moment:
 * if that was set meanwhile, the threads disagree. So the thread that makes the memory writes down
 * what it found, and the others use that. In Bun, Deno and browsers each thread counts from its own
 * start, and there is nothing in common but the wall clock: there they are as far apart as that was
 * set, or moved, between the starts of two threads.
 */
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
