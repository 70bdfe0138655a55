/** The id of a thread, and how it waits for others. */
import { SluiceError, shown } from '../../errors.ts'
import { isNode } from './clock.ts'

/** A thread as its parent sees it: a `Worker` of `node:worker_threads`. */
export interface WatchedThread {
  readonly threadId: number
  once(event: 'exit', listener: () => void): unknown
}

interface Runtime {
  readonly process?: { getBuiltinModule?(name: string): { readonly threadId?: number } | undefined }
}

/**
 * What this thread is called in a cell: its id in Node plus one, which no other thread of the
 * process ever has. 0 elsewhere, where the end of a thread is not told to others, or maybe before
 * it has come.
 */
export function threadNumber(): number {
  if (!isNode()) return 0
  const { threadId } = (globalThis as Runtime).process?.getBuiltinModule?.('node:worker_threads') ?? {}
  return threadId === undefined ? 0 : numberOf(threadId)
}

export function numberOf(threadId: number): number {
  return threadId + 1
}

/** The number of another thread, by the id that it has or had. */
export function otherThread(threadId: unknown): number {
  const own = threadNumber()
  if (own === 0) {
    throw new SluiceError(
      'UNSUPPORTED',
      'this runtime does not tell when a thread has ended: its part of a step is taken back after reclaimAfterMs',
    )
  }
  const isId = Number.isInteger(threadId) && (threadId as number) >= 0
  if (isId && numberOf(threadId as number) !== own) return numberOf(threadId as number)
  throw new SluiceError(
    'CONFIG',
    `threadId ${shown(threadId)} must be that of another thread: a whole number, 0 or more, read before the thread ends (then it is -1)`,
  )
}

/** A hint to the processor that another thread is to go on first. Not every runtime has it. */
const { pause } = Atomics as { pause?: (hint?: number) => void }

/**
 * How often is about four microseconds: a pause is some dozens of cycles, a turn of the loop
 * without it a few.
 */
const SHORTEST = pause === undefined ? 4096 : 256
/** After so many lost races in a row the waits grow no longer. */
const LONGEST = 2

let idled = 0
/** A word that nobody writes. */
let nobodys: Int32Array | undefined

/**
 * Waits for four to sixteen microseconds, longer with every lost race. Moving the cache lines of a
 * key from one processor to another takes as long as two calls, so the winner should make a few
 * dozen before they move again: two threads that take turns with every call get less done than one
 * alone.
 */
export function spin(lost: number): void {
  const times = SHORTEST << Math.min(lost, LONGEST)
  for (let k = 0; k < times; k++) {
    if (pause !== undefined) pause()
    else idled = (idled + k) | 0
  }
}

/**
 * Lets other threads have the processor for so long; where threads may not sleep, as in the main
 * thread of a browser, it only spins.
 */
export function rest(ms: number): void {
  try {
    nobodys ??= new Int32Array(new SharedArrayBuffer(4))
    Atomics.wait(nobodys, 0, 0, ms)
  } catch {
    spin(LONGEST)
  }
}
