/**
 * What a thread holds while it is in the middle of a step. Threads at rest hold nothing, so any number of them may come and go.
 *
 * A cell has a pocket of spare records. Whoever changes a key takes a cell (one swap of its state), writes the new records into spares, notes what
 * it is about to do, swaps the head, puts the records that the head let go into the pocket instead, and gives the cell back. Every record is
 * at any moment in exactly one chain or in exactly one pocket.
 *
 * A thread that dies in between leaves its cell taken, with the note in it. The cell of a thread that is known to have ended is taken over at once,
 * and any that has been seen in the same step for `reclaimAfterMs`: the note tells whether the head was swapped, and so which records the cell holds.
 */
import { SluiceError } from '../../errors.ts'
import type { AtomicOperations } from './atomic.ts'
import {
  BEFORE_SHIFT,
  BORE_AT,
  CELL_BITS,
  COUNT_MASK,
  COUNTS,
  FENCE,
  FREED_AT,
  FREED_HIGH,
  FREED_LOW,
  FREED_SHIFT,
  HEAD,
  HELD,
  LET_GO,
  NOTED,
  NOTHING,
  POCKET_AT,
  STATE,
  STEP_MASK,
  SWAPPED,
  TAG,
  TAG_MASK,
  THREAD,
  USED_SHIFT,
} from './cell-layout.ts'
import { type Chains, fixedDoubles } from './chains.ts'
import { CELL_INTS, FINGERPRINT_HIGH, FINGERPRINT_LOW, NEXT, NEXT_CELL, POCKET, SCOPE_AND_TAG, type SharedMemory } from './memory.ts'
import { Sightings } from './sightings.ts'
import { rest, spin } from './spin.ts'
import { threadNumber } from './thread-number.ts'

/**
 * How often a thread looks at all cells when all are taken, before it gives up: for about a millisecond, and then, letting other threads have the
 * processor, for twenty more, in case there are more threads at work than cells. It counts looks, not time, in which it may not have run itself.
 */
const ROUNDS_AWAKE = 64
const ROUNDS_ASLEEP = 20
/** How often a thread looks at all cells, so that the age of those of dead threads is known when a cell is needed. */
const LOOK_EVERY_US = 1_000_000

/** Gives every cell its spares: the records behind those that are in chains. */
export function fillPockets(memory: SharedMemory): void {
  for (let cell = 0; cell < memory.cellCount; cell++) {
    const at = memory.cellAt(cell)
    for (let k = 0; k < POCKET; k++) memory.ints[at + POCKET_AT + k] = memory.maxKeys + cell * POCKET + k + 1
    memory.ints[at + HELD] = POCKET
  }
}

/** The cell that a thread has, or had last: mostly nobody else wants it. */
export interface Held {
  at: number
  /** Counted from 1. */
  number: number
  /** Its state while the thread has, or had, it; 0 before the first time. One more, and it is as the thread left it. */
  state: number
}

export class Cells {
  readonly #memory: SharedMemory
  readonly #ints: Int32Array
  readonly #atomic: AtomicOperations
  readonly held: Held
  /** A word for `isStill`: of the cell that the thread began with, which others hardly ever use, and which it may since have left. */
  readonly fence: number
  /** When to call `look` next. */
  readonly nextLookUs = fixedDoubles(1)
  /** As cells name it; 0 where threads have no names. */
  readonly #thread: number
  readonly #sightings: Sightings
  #hasWaitedInVain = false

  constructor(memory: SharedMemory, thread = threadNumber()) {
    this.#thread = thread
    this.#memory = memory
    this.#sightings = new Sightings(memory.reclaimAfterMs)
    this.#ints = memory.ints
    this.#atomic = memory.atomic
    const cell = (Atomics.add(memory.ints, NEXT_CELL, 1) >>> 0) % memory.cellCount
    this.held = { at: memory.cellAt(cell), number: cell + 1, state: 0 }
    this.fence = this.held.at + FENCE
  }

