/**
 * The protocol of one step that changes a chain: claim a journal, write new records into its
 * spares, note what is about to be done, swap the head, put the records that this freed in the
 * place of the spares that were used, release the journal. It is written here and nowhere else.
 * Every record is at any moment in exactly one chain or among the spares of exactly one journal.
 *
 * A thread that dies in between leaves its journal claimed, with the note in it: recovery.ts.
 *
 * A function that makes functions, as in chain.ts, and for the same reason.
 */
import { fixedInts } from './bytes.ts'
import * as layout from './layout.ts'

// As constants of this module. An import is read anew at each use, with a check whether it is
// initialised: a tenth of a call.
const { AT_REST, BEFORE_SHIFT, COUNT_MASK, COUNTS, FINGERPRINT_HIGH, FINGERPRINT_LOW, FREED_AT, FREED_HIGH, FREED_LOW, FREED_SHIFT } =
  layout
const {
  FREED_TAG,
  HEAD,
  HELD,
  JOURNAL_BITS,
  JOURNAL_INTS,
  NOTED,
  NOTHING,
  SCOPE_AND_TAG,
  SEEN_AT,
  SPARES,
  SPARES_AT,
  STATE,
  STEP_MASK,
  SWAPPED,
  TAG,
  THREAD,
  USED_SHIFT,
} = layout

/** The result of a look at a chain. */
export interface Seen {
  headAt: number
  version: number
  /** Its first record. */
  first: number
  /** How many records up to the one that was looked for, or all; and the record behind them. */
  length: number
  after: number
  /** The records, and the word of each with its scope and tag. */
  readonly records: Int32Array
  readonly tags: Int32Array
}

/** The journal that a thread has, or had last: mostly no other wants it. */
export interface HeldJournal {
  at: number
  /** Counted from 1. */
  number: number
  /**
   * Its state while the thread has, or had, it; 0 before the first time. One more, and it is as the
   * thread left it.
   */
  state: number
}

export interface Journal {
  /** The chain whose head is swapped. */
  readonly seen: Seen
  readonly held: HeldJournal
  /** Claims the journal that the thread had last, if no other has had it since. */
  reclaim(): boolean
  /** Claims the journal at a place, if no thread has it. */
  claim(at: number): boolean
  /**
   * Makes a journal this thread's own, if it is in that state, of that thread: its state, and whose
   * it is, in one swap.
   */
  take(at: number, state: number, thread: number, next: number): boolean
  /** The tag of the records that are written now. */
  tag(): number
  spare(k: number): number
  /** Whether it has more spares than it needs, and than it has at rest. */
  hasReserve(): boolean
  hasSurplus(): boolean
  /** Whether it can hold no more of them. */
  isLaden(): boolean
  /**
   * Makes `first` the first record of the chain that was seen: spares 0 to `used` are its new
   * beginning, and its first `freed` records leave it. False if another thread was faster.
   */
  swapHead(first: number, used: number, freed: number): boolean
  /**
   * Notes the fingerprint of a record that is to be freed, while it is in its chain: for a swap
   * that uses no spare.
   */
  noteFreed(record: number): void
  /** The head that was noted was swapped, or not: the note is done with. */
  finishNote(swapped: boolean): void
  /** Gives the journal back, unless it was taken over meanwhile. */
  release(): void
}

