/**
 * Looks into shared memory while no thread is in the middle of a step: every record must be in
 * exactly one place.
 */
import { AT_REST, NEXT, SCOPE_AND_TAG, type SharedHandle, SharedMemory, SPARES } from '../../src/stores/shared-memory/layout.ts'

/** As in layout.ts. */
const HELD = 2
const POCKET_AT = 16

export interface Audit {
  /** What is wrong, in words; nothing when all is well. */
  readonly faults: readonly string[]
  readonly keys: number
  /** Journals whose thread died in the middle of a step. */
  readonly takenCells: number
  readonly longestChain: number
}

/**
 * `ofTaken`: whether cells that are taken are looked into too. A dead thread's may list records
 * that are in a chain by now.
 */
export function audit(handle: SharedHandle, { ofTaken = false } = {}): Audit {
  const memory = new SharedMemory(handle)
  const { ints } = memory
  const faults: string[] = []
  const places = new Map<number, string>()
  const found = (record: number, place: string) => {
    if (record < 1 || record > memory.recordCount) faults.push(`${place} has ${record}, which is no record`)
    else if (places.has(record)) faults.push(`record ${record} is in ${places.get(record)} and in ${place}`)
    places.set(record, place)
  }
  let keys = 0
  let longestChain = 0
  for (let head = 0; head < memory.headCount; head++) {
    let length = 0
    for (let next = ints[memory.headAt(head)] as number; next !== 0 && length <= SPARES; length++) {
      found(next, `chain ${head}`)
      const at = memory.recordAt(next)
      if ((ints[at + SCOPE_AND_TAG] as number) >>> 20 !== 0) keys += 1
      next = ints[at + NEXT] as number
    }
    if (length > SPARES) faults.push(`chain ${head} is longer than ${SPARES}`)
    longestChain = Math.max(longestChain, length)
  }
  let takenCells = 0
  for (let cell = 0; cell < memory.journalCount; cell++) {
    const at = memory.journalAt(cell)
    const isTaken = ((ints[at] as number) & 1) === 1
    if (isTaken) takenCells += 1
    if (isTaken && !ofTaken) continue
    for (let k = 0; k < (ints[at + HELD] as number); k++) found(ints[at + POCKET_AT + k] as number, `cell ${cell}`)
  }
  const missing = memory.recordCount - places.size
  // A dead thread's records are found again when its cell is taken over. It has 15 of its own at
  // most.
  if (missing > takenCells * (AT_REST + 2)) faults.push(`${missing} records are nowhere`)
  if (takenCells === 0 && missing !== 0) faults.push(`${missing} records are nowhere, though no thread has any`)
  return { faults, keys, takenCells, longestChain }
}
