import type { Waiter } from './waiter.ts'

/**
 * The parts of an `AbortSignal` that Sluice needs: declared here, because not every project has the
 * types of a browser or of Node.
 */
export interface Abortable {
  readonly aborted: boolean
  readonly reason: unknown
  addEventListener(type: 'abort', listener: () => void, options?: { readonly once?: boolean }): void
  removeEventListener(type: 'abort', listener: () => void): void
}

/**
 * Waiters by their signal: one listener for each signal, however many wait on it, and none once all
 * have left.
 */
export class Signals {
  readonly #watched = new Map<Abortable, { readonly waiters: Set<Waiter>; readonly abort: () => void }>()

  watch(signal: Abortable, waiter: Waiter): void {
    const watched = this.#watched.get(signal)
    if (watched !== undefined) {
      watched.waiters.add(waiter)
      return
    }
    const waiters = new Set([waiter])
    const abort = () => {
      this.#watched.delete(signal)
      // First everybody leaves: nobody must get what another left behind, only to leave in turn.
      for (const each of waiters) each.giveUp(signal.reason)
      for (const queue of new Set([...waiters].map((each) => each.queue))) queue.goOn()
    }
    signal.addEventListener('abort', abort, { once: true })
    this.#watched.set(signal, { waiters, abort })
  }

  unwatch(signal: Abortable, waiter: Waiter): void {
    const watched = this.#watched.get(signal)
    if (watched === undefined) return
    watched.waiters.delete(waiter)
    if (watched.waiters.size > 0) return
    signal.removeEventListener('abort', watched.abort)
    this.#watched.delete(signal)
  }
}
