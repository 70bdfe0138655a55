/**
 * Keys and their records. Each head refers to a chain of records, one for each key that falls on it, mostly none or one. Records do not change
 * while a head refers to them: to change, add or drop a key, the beginning of its chain up to that key is written anew and the head is
 * compared and swapped. So there is one kind of change, one atomic reference for it, and no state in between.
 *
 * A record without a scope is empty, and one whose time `idleAtUs` has come is as good as that: they stay in their chains until somebody needs them.
 */
import type { AtomicOperations } from './atomic.ts'
import type { Cells } from './cells.ts'
import { fingerprint } from './fingerprint.ts'
import * as layout from './memory.ts'

// As constants of this module. What is imported is read anew at each use, and whether it is there yet is checked: a tenth of a call.
const { FINGERPRINT_HIGH, FINGERPRINT_LOW, IDLE_AT, NEXT, POCKET, RECORD_HEADER_WORDS, SCOPE_AND_TAG, TAG_BITS } = layout

/** What `find` answers besides a place in the chain. */
export const ABSENT = -1
export const LOST = -2

/** Idle keys may come back, and other threads may be late with an older reading of the clock: unless the table is full they stay for so long. */
const GRACE_US = 1_000_000
/** How many heads are looked at before a key is let go that has been idle for less, and before the table is called full. */
const SEARCH_LONG_IDLE = 100
const SEARCH = 2_048

/** Whose keys are looked for: the number of a limiter, and what the fingerprints of its keys are keyed with. */
export interface Address {
  readonly scope: number
  readonly seedLow: number
  readonly seedHigh: number
}

export class Table {
  readonly #memory: layout.SharedMemory
  readonly #ints: Int32Array
  readonly #doubles: Float64Array
  readonly #atomic: AtomicOperations
  readonly #cells: Cells
  readonly #headsAt: number
  readonly #headsPerBit: number
  readonly #recordsAt: number
  readonly #recordInts: number
  /** What the last search was for. */
  readonly #fingerprint = new Int32Array(2)
  /** What the last look at a chain saw: the head, its version, its records up to the one that was looked for, and the one behind that. */
  #headAt = 0
  #version = 0
  #first = 0
  readonly #chain = new Int32Array(POCKET)
  #length = 0
  #after = 0
  /** Where the search for idle keys goes on. */
  #hand: number
  /** When the key that is about to be put is idle. Set here, because an argument of this size would be made an object of. */
  readonly idleAtUs: Float64Array = new Float64Array(1)
  /** How long until one of the keys that were looked at in vain is idle: for whoever is refused because the table is full. */
  soonestIdleUs = 0

  constructor(memory: layout.SharedMemory, cells: Cells) {
    this.#memory = memory
    this.#ints = memory.ints
    this.#doubles = memory.doubles
    this.#atomic = memory.atomic
    this.#cells = cells
    this.#headsAt = memory.headAt(0)
    this.#headsPerBit = memory.headCount / 2 ** 32
    // So that a record's number times its length leads to it: the numbers begin with 1.
    this.#recordsAt = memory.recordAt(0)
    this.#recordInts = memory.recordInts
    // Threads that search begin in different places.
    this.#hand = cells.tag % memory.headCount
  }

