/**
 * One chain at a time: looking for a key, and putting another record in the place of one. All calls go through here.
 *
 * A function that makes functions, not a class: while a thread has one shared store, the compiler takes what they close over for constants, and the
 * bytes for bytes at a known address. The path takes a quarter less than with the fields of an object.
 */
import * as cellLayout from './cell-layout.ts'
import type { Cells } from './cells.ts'
import { fingerprint } from './fingerprint.ts'
import * as layout from './memory.ts'

// As constants of this module. What is imported is read anew at each use, and whether it is there yet is checked: a tenth of a call.
const { FINGERPRINT_HIGH, FINGERPRINT_LOW, IDLE_AT, NEXT, POCKET, RECORD_HEADER_WORDS, SCOPE_AND_TAG, TAG_BITS } = layout
const { BORE_AT, CELL_BITS, COUNTS, FREED_AT, FREED_SHIFT, HEAD, LET_GO, NOTED, NOTHING, POCKET_AT, STEP_MASK, TAG, USED_SHIFT } =
  cellLayout

/** What `find` answers besides a place in the chain. */
export const ABSENT = -1
export const LOST = -2
// As constants of this module too: what is exported is read like what is imported.
const [NOWHERE, OUTRUN] = [ABSENT, LOST]

/** Longer ones are not worth looking for: the limiter refuses them. */
export const LONGEST_KEY = 1024

/** Whose keys are looked for: the number of a limiter, and what the fingerprints of its keys are keyed with. */
export interface Address {
  readonly scope: number
  readonly seedLow: number
  readonly seedHigh: number
}

/** What the last look at a chain saw: the head, its version, its first record, how many up to the one that was looked for, and the one behind that. */
export interface Seen {
  headAt: number
  version: number
  first: number
  length: number
  after: number
}

export interface Chains {
  readonly seen: Seen
  /** The records of the chain that was seen. */
  readonly chain: Int32Array
  /** The word of each with its scope and tag. */
  readonly bore: Int32Array
  /** What was looked for last. */
  readonly sought: Int32Array
  /** When the key that is about to be put is idle. Set here, because an argument of this size would be made an object of. */
  readonly idleAtUs: Float64Array
  /** Looks for a key and copies its words: its place in the chain, `ABSENT`, or `LOST` if another thread was faster. */
  find(key: string, address: Address, words: Float64Array): number
  /** Looks at a whole chain. Whether that is what it was is not checked: ask `isAsSeen` before anything is noted of it. */
  look(headAt: number): void
  isAsSeen(): boolean
  /**
   * Puts the key that was looked for in the place of a record that was seen: under a limiter's number, or 0 if it is to be forgotten. Set `idleAtUs` first.
   * False if another thread was faster.
   */
  replace(place: number, scope: number, words: Float64Array): boolean
  /** Copies the first `count` records of the chain into the spares from `spare` on, behind the record `last`. Returns the last one now. */
  copied(spare: number, count: number, last: number): number
  link(record: number, next: number): void
}

/**
 * Arrays that lie outside of the heap, because they are given a buffer: where they lie never changes, and the compiler takes that for a constant too. Small
 * ones lie in the heap otherwise, and are asked where and how long they are at each use.
 */
function fixedInts(count: number): Int32Array {
  return new Int32Array(new ArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT))
}

export function fixedDoubles(count: number): Float64Array {
  return new Float64Array(new ArrayBuffer(count * Float64Array.BYTES_PER_ELEMENT))
}

