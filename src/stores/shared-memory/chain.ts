/**
 * Chains of records, one behind each head. Records do not change while a head refers to them: to
 * change, add or drop a key, the beginning of its chain up to that key is written anew and the head
 * is swapped, by the protocol in journal.ts.
 *
 * A function that makes functions, not a class: while a thread has one shared store, the compiler
 * takes what they close over for constants, and the bytes for bytes at a known address. The path
 * takes a quarter less than with the fields of an object.
 */
import { fixedDoubles, fixedInts } from './bytes.ts'
import { fingerprint } from './fingerprint.ts'
import type { Seen } from './journal.ts'
import type { Journals } from './journals.ts'
import * as layout from './layout.ts'

// As constants of this module. An import is read anew at each use, with a check whether it is
// initialised: a tenth of a call.
const { FINGERPRINT_HIGH, FINGERPRINT_LOW, IDLE_AT, NEXT, RECORD_HEADER_WORDS, SCOPE_AND_TAG, SPARES, TAG_BITS } = layout

/** Answers of `find` besides a place in the chain. */
export const ABSENT = -1
export const LOST = -2
// As constants of this module too: what is exported is read like what is imported.
const [NOWHERE, OUTRUN] = [ABSENT, LOST]

/** Longer ones are not worth looking for: the limiter refuses them. */
export const LONGEST_KEY = 1024

/**
 * The limiter whose keys are looked for: its number, and the seed of the fingerprints of its keys.
 */
export interface KeyScope {
  readonly scope: number
  readonly seedLow: number
  readonly seedHigh: number
}

export interface Chain {
  /** The result of the last look at a chain. */
  readonly seen: Seen
  /**
   * When the key that is about to be put is idle. Set here, because an argument of this size would
   * be made an object of.
   */
  readonly idleAtUs: Float64Array
  /**
   * Looks for a key and copies its words: its place in the chain, `ABSENT`, or `LOST` if another
   * thread was faster.
   */
  find(key: string, keyScope: KeyScope, words: Float64Array): number
  /**
   * Looks at the whole chain behind a head. Whether that is what it was is not checked: ask
   * `isAsSeen` before anything is noted of it.
   */
  look(headAt: number): void
  isAsSeen(): boolean
  /**
   * Takes a record that was looked at for the key that is looked for, and copies its words. False
   * if another thread was faster.
   */
  pick(place: number, words: Float64Array): boolean
  /**
   * Puts the key that was looked for in the place of a record that was seen: under a limiter's
   * number, or 0 if it is to be forgotten. In the place `ABSENT` it comes before the others, and
   * the journal that has room for it was claimed before. Set `idleAtUs` first. False if another
   * thread was faster.
   */
  put(place: number, scope: number, words: Float64Array): boolean
  /** Takes a record that was seen out of its chain, and into the claimed journal. */
  unlink(place: number): boolean
}

