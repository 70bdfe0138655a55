/**
 * What a thread holds while it is in the middle of a step. Threads at rest hold nothing, so any number of them may come and go.
 *
 * A cell has a pocket of spare records. Whoever changes a key takes a cell (one swap of its state), writes the new records into spares, notes what
 * it is about to do, swaps the head, puts the records that the head let go into the pocket instead, and gives the cell back. Every record is
 * at any moment in exactly one chain or in exactly one pocket.
 *
 * A thread that dies in between leaves its cell taken, with the note in it. A cell that has been seen in the same step for `reclaimAfterMs`
 * is taken over: the note tells whether the head was swapped, and so which records the cell holds.
 */
import { SluiceError } from '../../errors.ts'
import { CELL_INTS, NEXT, NEXT_CELL, POCKET, SCOPE_AND_TAG, type SharedMemory } from './memory.ts'
import { spin } from './spin.ts'

/** Even at rest, odd while a thread has it. Counts up, so that one step is told from the next. */
const STATE = 0
/** Written and never read: what is read before it was read before what is read after it. */
const FENCE = 1
const STAGE = 2
/** The note: which head, how many spares were used and how many records it lets go, how many spares there were. */
const HEAD = 3
const USED = 4
const FREED = 5
const HELD_BEFORE = 6
/** The first record that was written, the tag it bears, and the tag of the first one that is let go. */
const FIRST = 7
const TAG = 8
const FREED_TAG = 9
const HELD = 10
const POCKET_AT = 16
const FREED_AT = 32

/** Nothing noted yet; the note is complete and the head may have been swapped; the head was swapped. */
const NOTHING = 0
const NOTED = 1
const SWAPPED = 2

/** A tag tells by which step a record was written: 8 bits for the cell, 12 for the step. It shares a word with the scope. */
export const TAG_BITS = 20
const TAG_MASK = 2 ** TAG_BITS - 1
const CELL_BITS = 8
const STEP_MASK = 2 ** (TAG_BITS - CELL_BITS) - 1
/** Of a record that was let go. No step has it, because there are fewer cells. */
const LET_GO = TAG_MASK
export const MOST_CELLS = 2 ** CELL_BITS - 2

/** How long a thread waits for a cell when all are taken. */
const PATIENCE_MS = 1_000
const ROUNDS_BETWEEN_LOOKS = 256

/** A cell that was seen taken: in which step, and since when. */
interface Sighting {
  readonly state: number
  readonly sinceMs: number
}

/** Gives every cell its spares: the records behind those of the heads. */
export function fillPockets(memory: SharedMemory): void {
  for (let cell = 0; cell < memory.cellCount; cell++) {
    const at = memory.cellAt(cell)
    for (let k = 0; k < POCKET; k++) memory.ints[at + POCKET_AT + k] = memory.headCount + cell * POCKET + k + 1
    memory.ints[at + HELD] = POCKET
  }
}

export class Cells {
  readonly #memory: SharedMemory
  readonly #ints: Int32Array
  /** The cell that this thread had last: mostly nobody else wants it. */
  #at: number
  #state = 0
  readonly #sightings: (Sighting | undefined)[] = []

  constructor(memory: SharedMemory) {
    this.#memory = memory
    this.#ints = memory.ints
    this.#at = memory.cellAt((Atomics.add(memory.ints, NEXT_CELL, 1) >>> 0) % memory.cellCount)
  }