  /**
   * Looks for a key and copies its words: its place in the chain, `ABSENT`, or `LOST` if another thread was faster.
   *
   * It is spelt out here, as the writing of a record is in `replace`: the compiler leaves functions of this size in one piece, and so has room in each
   * for the operations of atomic.ts. In small pieces the path takes a sixth longer.
   */
  find(key: string, { scope, seedLow, seedHigh }: Address, words: Float64Array): number {
    const ints = this.#ints
    const doubles = this.#doubles
    const chain = this.#chain
    const recordsAt = this.#recordsAt
    const recordInts = this.#recordInts
    fingerprint(key, seedLow, seedHigh, this.#fingerprint)
    const low = this.#fingerprint[0] as number
    const high = this.#fingerprint[1] as number
    // As a fraction the low half chooses a head: its bits are evenly spread.
    const headAt = this.#headsAt + ((((low >>> 0) * this.#headsPerBit) | 0) << 1)
    const version = this.#atomic.acquire(headAt + 1)
    let next = ints[headAt] as number
    let place = ABSENT
    let length = 0
    this.#first = next
    while (next !== 0 && length < POCKET && place < 0) {
      const at = recordsAt + next * recordInts
      chain[length] = next
      if (ints[at] === low && ints[at + FINGERPRINT_HIGH] === high && (ints[at + SCOPE_AND_TAG] as number) >>> TAG_BITS === scope) {
        place = length
        const from = (at >> 1) + RECORD_HEADER_WORDS
        for (let k = 0; k < words.length; k++) words[k] = doubles[from + k] as number
      }
      next = ints[at + NEXT] as number
      length += 1
    }
    this.#headAt = headAt
    this.#version = version
    this.#length = length
    this.#after = next
    return this.#atomic.isStill(headAt + 1, version, this.#cells.fence) ? place : LOST
  }

  /** Whether words differ from those of the record that the last look found. If that has been rewritten since, they may: then a swap fails. */
  differs(words: Float64Array): boolean {
    const from = (this.#at(this.#chain[this.#length - 1] as number) >> 1) + RECORD_HEADER_WORDS
    for (let k = 0; k < words.length; k++) if (words[k] !== this.#doubles[from + k]) return true
    return false
  }

  /**
   * Puts the key that was searched for in the place of a record that the last look saw: under a limiter's number, or 0 if it is to be forgotten. Set `idleAtUs` first.
   * False if another thread was faster.
   */
  replace(place: number, scope: number, words: Float64Array): boolean {
    const ints = this.#ints
    const doubles = this.#doubles
    const cells = this.#cells
    cells.claim()
    const behind = place + 1 < this.#length ? (this.#chain[place + 1] as number) : this.#after
    const first = cells.spare(0)
    const at = this.#recordsAt + first * this.#recordInts
    ints[at + FINGERPRINT_LOW] = this.#fingerprint[0] as number
    ints[at + FINGERPRINT_HIGH] = this.#fingerprint[1] as number
    ints[at + NEXT] = behind
    ints[at + SCOPE_AND_TAG] = (scope << TAG_BITS) | cells.tag
    const to = at >> 1
    doubles[to + IDLE_AT] = this.idleAtUs[0] as number
    for (let k = 0; k < words.length; k++) doubles[to + RECORD_HEADER_WORDS + k] = words[k] as number
    if (place > 0) this.#link(this.#copied(1, place, first), behind)
    const swapped = cells.swapEqual(this.#headAt, this.#chain, place + 1, this.#version)
    cells.release()
    return swapped
  }

  /** Adds the key that was searched for in vain: true, false if another thread was faster, undefined if there is no room. */
  insert(scope: number, words: Float64Array, nowUs: number): boolean | undefined {
    const place = this.#reusable(nowUs - GRACE_US)
    if (place >= 0) return this.replace(place, scope, words)
    const hasRoom = this.#claimRoom(nowUs)
    const swapped = hasRoom && this.#push(scope, words)
    this.#cells.release()
    if (hasRoom) return swapped
    // Idle keys of its own chain that would have been left alone otherwise.
    const idle = this.#reusable(nowUs)
    if (idle >= 0) return this.replace(idle, scope, words)
    return this.#isAsSeen() ? undefined : false
  }

  /** Whether the key that the last look did not find could be added. Only looks. */
  hasRoom(nowUs: number): boolean {
    this.#startSearch(nowUs)
    if (this.#reusable(nowUs) >= 0) return true
    return this.#length < POCKET && (this.#cells.anySurplus || this.#findIdle(nowUs, SEARCH, () => true))
  }

  /** How many keys are held, idle ones included. Others may add and drop some meanwhile. */
  size(): number {
    let size = 0
    for (let head = 0; head < this.#memory.headCount; head++) {
      this.#look(this.#memory.headAt(head))
      for (let k = 0; k < this.#length; k++) if (this.#scopeOf(this.#chain[k] as number) !== 0) size += 1
    }
    return size
  }

  /** Looks at a whole chain. What it sees is checked when something is swapped. */
  #look(headAt: number): void {
    this.#headAt = headAt
    this.#version = this.#atomic.acquire(headAt + 1)
    this.#first = this.#ints[headAt] as number
    let next = this.#first
    let length = 0
    for (; next !== 0 && length < POCKET; next = this.#ints[this.#at(next) + NEXT] as number) this.#chain[length++] = next
    this.#length = length
    this.#after = 0
  }

  #isAsSeen(): boolean {
    return this.#atomic.isStill(this.#headAt + 1, this.#version, this.#cells.fence)
  }

  /** The last place in the chain whose record is empty or was idle at `thenUs`, or -1. */
  #reusable(thenUs: number): number {
    for (let place = this.#length - 1; place >= 0; place--) if (this.#isIdle(this.#chain[place] as number, thenUs)) return place
    return -1
  }

  #isIdle(record: number, thenUs: number): boolean {
    return this.#scopeOf(record) === 0 || this.#idleAtUs(record) <= thenUs
  }

  #scopeOf(record: number): number {
    return (this.#ints[this.#at(record) + SCOPE_AND_TAG] as number) >>> TAG_BITS
  }

  #idleAtUs(record: number): number {
    return this.#doubles[(this.#at(record) >> 1) + IDLE_AT] as number
  }

  #at(record: number): number {
    return this.#recordsAt + record * this.#recordInts
  }

  /** Takes a cell with a spare for one more key, if there is one; a cell in any case. */
  #claimRoom(nowUs: number): boolean {
    this.#cells.claim()
    this.#startSearch(nowUs)
    if (this.#length >= POCKET) return false
    if (this.#cells.hasSurplus) return true
    const seen = { headAt: this.#headAt, version: this.#version, first: this.#first, length: this.#length }
    const chain = this.#chain.slice()
    const found = this.#unlinkIdle(nowUs, GRACE_US, SEARCH_LONG_IDLE) || this.#unlinkIdle(nowUs, 0, SEARCH) || this.#cells.changeToSurplus()
    this.#chain.set(chain)
    this.#headAt = seen.headAt
    this.#version = seen.version
    this.#first = seen.first
    this.#length = seen.length
    this.#after = 0
    return found
  }

  /** Takes a record that is idle out of its chain and into the cell. */
  #unlinkIdle(nowUs: number, graceUs: number, search: number): boolean {
    return this.#findIdle(nowUs - graceUs, search, (place) => this.#unlink(place))
  }

  /** Looks at so many chains for a record that was idle then, until one is found that will do. */
  #findIdle(thenUs: number, search: number, willDo: (place: number) => boolean): boolean {
    const { headCount } = this.#memory
    for (let k = Math.min(search, headCount); k > 0; k--) {
      this.#hand = (this.#hand + 1) % headCount
      this.#look(this.#memory.headAt(this.#hand))
      const place = this.#reusable(thenUs)
      if (place >= 0 && willDo(place)) return true
      this.#noteSoonest(thenUs)
    }
    return false
  }

  #startSearch(nowUs: number): void {
    this.soonestIdleUs = Number.POSITIVE_INFINITY
    this.#noteSoonest(nowUs)
  }

  #noteSoonest(nowUs: number): void {
    for (let k = 0; k < this.#length; k++) {
      this.soonestIdleUs = Math.min(this.soonestIdleUs, Math.max(1, this.#idleAtUs(this.#chain[k] as number) - nowUs))
    }
  }

  #unlink(place: number): boolean {
    const behind = place + 1 < this.#length ? (this.#chain[place + 1] as number) : 0
    if (place === 0) return this.#unlinkFirst(behind)
    this.#link(this.#copied(0, place, 0), behind)
    return this.#swap(this.#cells.spare(0), place, place + 1)
  }

  #unlinkFirst(behind: number): boolean {
    this.#cells.noteFreed(this.#first)
    // Only if it is still in the chain now, that is what it bore there.
    return this.#isAsSeen() && this.#swap(behind, 0, 1)
  }

