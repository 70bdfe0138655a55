/** How long cells were seen taken in the same step: all that can be known of a thread that nobody says has ended. */

/**
 * A look counts for no more than this of the time since the last, and for half of `reclaimAfterMs`: if the whole process was stopped in between, nobody
 * had a chance to go on.
 */
const LONGEST_LOOK_MS = 1_000

/** A cell that was seen taken: in which step, when last, and for how long in all. */
interface Sighting {
  readonly state: number
  lastMs: number
  heldMs: number
}

export class Sightings {
  readonly #reclaimAfterMs: number
  readonly #byCell: (Sighting | undefined)[] = []

  constructor(reclaimAfterMs: number) {
    this.#reclaimAfterMs = reclaimAfterMs
  }

  /** Notes that a cell is taken, in that state. Tells whether it has been for so long that its thread counts as ended. */
  isTakenForTooLong(cell: number, state: number): boolean {
    const nowMs = performance.now()
    const seen = this.#byCell[cell]
    if (seen?.state !== state) {
      this.#byCell[cell] = { state, lastMs: nowMs, heldMs: 0 }
      return false
    }
    seen.heldMs += Math.min(nowMs - seen.lastMs, LONGEST_LOOK_MS, this.#reclaimAfterMs / 2)
    seen.lastMs = nowMs
    return seen.heldMs >= this.#reclaimAfterMs
  }
}
