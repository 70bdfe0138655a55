import { SluiceError, shown } from '../../errors.ts'
import { isNode } from './shared-time.ts'

/** Something that is a thread to those who started it: a `Worker` of `node:worker_threads`. */
export interface WatchedThread {
  readonly threadId: number
  once(event: 'exit', listener: () => void): unknown
}

interface Runtime {
  readonly process?: { getBuiltinModule?(name: string): { readonly threadId?: number } | undefined }
}

/**
 * What this thread is called in a cell: its id in Node plus one, which no other thread of the process ever has. 0 elsewhere, where the end of a
 * thread is not told to others, or maybe before it has come.
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
