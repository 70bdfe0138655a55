/**
 * Finds out about a step whose thread has died: whether it swapped its head, and so which records
 * its journal holds, the spares or those that were freed.
 * Nothing that the dead thread wrote changes by its doing, and a thread that frees a record marks
 * it before it releases its own journal.
 *
 * The order of the questions matters: docs/decisions/shared-memory.md.
 */
import {
  COUNT_MASK,
  COUNTS,
  FINGERPRINT_HIGH,
  FINGERPRINT_LOW,
  FREED_AT,
  FREED_HIGH,
  FREED_LOW,
  FREED_SHIFT,
  HEAD,
  NEXT,
  NOTED,
  NOTHING,
  SCOPE_AND_TAG,
  SEEN_AT,
  type SharedMemory,
  SPARES,
  SPARES_AT,
  STATE,
  SWAPPED,
  TAG,
  TAG_MASK,
  USED_SHIFT,
} from './layout.ts'

/** Whether the step that was noted in the journal at a place did swap its head. */
export function wasSwapped(memory: SharedMemory, at: number): boolean {
  const counts = memory.atomic.load(at + COUNTS)
  const stage = counts & COUNT_MASK
  if (stage !== NOTED) return stage === SWAPPED
  return usedIn(counts) > 0 ? hasPut(memory, at) : hasTaken(memory, at)
}

/** Whether the first record that was written is, or has been, in the chain of the noted head. */
function hasPut(memory: SharedMemory, at: number): boolean {
  const { load } = memory.atomic
  const record = load(at + SPARES_AT)
  const seen = tagOf(memory, record)
  const isAsWritten = () => (tagOf(memory, record) & TAG_MASK) === load(at + TAG)
  // A step that frees it, with this tag, saw it in the chain, whether it came to a swap or not.
  return !isAsWritten() || isInChain(memory, at, record) || isFreedByAnother(memory, at, record, seen, () => true) || !isAsWritten()
}

/**
 * Nothing was written, one record freed. If it is neither in its chain nor with others, it is here.
 */
function hasTaken(memory: SharedMemory, at: number): boolean {
  const record = memory.atomic.load(at + FREED_AT)
  const seen = tagOf(memory, record)
  // Several dead steps may have tried to free this record, and one did. A step that wrote a record
  // can be told by that.
  const mayHaveIt = (other: number, counts: number) => usedIn(counts) === 0 || (counts & COUNT_MASK) === SWAPPED || hasPut(memory, other)
  return (
    isAsSeen(memory, at, record) &&
    !isInChain(memory, at, record) &&
    !isFreedByAnother(memory, at, record, seen, mayHaveIt) &&
    isAsSeen(memory, at, record)
  )
}

/** The tags of a journal repeat after 4,096 steps, so the fingerprint is compared too. */
function isAsSeen(memory: SharedMemory, at: number, record: number): boolean {
  const { ints } = memory
  const recordAt = memory.recordAt(record)
  const isSameKey = ints[recordAt + FINGERPRINT_LOW] === ints[at + FREED_LOW] && ints[recordAt + FINGERPRINT_HIGH] === ints[at + FREED_HIGH]
  return tagOf(memory, record) === ints[at + SEEN_AT] && isSameKey
}

function isInChain(memory: SharedMemory, at: number, record: number): boolean {
  const { load } = memory.atomic
  const headAt = load(at + HEAD)
  for (;;) {
    const version = load(headAt + 1)
    let next = load(headAt)
    for (let k = 0; k < SPARES && next !== 0 && next !== record; k++) next = load(memory.recordAt(next) + NEXT)
    if (load(headAt + 1) === version) return next === record
  }
}

/**
 * Whether a step that is under way in another journal frees the record, with that tag, and may have
 * done so. A step that died before its swap may have noted it long ago, when it was another's: then
 * it had another tag.
 */
function isFreedByAnother(memory: SharedMemory, than: number, record: number, seen: number, mayHave: MayHave): boolean {
  for (let journal = 0; journal < memory.journalCount; journal++) {
    const at = memory.journalAt(journal)
    if (at !== than && isFreedBy(memory, at, record, seen, mayHave)) return true
  }
  return false
}

type MayHave = (at: number, counts: number) => boolean

function isFreedBy(memory: SharedMemory, at: number, record: number, seen: number, mayHave: MayHave): boolean {
  const { load } = memory.atomic
  for (;;) {
    const state = load(at + STATE)
    const counts = load(at + COUNTS)
    if ((state & 1) === 0 || counts === NOTHING) return false
    let found = false
    for (let k = 0; k < ((counts >> FREED_SHIFT) & COUNT_MASK); k++) {
      found ||= load(at + FREED_AT + k) === record && load(at + SEEN_AT + k) === seen
    }
    if (!found || !mayHave(at, counts)) return false
    // Otherwise its step came to an end, or it was taken over too and the step still goes on: that
    // is seen by looking again.
    if (load(at + STATE) === state) return true
  }
}

/** The word of a record with its scope and tag. */
function tagOf(memory: SharedMemory, record: number): number {
  return memory.atomic.load(memory.recordAt(record) + SCOPE_AND_TAG)
}

function usedIn(counts: number): number {
  return (counts >> USED_SHIFT) & COUNT_MASK
}
