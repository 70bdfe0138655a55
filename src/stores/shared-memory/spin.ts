/** A hint to the processor that somebody else is to go on first. Not every runtime has it. */
const { pause } = Atomics as { pause?: (hint?: number) => void }

/** After so many lost races in a row the waits grow no longer. */
const LONGEST = 9

let idled = 0

/** Waits for a moment, longer with every lost race but never long: whoever won can then go on without losing its cache lines at once. */
export function spin(lost: number): void {
  const times = 8 << Math.min(lost, LONGEST)
  for (let k = 0; k < times; k++) {
    if (pause !== undefined) pause()
    else idled = (idled + k) | 0
  }
}