export function journalOf(memory: layout.SharedMemory, thread: number, first: number): Journal {
  const { ints, recordInts } = memory
  const { load, store, swap, swapPair } = memory.atomic
  const recordsAt = memory.recordAt(0)
  const seen: Seen = { headAt: 0, version: 0, first: 0, length: 0, after: 0, records: fixedInts(SPARES), tags: fixedInts(SPARES) }
  const { records, tags } = seen
  const held: HeldJournal = { at: memory.journalAt(first), number: first + 1, state: 0 }

  function reclaim(): boolean {
    // As this thread left it, so no other had it since, and it still bears this thread's name.
    const rest = (held.state + 1) | 0
    if ((rest & 1) === 1 || !swap(held.at, rest, (rest + 1) | 0)) return false
    held.state = (rest + 1) | 0
    return true
  }

  function claim(at: number): boolean {
    const state = load(at + STATE)
    return (state & 1) === 0 && take(at, state, load(at + THREAD), (state + 1) | 0)
  }

  function take(at: number, state: number, owner: number, next: number): boolean {
    if (!swapPair(at + STATE, state, owner, next, thread)) return false
    held.at = at
    held.number = (at - memory.journalsAt) / JOURNAL_INTS + 1
    held.state = next
    return true
  }

  function tag(): number {
    return (((held.state >>> 1) & STEP_MASK) << JOURNAL_BITS) | held.number
  }

  function spare(k: number): number {
    return ints[held.at + SPARES_AT + k] as number
  }

  function hasSurplus(): boolean {
    return (ints[held.at + HELD] as number) > AT_REST
  }

  function isLaden(): boolean {
    return (ints[held.at + HELD] as number) > AT_REST + 1
  }

  function hasReserve(): boolean {
    return (ints[held.at + HELD] as number) > SPARES
  }

  function swapHead(record: number, used: number, freed: number): boolean {
    const { at } = held
    const { headAt, version } = seen
    ints[at + HEAD] = headAt
    ints[at + TAG] = tag()
    for (let k = 0; k < freed; k++) {
      ints[at + FREED_AT + k] = records[k] as number
      ints[at + SEEN_AT + k] = tags[k] as number
    }
    // Last, because it makes the note complete.
    store(at + COUNTS, NOTED | (used << USED_SHIFT) | (freed << FREED_SHIFT) | ((ints[at + HELD] as number) << BEFORE_SHIFT))
    const swapped = swapPair(headAt, seen.first, version, record, (version + 1) | 0)
    finishNote(swapped)
    return swapped
  }

  function noteFreed(record: number): void {
    const recordAt = recordsAt + record * recordInts
    ints[held.at + FREED_LOW] = ints[recordAt + FINGERPRINT_LOW] as number
    ints[held.at + FREED_HIGH] = ints[recordAt + FINGERPRINT_HIGH] as number
  }

  /**
   * The records that were freed take the place of the spares that were used. A thread may die here
   * too, and the one that takes over does it again: so nothing is read that is written here. Where
   * as many are freed as were used, the first spare tells that the head was swapped, before and
   * after it is exchanged; otherwise that is written down first.
   */
  function finishNote(swapped: boolean): void {
    const { at } = held
    if (swapped) {
      const counts = ints[at + COUNTS] as number
      const used = (counts >> USED_SHIFT) & COUNT_MASK
      const freed = (counts >> FREED_SHIFT) & COUNT_MASK
      if (used !== freed) resize(at, counts, used, freed)
      for (let k = 0; k < freed; k++) {
        const record = ints[at + FREED_AT + k] as number
        ints[recordsAt + record * recordInts + SCOPE_AND_TAG] = FREED_TAG
        if (k < used) ints[at + SPARES_AT + k] = record
      }
    }
    store(at + COUNTS, NOTHING)
  }

  function resize(at: number, counts: number, used: number, freed: number): void {
    const before = (counts >> BEFORE_SHIFT) & COUNT_MASK
    store(at + COUNTS, (counts & ~COUNT_MASK) | SWAPPED)
    // One more than was used goes behind the others; or one less came back, and the last fills the
    // gap.
    if (freed > used) ints[at + SPARES_AT + before] = ints[at + FREED_AT + used] as number
    else ints[at + SPARES_AT] = ints[at + SPARES_AT + before - 1] as number
    ints[at + HELD] = before - used + freed
  }

  function release(): void {
    const { at, state } = held
    if (ints[at + STATE] === state) store(at + STATE, (state + 1) | 0)
  }

  return { seen, held, reclaim, claim, take, tag, spare, hasSurplus, hasReserve, isLaden, swapHead, noteFreed, finishNote, release }
}
