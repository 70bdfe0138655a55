/** What lies where in a cell, in 32-bit words: cells.ts tells what for. */
import { TAG_BITS } from './memory.ts'

/** Even at rest, odd while a thread has it. Counts up, so that one step is told from the next. */
export const STATE = 0
/** Which thread has it, or had it last. Both are swapped as one, so that they never disagree about who is in which step. */
export const THREAD = 1
/** How many records the cell holds. */
export const HELD = 2
/** The note: what stage the step is at and how many records it uses and lets go, which head, what tag its records bear. */
export const COUNTS = 3
export const HEAD = 4
export const TAG = 5
/** Written and never read: what is read before it was read before what is read after it. */
export const FENCE = 6
/** If no record was written: the fingerprint of the one that is let go. */
export const FREED_LOW = 7
export const FREED_HIGH = 8
export const POCKET_AT = 16
/** The records that are let go, and the word of each with its scope and tag, as it was in the chain. */
export const FREED_AT = 32
export const BORE_AT = 48

/** Nothing noted yet; the note is complete and the head may have been swapped; the head was swapped. */
export const NOTHING = 0
export const NOTED = 1
export const SWAPPED = 2
/** The counts and the stage are one word: 4 bits for each, 4 more for how many records the cell held before. */
export const COUNT_BITS = 4
export const COUNT_MASK = 2 ** COUNT_BITS - 1
export const USED_SHIFT = COUNT_BITS
export const FREED_SHIFT = 2 * COUNT_BITS
export const BEFORE_SHIFT = 3 * COUNT_BITS

/** A tag tells by which step a record was written: 8 bits for the cell, 12 for the step. */
export const TAG_MASK = 2 ** TAG_BITS - 1
export const CELL_BITS = 8
export const STEP_MASK = 2 ** (TAG_BITS - CELL_BITS) - 1
/** Of a record that was let go. No step has it, because there are fewer cells. */
export const LET_GO = TAG_MASK
export const MOST_CELLS = 2 ** CELL_BITS - 2
