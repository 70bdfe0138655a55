/** A hint to the processor that somebody else is to go on first. Not every runtime has it. */
const { pause } = Atomics as { pause?: (hint?: number) => void }

/** How often is about four microseconds: a pause is some dozens of cycles, a turn of the loop without it a few. */
const SHORTEST = pause === undefined ? 4096 : 256
/** After so many lost races in a row the waits grow no longer. */
const LONGEST = 2

let idled = 0
/** A word that nobody writes. */
let nobodys: Int32Array | undefined

/**
 * Waits for four to sixteen microseconds, longer with every lost race. Moving the cache lines of a key from one processor to another takes as long as two
 * calls, so whoever won should make a few dozen before they move again: two threads that take turns with every call get less done than one alone.
 */
export function spin(lost: number): void {
  const times = SHORTEST << Math.min(lost, LONGEST)
  for (let k = 0; k < times; k++) {
    if (pause !== undefined) pause()
    else idled = (idled + k) | 0
  }
}

/** Lets other threads have the processor for so long; where threads may not sleep, as in the main thread of a browser, it only spins. */
export function rest(ms: number): void {
  try {
    nobodys ??= new Int32Array(new SharedArrayBuffer(4))
    Atomics.wait(nobodys, 0, 0, ms)
  } catch {
    spin(LONGEST)
  }
}
