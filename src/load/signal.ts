/** What tells how loaded a process is. */

/** A number that is read once an interval. */
export interface Signal {
  /** What it is now, or was since the last reading; undefined if nothing is known. */
  read(): number | undefined
  /** Frees what it holds. */
  close?(): void
}

/** A signal, or a function that answers it. */
export type SignalSource = Signal | (() => number | undefined)

export function signalOf(source: SignalSource): Signal {
  return typeof source === 'function' ? { read: source } : source
}