  #push(scope: number, words: Float64Array): boolean {
    const record = this.#cells.spare(0)
    const at = this.#at(record)
    this.#ints[at + FINGERPRINT_LOW] = this.#fingerprint[0] as number
    this.#ints[at + FINGERPRINT_HIGH] = this.#fingerprint[1] as number
    this.#ints[at + NEXT] = this.#first
    this.#ints[at + SCOPE_AND_TAG] = (scope << TAG_BITS) | this.#cells.tag
    this.#doubles[(at >> 1) + IDLE_AT] = this.idleAtUs[0] as number
    this.#doubles.set(words, (at >> 1) + RECORD_HEADER_WORDS)
    return this.#swap(record, 1, 0)
  }

  #swap(first: number, used: number, freed: number): boolean {
    this.#cells.note(this.#headAt, used, this.#chain, freed)
    const swapped = this.#atomic.swapPair(this.#headAt, this.#first, this.#version, first, (this.#version + 1) | 0)
    this.#cells.settle(swapped)
    return swapped
  }

  /** Copies the first `count` records of the chain into the spares from `spare` on, behind the record `last`. Returns the last one now. */
  #copied(spare: number, count: number, last: number): number {
    let end = last
    for (let k = 0; k < count; k++) {
      const record = this.#cells.spare(spare + k)
      this.#copy(this.#chain[k] as number, record)
      if (end !== 0) this.#link(end, record)
      end = record
    }
    return end
  }

  #copy(from: number, to: number): void {
    const ints = this.#ints
    const doubles = this.#doubles
    const source = this.#at(from)
    const target = this.#at(to)
    // The fingerprint as whole numbers: as a double it could be no number, and those are not copied bit by bit.
    ints[target + FINGERPRINT_LOW] = ints[source + FINGERPRINT_LOW] as number
    ints[target + FINGERPRINT_HIGH] = ints[source + FINGERPRINT_HIGH] as number
    ints[target + SCOPE_AND_TAG] = (this.#scopeOf(from) << TAG_BITS) | this.#cells.tag
    for (let k = IDLE_AT; k < this.#recordInts >> 1; k++) doubles[(target >> 1) + k] = doubles[(source >> 1) + k] as number
  }

  #link(record: number, next: number): void {
    this.#ints[this.#at(record) + NEXT] = next
  }
}