  /** Everything read before is read before everything after. */
  fence(): void {
    Atomics.store(this.#ints, this.#at + FENCE, 0)
  }

  /** Takes a cell. */
  claim(): void {
    if (!this.#tryClaim(this.#at, this.#ints[this.#at] as number)) this.#claimAnother()
  }

  /** Gives the cell back. */
  release(): void {
    Atomics.store(this.#ints, this.#at + STATE, (this.#state + 1) | 0)
  }

  /** What the records that are written now bear. */
  get tag(): number {
    const cell = (this.#at - this.#memory.cellsAt) / CELL_INTS
    return (((this.#state >>> 1) & STEP_MASK) << CELL_BITS) | (cell + 1)
  }

  spare(k: number): number {
    return this.#ints[this.#at + POCKET_AT + k] as number
  }

  /** Whether there is a spare that the cell does not need for itself: one more key can be held. */
  get hasSurplus(): boolean {
    return (this.#ints[this.#at + HELD] as number) > POCKET
  }

  /** Notes what is about to be done: spares 0 to `used` become the new beginning of a chain, and its first `freed` records are let go. */
  note(headAt: number, used: number, chain: Int32Array, freed: number): void {
    const ints = this.#ints
    const at = this.#at
    ints[at + HEAD] = headAt
    ints[at + USED] = used
    ints[at + FREED] = freed
    ints[at + HELD_BEFORE] = ints[at + HELD] as number
    ints[at + FIRST] = ints[at + POCKET_AT] as number
    ints[at + TAG] = this.tag
    for (let k = 0; k < freed; k++) ints[at + FREED_AT + k] = chain[k] as number
    if (used === 0) ints[at + FREED_TAG] = this.#tagOf(chain[0] as number)
    ints[at + STAGE] = NOTED
  }

  /** The head was swapped, or not: the note is done with. */
  settle(swapped: boolean): void {
    if (swapped) this.#exchange()
    else this.#ints[this.#at + STAGE] = NOTHING
  }

  /** Goes over to a cell that has a surplus, if there is one. */
  changeToSurplus(): boolean {
    this.release()
    for (let cell = 0; cell < this.#memory.cellCount; cell++) {
      const at = this.#memory.cellAt(cell)
      const state = Atomics.load(this.#ints, at + STATE)
      const isWorthClaiming = (this.#ints[at + HELD] as number) > POCKET
      if (!this.#takeOver(cell, at, state) && !(isWorthClaiming && this.#tryClaim(at, state))) continue
      if (this.hasSurplus) return true
      this.release()
    }
    this.claim()
    return this.hasSurplus
  }

  #tryClaim(at: number, state: number): boolean {
    if ((state & 1) === 1 || Atomics.compareExchange(this.#ints, at + STATE, state, (state + 1) | 0) !== state) return false
    this.#at = at
    this.#state = (state + 1) | 0
    return true
  }

  #claimAnother(): void {
    const { cellCount } = this.#memory
    const untilMs = performance.now() + PATIENCE_MS
    for (let round = 0; ; round++) {
      for (let cell = 0; cell < cellCount; cell++) {
        const at = this.#memory.cellAt(cell)
        const state = Atomics.load(this.#ints, at + STATE)
        if (this.#tryClaim(at, state) || this.#takeOver(cell, at, state)) return
      }
      if (round % ROUNDS_BETWEEN_LOOKS === ROUNDS_BETWEEN_LOOKS - 1 && performance.now() > untilMs) throw tooMany(cellCount)
      spin(round)
    }
  }

  /** Takes over a cell whose thread has been in the same step for too long. */
  #takeOver(cell: number, at: number, state: number): boolean {
    if ((state & 1) === 0) return false
    const nowMs = performance.now()
    const seen = this.#sightings[cell]
    if (seen?.state !== state) {
      this.#sightings[cell] = { state, sinceMs: nowMs }
      return false
    }
    if (nowMs - seen.sinceMs < this.#memory.reclaimAfterMs) return false
    // Still odd, but another step: of two who want to take it over one fails here.
    if (Atomics.compareExchange(this.#ints, at + STATE, state, (state + 2) | 0) !== state) return false
    this.#at = at
    this.#state = (state + 2) | 0
    if (this.#wasSwapped()) this.#exchange()
    else this.#ints[at + STAGE] = NOTHING
    return true
  }

  /** The records that were let go take the place of the spares that were used. Whoever takes over may have to do it once more: nothing is read that it writes. */
  #exchange(): void {
    const ints = this.#ints
    const at = this.#at
    ints[at + STAGE] = SWAPPED
    const used = ints[at + USED] as number
    const freed = ints[at + FREED] as number
    const before = ints[at + HELD_BEFORE] as number
    for (let k = 0; k < freed; k++) {
      const record = ints[at + FREED_AT + k] as number
      this.#setTag(record, LET_GO)
      // One more than was used goes behind the others.
      ints[at + POCKET_AT + (k < used ? k : before)] = record
    }
    // One less: the last fills the gap.
    if (freed < used) ints[at + POCKET_AT] = ints[at + POCKET_AT + before - 1] as number
    ints[at + HELD] = before - used + freed
    ints[at + STAGE] = NOTHING
  }

  /**
   * Whether the step that was noted in this cell did swap its head. Its thread is gone, so nothing that it wrote changes by its doing; and
   * whoever lets a record go marks it before it gives its own cell back.
   */
  #wasSwapped(): boolean {
    const stage = Atomics.load(this.#ints, this.#at + STAGE)
    if (stage !== NOTED) return stage === SWAPPED
    const first = this.#ints[this.#at + FIRST] as number
    if ((this.#ints[this.#at + USED] as number) > 0) return this.#isElsewhere(first, this.#ints[this.#at + TAG] as number)
    // Nothing was written, one record let go. If it is neither in its chain nor with others, it is here.
    const record = this.#ints[this.#at + FREED_AT] as number
    return !this.#isElsewhere(record, this.#ints[this.#at + FREED_TAG] as number)
  }

  /** Whether a record that bore `tag` is, or has been, in the chain of the noted head or with others. The order of the questions matters. */
  #isElsewhere(record: number, tag: number): boolean {
    if (this.#tagOf(record) !== tag || this.#isInChain(record) || this.#isLetGoByAnother(record)) return true
    return this.#tagOf(record) !== tag
  }

  #isInChain(record: number): boolean {
    const headAt = this.#ints[this.#at + HEAD] as number
    for (;;) {
      const version = Atomics.load(this.#ints, headAt + 1)
      let next = Atomics.load(this.#ints, headAt)
      for (let k = 0; k < POCKET && next !== 0 && next !== record; k++) next = Atomics.load(this.#ints, this.#memory.recordAt(next) + NEXT)
      if (Atomics.load(this.#ints, headAt + 1) === version) return next === record
    }
  }

  /** Whether a step that is under way in another cell lets the record go. */
  #isLetGoByAnother(record: number): boolean {
    const ints = this.#ints
    for (let cell = 0; cell < this.#memory.cellCount; cell++) {
      const at = this.#memory.cellAt(cell)
      const state = Atomics.load(ints, at + STATE)
      if (at === this.#at || (state & 1) === 0 || Atomics.load(ints, at + STAGE) === NOTHING) continue
      let found = false
      for (let k = 0; k < Atomics.load(ints, at + FREED); k++) found ||= Atomics.load(ints, at + FREED_AT + k) === record
      if (found && Atomics.load(ints, at + STATE) === state) return true
    }
    return false
  }

  #tagOf(record: number): number {
    return Atomics.load(this.#ints, this.#memory.recordAt(record) + SCOPE_AND_TAG) & TAG_MASK
  }

  #setTag(record: number, tag: number): void {
    const at = this.#memory.recordAt(record) + SCOPE_AND_TAG
    this.#ints[at] = ((this.#ints[at] as number) & ~TAG_MASK) | tag
  }
}

function tooMany(cells: number): SluiceError {
  return new SluiceError(
    'STORE',
    `all ${cells} places for threads in the middle of a step are taken: make the shared store with a larger maxThreads`,
  )
}