export function chainOf(memory: layout.SharedMemory, journals: Journals): Chain {
  const { ints, doubles, recordInts } = memory
  const { load, isStill } = memory.atomic
  const { fence, journal } = journals
  const { noteFreed, release, seen, spare, swapHead, tag } = journal
  const headsAt = memory.headAt(0)
  const headsPerBit = memory.headCount / 2 ** 32
  // So that a record's number times its length leads to it: the numbers begin with 1.
  const recordsAt = memory.recordAt(0)
  const recordWords = recordInts >> 1
  const sought = fixedInts(2)
  const idleAtUs = fixedDoubles(1)
  const { records, tags } = seen

  function find(key: string, { scope, seedLow, seedHigh }: KeyScope, words: Float64Array): number {
    if (key.length > LONGEST_KEY) return NOWHERE
    fingerprint(key, seedLow, seedHigh, sought)
    const low = sought[0] as number
    const high = sought[1] as number
    // As a fraction the low half chooses a head: its bits are evenly spread.
    const headAt = headsAt + ((((low >>> 0) * headsPerBit) | 0) << 1)
    const version = load(headAt + 1)
    let next = ints[headAt] as number
    let place: number = NOWHERE
    let length = 0
    seen.first = next
    while (next !== 0 && length < SPARES) {
      const at = recordsAt + next * recordInts
      const scopeAndTag = ints[at + SCOPE_AND_TAG] as number
      records[length] = next
      tags[length] = scopeAndTag
      length += 1
      next = ints[at + NEXT] as number
      if (ints[at] === low && ints[at + FINGERPRINT_HIGH] === high && scopeAndTag >>> TAG_BITS === scope) {
        place = length - 1
        const from = (at >> 1) + RECORD_HEADER_WORDS
        // No limit has less than five words, figures included. A loop for those would take longer
        // than they do.
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
    seen.version = load(headAt + 1)
    seen.first = ints[headAt] as number
    seen.after = 0
    seen.length = 0
    for (let next = seen.first; next !== 0 && seen.length < SPARES; next = ints[recordsAt + next * recordInts + NEXT] as number) {
      records[seen.length] = next
      tags[seen.length] = ints[recordsAt + next * recordInts + SCOPE_AND_TAG] as number
      seen.length += 1
    }
  }

  function isAsSeen(): boolean {
    return isStill(seen.headAt + 1, seen.version, fence)
  }

  function pick(place: number, words: Float64Array): boolean {
    const at = recordsAt + (records[place] as number) * recordInts
    sought[0] = ints[at + FINGERPRINT_LOW] as number
    sought[1] = ints[at + FINGERPRINT_HIGH] as number
    const from = (at >> 1) + RECORD_HEADER_WORDS
    for (let k = 0; k < words.length; k++) words[k] = doubles[from + k] as number
    return isAsSeen()
  }

  function put(place: number, scope: number, words: Float64Array): boolean {
    const isNew = place < 0
    if (!isNew) journals.claim()
    const first = spare(0)
    const behind = recordBehind(place)
    const at = recordsAt + first * recordInts
    ints[at + FINGERPRINT_LOW] = sought[0] as number
    ints[at + FINGERPRINT_HIGH] = sought[1] as number
    ints[at + NEXT] = behind
    ints[at + SCOPE_AND_TAG] = (scope << TAG_BITS) | tag()
    doubles[(at >> 1) + IDLE_AT] = idleAtUs[0] as number
    const to = (at >> 1) + RECORD_HEADER_WORDS
    doubles[to] = words[0] as number
    doubles[to + 1] = words[1] as number
    doubles[to + 2] = words[2] as number
    doubles[to + 3] = words[3] as number
    doubles[to + 4] = words[4] as number
    for (let k = 5; k < words.length; k++) doubles[to + k] = words[k] as number
    if (place > 0) link(copied(1, place, first), behind)
    const swapped = swapHead(first, isNew ? 1 : place + 1, place + 1)
    if (!isNew) release()
    return swapped
  }

  function unlink(place: number): boolean {
    const behind = recordBehind(place)
    if (place > 0) link(copied(0, place, 0), behind)
    else noteFreed(seen.first)
    // Only if they are still in the chain now, what was read of its records is what they had there.
    return isAsSeen() && swapHead(place > 0 ? spare(0) : behind, place, place + 1)
  }

  function recordBehind(place: number): number {
    return place + 1 < seen.length ? (records[place + 1] as number) : seen.after
  }

  /**
   * Copies the first `count` records of the chain into the spares from `from` on, behind the record
   * `last`. Returns the last one now.
   */
  function copied(from: number, count: number, last: number): number {
    let end = last
    for (let k = 0; k < count; k++) {
      const record = spare(from + k)
      copy(records[k] as number, record)
      if (end !== 0) link(end, record)
      end = record
    }
    return end
  }

  function copy(from: number, to: number): void {
    const source = recordsAt + from * recordInts
    const target = recordsAt + to * recordInts
    // The fingerprint as whole numbers: as a double it could be no number, and those are not copied
    // bit by bit.
    ints[target + FINGERPRINT_LOW] = ints[source + FINGERPRINT_LOW] as number
    ints[target + FINGERPRINT_HIGH] = ints[source + FINGERPRINT_HIGH] as number
    ints[target + SCOPE_AND_TAG] = (((ints[source + SCOPE_AND_TAG] as number) >>> TAG_BITS) << TAG_BITS) | tag()
    for (let k = IDLE_AT; k < recordWords; k++) doubles[(target >> 1) + k] = doubles[(source >> 1) + k] as number
  }

  function link(record: number, next: number): void {
    ints[recordsAt + record * recordInts + NEXT] = next
  }

  return { seen, idleAtUs, find, look, isAsSeen, pick, put, unlink }
}
