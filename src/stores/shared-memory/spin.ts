/** A hint to the processor that somebody else is to go on first. Not every runtime has it. */
const { pause } = Atomics as { pause?: (hint?: number) => void }

/** How often is about a microsecond: a pause is some dozens of cycles, a turn of the loop without it a few. */
const MICROSECOND = pause === undefined ? 1024 : 64
/** After so many lost races in a row the waits grow no longer. */
const LONGEST = 3

let idled = 0

/**
 * Waits for one to eight microseconds, longer with every lost race. Moving the cache lines of a key from one processor to another takes as long as two
 * calls, so whoever won should make a few before they move again: two threads that take turns with every call get less done than one alone.
 */
export function spin(lost: number): void {
  const times = MICROSECOND << Math.min(lost, LONGEST)
  for (let k = 0; k < times; k++) {
    if (pause !== undefined) pause()
    else idled = (idled + k) | 0
  }
}
