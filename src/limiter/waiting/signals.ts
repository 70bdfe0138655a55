/** What goes on without those who left. */
interface Left {
  goOn(): void
}

import type { Abortable } from '../input.ts'

/** Who leaves when a signal aborts: one listener for each signal, however many wait on it, and none once nobody does. */
export class Signals {
  readonly #watched = new Map<Abortable, { readonly leavers: Set<() => Left>; readonly listener: () => void }>()

  watch(signal: Abortable, leave: () => Left): void {
    const watched = this.#watched.get(signal)
    if (watched !== undefined) {
      watched.leavers.add(leave)
      return
    }
    const leavers = new Set([leave])
    const listener = () => {
      this.#watched.delete(signal)
      // First everybody leaves: nobody must get what another left behind, only to leave in turn.
      const left = new Set<Left>()
      for (const leave of leavers) left.add(leave())
      for (const each of left) each.goOn()
    }
    signal.addEventListener('abort', listener, { once: true })
    this.#watched.set(signal, { leavers, listener })
  }

  unwatch(signal: Abortable, leave: () => Left): void {
    const watched = this.#watched.get(signal)
    if (watched === undefined) return
    watched.leavers.delete(leave)
    if (watched.leavers.size > 0) return
    signal.removeEventListener('abort', watched.listener)
    this.#watched.delete(signal)
  }
}