  /** Takes a cell. */
  claim(): void {
    if (!this.#tryClaim(this.held.at)) this.#claimAnother()
  }

  /** Gives the cell back, unless it was taken over meanwhile. */
  release(): void {
    if (this.#ints[this.held.at] === this.held.state) this.#atomic.release(this.held.at + STATE, (this.held.state + 1) | 0)
  }

  /** What the records that are written now bear. */
  get tag(): number {
    return (((this.held.state >>> 1) & STEP_MASK) << CELL_BITS) | this.held.number
  }

  spare(k: number): number {
    return this.#ints[this.held.at + POCKET_AT + k] as number
  }

  /** Whether there is a spare that the cell does not need for itself: one more key can be held. */
  get hasSurplus(): boolean {
    return (this.#ints[this.held.at + HELD] as number) > POCKET
  }

  /**
   * Notes what is about to be done: spares 0 to `used` become the new beginning of a chain, and its first `freed` records are let go. If none is
   * used, call `noteFreed` first.
   */
  note(headAt: number, used: number, { chain, bore }: Pick<Chains, 'chain' | 'bore'>, freed: number): void {
    const ints = this.#ints
    const at = this.held.at
    ints[at + HEAD] = headAt
    ints[at + TAG] = this.tag
    for (let k = 0; k < freed; k++) {
      ints[at + FREED_AT + k] = chain[k] as number
      ints[at + BORE_AT + k] = bore[k] as number
    }
    // Last, because it makes the note complete.
    const counts = NOTED | (used << USED_SHIFT) | (freed << FREED_SHIFT) | ((ints[at + HELD] as number) << BEFORE_SHIFT)
    this.#atomic.release(at + COUNTS, counts)
  }

  /** Notes the fingerprint of a record that is to be let go, while it is in its chain: the tags of a cell repeat after 4,096 steps. */
  noteFreed(record: number): void {
    const ints = this.#ints
    const recordAt = this.#memory.recordAt(record)
    ints[this.held.at + FREED_LOW] = ints[recordAt + FINGERPRINT_LOW] as number
    ints[this.held.at + FREED_HIGH] = ints[recordAt + FINGERPRINT_HIGH] as number
  }

  /** The head was swapped, or not: the note is done with. */
  settle(swapped: boolean): void {
    if (swapped) this.#exchange()
    else this.#atomic.release(this.held.at + COUNTS, NOTHING)
  }

  /** Whether some cell that nobody has has one. */
  get anySurplus(): boolean {
    for (let cell = 0; cell < this.#memory.cellCount; cell++) {
      const at = this.#memory.cellAt(cell)
      if ((this.#atomic.load(at + STATE) & 1) === 0 && (this.#ints[at + HELD] as number) > POCKET) return true
    }
    return false
  }

  /** Goes over to a cell that has a surplus, if there is one. */
  changeToSurplus(): boolean {
    this.release()
    for (let cell = 0; cell < this.#memory.cellCount; cell++) {
      const at = this.#memory.cellAt(cell)
      const isWorthClaiming = (this.#ints[at + HELD] as number) > POCKET
      if (!this.takeOver(cell) && !(isWorthClaiming && this.#tryClaim(at))) continue
      if (this.hasSurplus) return true
      this.release()
    }
    this.claim()
    return this.hasSurplus
  }

  /** For a cell that this thread had last, and nobody since, `replace` in chains.ts swaps the state alone. */
  #tryClaim(at: number): boolean {
    const state = this.#atomic.load(at + STATE)
    return (state & 1) === 0 && this.#swap(at, state, this.#atomic.load(at + THREAD), (state + 1) | 0)
  }

  /** Makes a cell this thread's own: its state, and whose it is, in one swap. */
  #swap(at: number, state: number, thread: number, next: number): boolean {
    if (!this.#atomic.swapPair(at + STATE, state, thread, next, this.#thread)) return false
    this.#have(at, next)
    return true
  }

  #have(at: number, state: number): void {
    if (at !== this.held.at) {
      this.held.at = at
      this.held.number = this.#numberOf(at)
    }
    this.held.state = state
  }

  #numberOf(at: number): number {
    return (at - this.#memory.cellsAt) / CELL_INTS + 1
  }

  #claimAnother(): void {
    const { cellCount } = this.#memory
    // While all stay taken, one call waits for long, and not each.
    const rounds = this.#hasWaitedInVain ? ROUNDS_AWAKE : ROUNDS_AWAKE + ROUNDS_ASLEEP
    this.#hasWaitedInVain = false
    for (let round = 0; round < rounds; round++) {
      for (let cell = 0; cell < cellCount; cell++) if (this.#tryClaim(this.#memory.cellAt(cell)) || this.takeOver(cell)) return
      if (round < ROUNDS_AWAKE) spin(round)
      else rest(1)
    }
    this.#hasWaitedInVain = true
    throw tooMany(cellCount)
  }

  /** Takes over what a thread held that has ended. It must have: one that goes on would write into records that are others' by then. */
  free(thread: number): void {
    this.#besides(() => {
      for (let cell = 0; cell < this.#memory.cellCount; cell++) {
        const at = this.#memory.cellAt(cell)
        const state = this.#atomic.load(at + STATE)
        const isItsOwn = (state & 1) === 1 && this.#atomic.load(at + THREAD) === thread
        if (isItsOwn && this.#seize(at, state, thread)) this.release()
      }
    })
  }

  /** Looks at all cells, and takes over those that were taken for too long. To be called when `nextLookUs` has come. */
  look(nowUs: number): void {
    const isFirst = this.nextLookUs[0] === 0
    this.nextLookUs[0] = nowUs + LOOK_EVERY_US
    // A thread that has just begun has seen nothing yet, and may make one call only.
    if (isFirst) return
    this.#besides(() => {
      for (let cell = 0; cell < this.#memory.cellCount; cell++) if (this.takeOver(cell)) this.release()
    })
  }

  /** Has other cells for a while, and afterwards the one again that it had. Not to be called in the middle of a step. */
  #besides(act: () => void): void {
    const before = { ...this.held }
    act()
    Object.assign(this.held, before)
  }

  /** Takes over a cell whose thread has been in the same step for too long: then it is this thread's, as if claimed. */
  takeOver(cell: number): boolean {
    const at = this.#memory.cellAt(cell)
    const state = this.#atomic.load(at + STATE)
    if ((state & 1) === 0 || !this.#sightings.isTakenForTooLong(cell, state)) return false
    return this.#seize(at, state, this.#atomic.load(at + THREAD))
  }

  #seize(at: number, state: number, thread: number): boolean {
    // Still odd, but another step: of two who want to take it over one fails here. Who dies from here on has left its own name.
    if (!this.#swap(at, state, thread, (state + 2) | 0)) return false
    this.settle(this.#wasSwapped())
    return true
  }

  /**
   * The records that were let go take the place of the spares that were used. A thread may die here too, and whoever takes over does it again: so
   * nothing is read that is written here. Where as many are let go as were used, the first spare tells that the head was swapped, before and
   * after it is exchanged; otherwise that is written down first.
   */
  #exchange(): void {
    const ints = this.#ints
    const at = this.held.at
    const counts = ints[at + COUNTS] as number
    const used = (counts >> USED_SHIFT) & COUNT_MASK
    const freed = (counts >> FREED_SHIFT) & COUNT_MASK
    if (used !== freed) this.#exchangeUnequal(counts, used, freed)
    for (let k = 0; k < freed; k++) {
      const record = ints[at + FREED_AT + k] as number
      ints[this.#memory.recordAt(record) + SCOPE_AND_TAG] = LET_GO
      if (k < used) ints[at + POCKET_AT + k] = record
    }
    this.#atomic.release(at + COUNTS, NOTHING)
  }

  #exchangeUnequal(counts: number, used: number, freed: number): void {
    const ints = this.#ints
    const at = this.held.at
    const before = (counts >> BEFORE_SHIFT) & COUNT_MASK
    this.#atomic.release(at + COUNTS, (counts & ~COUNT_MASK) | SWAPPED)
    // One more than was used goes behind the others; or one less came back, and the last fills the gap.
    if (freed > used) ints[at + POCKET_AT + before] = ints[at + FREED_AT + used] as number
    else ints[at + POCKET_AT] = ints[at + POCKET_AT + before - 1] as number
    ints[at + HELD] = before - used + freed
  }

  /**
   * Whether the step that was noted in this cell did swap its head. Its thread is gone, so nothing that it wrote changes by its doing; and
   * whoever lets a record go marks it before it gives its own cell back.
   */
  #wasSwapped(): boolean {
    const { at } = this.held
    const counts = this.#atomic.load(at + COUNTS)
    const stage = counts & COUNT_MASK
    if (stage !== NOTED) return stage === SWAPPED
    return usedIn(counts) > 0 ? this.#hasPut(at) : this.#hasTaken(at)
  }

  /** Whether the first record that was written is, or has been, in the chain of the noted head. The order of the questions matters. */
  #hasPut(at: number): boolean {
    const record = this.#atomic.load(at + POCKET_AT)
    const bears = this.#wordOf(record)
    const isAsWritten = () => (this.#wordOf(record) & TAG_MASK) === this.#atomic.load(at + TAG)
    // Whoever lets it go, bearing this, saw it in the chain, whether it came to a swap or not.
    return !isAsWritten() || this.#isInChain(at, record) || this.#isLetGoByAnother(at, record, bears, () => true) || !isAsWritten()
  }

  /** Nothing was written, one record let go. If it is neither in its chain nor with others, it is here. */
  #hasTaken(at: number): boolean {
    const record = this.#atomic.load(at + FREED_AT)
    const bears = this.#wordOf(record)
    // Only one of those who were about to let it go did. Of one that has written something it can be told whether it was that one.
    const mayHaveIt = (other: number, counts: number) => usedIn(counts) === 0 || (counts & COUNT_MASK) === SWAPPED || this.#hasPut(other)
    const isElsewhere =
      !this.#isAsFreed(at, record) ||
      this.#isInChain(at, record) ||
      this.#isLetGoByAnother(at, record, bears, mayHaveIt) ||
      !this.#isAsFreed(at, record)
    return !isElsewhere
  }

  #isAsFreed(at: number, record: number): boolean {
    const ints = this.#ints
    const recordAt = this.#memory.recordAt(record)
    const isSameKey =
      ints[recordAt + FINGERPRINT_LOW] === ints[at + FREED_LOW] && ints[recordAt + FINGERPRINT_HIGH] === ints[at + FREED_HIGH]
    return this.#wordOf(record) === ints[at + BORE_AT] && isSameKey
  }

  #isInChain(at: number, record: number): boolean {
    const headAt = this.#atomic.load(at + HEAD)
    for (;;) {
      const version = this.#atomic.load(headAt + 1)
      let next = this.#atomic.load(headAt)
      for (let k = 0; k < POCKET && next !== 0 && next !== record; k++) next = this.#atomic.load(this.#memory.recordAt(next) + NEXT)
      if (this.#atomic.load(headAt + 1) === version) return next === record
    }
  }

  /**
   * Whether a step that is under way in another cell lets the record go, bearing that, and may have done so. A step that died before its swap may have
   * noted it long ago, when it was another's: then it bore something else.
   */
  #isLetGoByAnother(than: number, record: number, bears: number, mayHave: (at: number, counts: number) => boolean): boolean {
    for (let cell = 0; cell < this.#memory.cellCount; cell++) {
      const at = this.#memory.cellAt(cell)
      if (at !== than && this.#isLetGoBy(at, record, bears, mayHave)) return true
    }
    return false
  }

  #isLetGoBy(at: number, record: number, bears: number, mayHave: (at: number, counts: number) => boolean): boolean {
    for (;;) {
      const state = this.#atomic.load(at + STATE)
      const counts = this.#atomic.load(at + COUNTS)
      if ((state & 1) === 0 || counts === NOTHING) return false
      let found = false
      for (let k = 0; k < ((counts >> FREED_SHIFT) & COUNT_MASK); k++) {
        found ||= this.#atomic.load(at + FREED_AT + k) === record && this.#atomic.load(at + BORE_AT + k) === bears
      }
      if (!found || !mayHave(at, counts)) return false
      // Otherwise its step came to an end, or it was taken over too and the step still goes on: that is seen by looking again.
      if (this.#atomic.load(at + STATE) === state) return true
    }
  }

  /** What a record bears: its scope and tag. */
  #wordOf(record: number): number {
    return this.#atomic.load(this.#memory.recordAt(record) + SCOPE_AND_TAG)
  }
}

function usedIn(counts: number): number {
  return (counts >> USED_SHIFT) & COUNT_MASK
}

function tooMany(cells: number): SluiceError {
  return new SluiceError(
    'STORE',
    `all ${cells} places for threads in the middle of a step are taken: make the shared store with a larger maxThreads, and show it the threads that it outlives, by store.watch(worker)`,
  )
}