export function chainsOf(memory: layout.SharedMemory, cells: Cells): Chains {
  const { ints, doubles, recordInts } = memory
  const { acquire, isStill, release, swap, swapPair } = memory.atomic
  const { held, fence } = cells
  const headsAt = memory.headAt(0)
  const headsPerBit = memory.headCount / 2 ** 32
  // So that a record's number times its length leads to it: the numbers begin with 1.
  const recordsAt = memory.recordAt(0)
  const recordWords = recordInts >> 1
  const sought = fixedInts(2)
  const chain = fixedInts(POCKET)
  const bore = fixedInts(POCKET)
  const idleAtUs = fixedDoubles(1)
  const seen: Seen = { headAt: 0, version: 0, first: 0, length: 0, after: 0 }

  function find(key: string, { scope, seedLow, seedHigh }: Address, words: Float64Array): number {
    if (key.length > LONGEST_KEY) return NOWHERE
    fingerprint(key, seedLow, seedHigh, sought)
    const low = sought[0] as number
    const high = sought[1] as number
    // As a fraction the low half chooses a head: its bits are evenly spread.
    const headAt = headsAt + ((((low >>> 0) * headsPerBit) | 0) << 1)
    const version = acquire(headAt + 1)
    let next = ints[headAt] as number
    let place: number = NOWHERE
    let length = 0
    seen.first = next
    while (next !== 0 && length < POCKET) {
      const at = recordsAt + next * recordInts
      const scopeAndTag = ints[at + SCOPE_AND_TAG] as number
      chain[length] = next
      bore[length] = scopeAndTag
      length += 1
      next = ints[at + NEXT] as number
      if (ints[at] === low && ints[at + FINGERPRINT_HIGH] === high && scopeAndTag >>> TAG_BITS === scope) {
        place = length - 1
        const from = (at >> 1) + RECORD_HEADER_WORDS
        // No limit has less than five words, figures included. A loop for those would take longer than they do.
        words[0] = doubles[from] as number
        words[1] = doubles[from + 1] as number
        words[2] = doubles[from + 2] as number
        words[3] = doubles[from + 3] as number
        words[4] = doubles[from + 4] as number
        for (let k = 5; k < words.length; k++) words[k] = doubles[from + k] as number
        break
      }
    }
    seen.headAt = headAt
    seen.version = version
    seen.length = length
    seen.after = next
    return isStill(headAt + 1, version, fence) ? place : OUTRUN
  }

  function look(headAt: number): void {
    seen.headAt = headAt
    seen.version = acquire(headAt + 1)
    seen.first = ints[headAt] as number
    seen.after = 0
    seen.length = 0
    for (let next = seen.first; next !== 0 && seen.length < POCKET; next = ints[recordsAt + next * recordInts + NEXT] as number) {
      chain[seen.length] = next
      bore[seen.length] = ints[recordsAt + next * recordInts + SCOPE_AND_TAG] as number
      seen.length += 1
    }
  }

  function isAsSeen(): boolean {
    return isStill(seen.headAt + 1, seen.version, fence)
  }

  /**
   * As many records are let go as are written: the usual case. Claim, note, swap, exchange and release (cells.ts) are spelt out here, as is the
   * writing: the compiler leaves a function of this size in one piece. In small pieces the path takes a fifth longer.
   */
  function replace(place: number, scope: number, words: Float64Array): boolean {
    // As this thread left it, so nobody had it since, and it still bears this thread's name.
    const rest = (held.state + 1) | 0
    if ((rest & 1) === 0 && swap(held.at, rest, (rest + 1) | 0)) held.state = (rest + 1) | 0
    else cells.claim()
    const { at: cellAt, number, state } = held
    const { headAt, version } = seen
    const tag = (((state >>> 1) & STEP_MASK) << CELL_BITS) | number
    const behind = place + 1 < seen.length ? (chain[place + 1] as number) : seen.after
    const first = ints[cellAt + POCKET_AT] as number
    const at = recordsAt + first * recordInts
    ints[at + FINGERPRINT_LOW] = sought[0] as number
    ints[at + FINGERPRINT_HIGH] = sought[1] as number
    ints[at + NEXT] = behind
    ints[at + SCOPE_AND_TAG] = (scope << TAG_BITS) | tag
    doubles[(at >> 1) + IDLE_AT] = idleAtUs[0] as number
    const to = (at >> 1) + RECORD_HEADER_WORDS
    doubles[to] = words[0] as number
    doubles[to + 1] = words[1] as number
    doubles[to + 2] = words[2] as number
    doubles[to + 3] = words[3] as number
    doubles[to + 4] = words[4] as number
    for (let k = 5; k < words.length; k++) doubles[to + k] = words[k] as number
    if (place > 0) link(copied(1, place, first), behind)
    ints[cellAt + HEAD] = headAt
    ints[cellAt + TAG] = tag
    for (let k = 0; k <= place; k++) {
      ints[cellAt + FREED_AT + k] = chain[k] as number
      ints[cellAt + BORE_AT + k] = bore[k] as number
    }
    release(cellAt + COUNTS, NOTED | ((place + 1) << USED_SHIFT) | ((place + 1) << FREED_SHIFT))
    const swapped = swapPair(headAt, chain[0] as number, version, first, (version + 1) | 0)
    for (let k = 0; swapped && k <= place; k++) {
      const record = chain[k] as number
      ints[recordsAt + record * recordInts + SCOPE_AND_TAG] = LET_GO
      ints[cellAt + POCKET_AT + k] = record
    }
    release(cellAt + COUNTS, NOTHING)
    if (ints[cellAt] === state) release(cellAt, (state + 1) | 0)
    return swapped
  }

  function copied(spare: number, count: number, last: number): number {
    let end = last
    for (let k = 0; k < count; k++) {
      const record = cells.spare(spare + k)
      copy(chain[k] as number, record)
      if (end !== 0) link(end, record)
      end = record
    }
    return end
  }

  function copy(from: number, to: number): void {
    const source = recordsAt + from * recordInts
    const target = recordsAt + to * recordInts
    // The fingerprint as whole numbers: as a double it could be no number, and those are not copied bit by bit.
    ints[target + FINGERPRINT_LOW] = ints[source + FINGERPRINT_LOW] as number
    ints[target + FINGERPRINT_HIGH] = ints[source + FINGERPRINT_HIGH] as number
    ints[target + SCOPE_AND_TAG] = (((ints[source + SCOPE_AND_TAG] as number) >>> TAG_BITS) << TAG_BITS) | cells.tag
    for (let k = IDLE_AT; k < recordWords; k++) doubles[(target >> 1) + k] = doubles[(source >> 1) + k] as number
  }

  function link(record: number, next: number): void {
    ints[recordsAt + record * recordInts + NEXT] = next
  }

  return { seen, chain, bore, sought, idleAtUs, find, look, isAsSeen, replace, copied, link }
}
