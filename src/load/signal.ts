/** A measure of the load of a process. */

/** A number that is read once an interval. */
export interface Signal {
  /** The value now, or since the last reading; undefined if nothing is known. */
  read(): number | undefined
  /** Frees what it holds. */
  close?(): void
}

/** A signal, or a function that answers it. */
export type SignalSource = Signal | (() => number | undefined)

export function signalOf(source: SignalSource): Signal {
  return typeof source === 'function' ? { read: source } : source
}
