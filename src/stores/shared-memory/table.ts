/**
 * Keys and their records. Each head refers to a chain of records, one for each key that falls on it, mostly none or one. Records do not change
 * while a head refers to them: to change, add or drop a key, the beginning of its chain up to that key is written anew and the head is
 * compared and swapped. So there is one kind of change, one atomic reference for it, and no state in between. What is done with one chain is in
 * chains.ts; here is room found for new keys.
 *
 * A record without a scope is empty, and one whose time `idleAtUs` has come is as good as that: they stay in their chains until somebody needs them.
 */
import type { Cells } from './cells.ts'
import { type Chains, chainsOf } from './chains.ts'
import {
  FINGERPRINT_HIGH,
  FINGERPRINT_LOW,
  IDLE_AT,
  NEXT,
  POCKET,
  RECORD_HEADER_WORDS,
  SCOPE_AND_TAG,
  type SharedMemory,
  TAG_BITS,
} from './memory.ts'

/** Idle keys may come back, and clocks of threads may differ where they have none in common: unless the table is full they stay for so long. */
const GRACE_US = 1_000_000
/** For so long after a search in vain this thread does not search again: what others let go meanwhile is found then. */
const FULL_FOR_US = 5_000
/** How many heads are looked at before a key is let go that has been idle for less, and before the table is called full. */
const SEARCH_LONG_IDLE = 100
const SEARCH = 2_048

export class Table {
  readonly #memory: SharedMemory
  readonly #cells: Cells
  readonly chains: Chains
  /** Where the search for idle keys goes on. */
  #hand: number
  /** How long until one of the keys that were looked at in vain is idle: for whoever is refused because the table is full. */
  soonestIdleUs = 0
  /** From when until when the table counts as full, and when the first of the keys that were looked at is idle. */
  #fullFromUs = 0
  #fullUntilUs = 0
  #soonestIdleAtUs = 0

  constructor(memory: SharedMemory, cells: Cells) {
    this.#memory = memory
    this.#cells = cells
    this.chains = chainsOf(memory, cells)
    // Threads that search begin in different places.
    this.#hand = cells.tag % memory.headCount
  }

  /** Adds the key that was searched for in vain: true, false if another thread was faster, undefined if there is no room. */
  insert(scope: number, words: Float64Array, nowUs: number): boolean | undefined {
    const place = this.#reusable(nowUs - GRACE_US)
    if (place >= 0) return this.chains.replace(place, scope, words)
    if (!this.#isKnownToBeFull(nowUs)) {
      const hasRoom = this.#claimRoom(nowUs)
      const swapped = hasRoom && this.#push(scope, words)
      this.#cells.release()
      if (hasRoom) return swapped
      this.#noteFull(nowUs)
    }
    // Idle keys of its own chain that would have been left alone otherwise.
    const idle = this.#reusable(nowUs)
    if (idle >= 0) return this.chains.replace(idle, scope, words)
    return this.chains.isAsSeen() ? undefined : false
  }

  /** Whether the key that the last look did not find could be added. Only looks. */
  hasRoom(nowUs: number): boolean {
    if (this.#reusable(nowUs) >= 0) return true
    if (this.#isKnownToBeFull(nowUs)) return false
    this.#startSearch(nowUs)
    if (this.chains.seen.length >= POCKET) return false
    if (this.#cells.anySurplus || this.#findIdle(nowUs, SEARCH, () => true)) return true
    this.#noteFull(nowUs)
    return false
  }

  /** A key may have left: the next new one searches for room. */
  searchAgain(): void {
    this.#fullUntilUs = 0
  }

  /** How many keys are held, idle ones included. Others may add and drop some meanwhile. */
  size(): number {
    const { seen, chain } = this.chains
    let size = 0
    for (let head = 0; head < this.#memory.headCount; head++) {
      this.chains.look(this.#memory.headAt(head))
      for (let k = 0; k < seen.length; k++) if (this.#scopeOf(chain[k] as number) !== 0) size += 1
    }
    return size
  }

  /** The last place in the chain whose record is empty or was idle at `thenUs`, or -1. */
  #reusable(thenUs: number): number {
    const { seen, chain } = this.chains
    for (let place = seen.length - 1; place >= 0; place--) if (this.#isIdle(chain[place] as number, thenUs)) return place
    return -1
  }

  #isIdle(record: number, thenUs: number): boolean {
    return this.#scopeOf(record) === 0 || this.#idleAtUs(record) <= thenUs
  }

  #scopeOf(record: number): number {
    const { ints } = this.#memory
    return (ints[this.#memory.recordAt(record) + SCOPE_AND_TAG] as number) >>> TAG_BITS
  }

  #idleAtUs(record: number): number {
    return this.#memory.doubles[(this.#memory.recordAt(record) >> 1) + IDLE_AT] as number
  }

  /** Takes a cell with a spare for one more key, if there is one; a cell in any case. */
  #claimRoom(nowUs: number): boolean {
    const { seen, chain, bore } = this.chains
    this.#cells.claim()
    this.#startSearch(nowUs)
    if (seen.length >= POCKET) return false
    if (this.#cells.hasSurplus) return true
    const [seenBefore, chainBefore, boreBefore] = [{ ...seen, after: 0 }, chain.slice(), bore.slice()]
    const found = this.#unlinkIdle(nowUs, GRACE_US, SEARCH_LONG_IDLE) || this.#unlinkIdle(nowUs, 0, SEARCH) || this.#cells.changeToSurplus()
    chain.set(chainBefore)
    bore.set(boreBefore)
    Object.assign(seen, seenBefore)
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
      this.chains.look(this.#memory.headAt(this.#hand))
      const place = this.#reusable(thenUs)
      if (place >= 0 && willDo(place)) return true
      this.#noteSoonest(thenUs)
    }
    return false
  }

  /** Whether a search has just been in vain. Then it says again how long until a key is idle, counting the chain that was looked at last. */
  #isKnownToBeFull(nowUs: number): boolean {
    if (nowUs < this.#fullFromUs || nowUs >= this.#fullUntilUs) return false
    this.soonestIdleUs = this.#soonestIdleAtUs - nowUs
    this.#noteSoonest(nowUs)
    return true
  }

  /** Of the keys that were looked at, none is idle before the first of them: it is not waited for longer than that. */
  #noteFull(nowUs: number): void {
    // A chain that is too long says nothing about other keys.
    if (this.chains.seen.length >= POCKET) return
    this.#fullFromUs = nowUs
    this.#soonestIdleAtUs = nowUs + this.soonestIdleUs
    this.#fullUntilUs = Math.min(nowUs + FULL_FOR_US, this.#soonestIdleAtUs)
  }

  #startSearch(nowUs: number): void {
    this.soonestIdleUs = Number.POSITIVE_INFINITY
    this.#noteSoonest(nowUs)
  }

  #noteSoonest(nowUs: number): void {
    const { seen, chain } = this.chains
    for (let k = 0; k < seen.length; k++) {
      this.soonestIdleUs = Math.min(this.soonestIdleUs, Math.max(1, this.#idleAtUs(chain[k] as number) - nowUs))
    }
  }

  #unlink(place: number): boolean {
    const { seen, chain, link, copied, isAsSeen } = this.chains
    const behind = place + 1 < seen.length ? (chain[place + 1] as number) : 0
    if (place > 0) link(copied(0, place, 0), behind)
    else this.#cells.noteFreed(seen.first)
    // Only if they are still in the chain now, what was read of its records is what they bore there.
    return isAsSeen() && this.#swap(place > 0 ? this.#cells.spare(0) : behind, place, place + 1)
  }

  #push(scope: number, words: Float64Array): boolean {
    const { ints, doubles } = this.#memory
    const { seen, sought, idleAtUs } = this.chains
    const record = this.#cells.spare(0)
    const at = this.#memory.recordAt(record)
    ints[at + FINGERPRINT_LOW] = sought[0] as number
    ints[at + FINGERPRINT_HIGH] = sought[1] as number
    ints[at + NEXT] = seen.first
    ints[at + SCOPE_AND_TAG] = (scope << TAG_BITS) | this.#cells.tag
    doubles[(at >> 1) + IDLE_AT] = idleAtUs[0] as number
    doubles.set(words, (at >> 1) + RECORD_HEADER_WORDS)
    return this.#swap(record, 1, 0)
  }

  #swap(first: number, used: number, freed: number): boolean {
    const { headAt, version, first: firstBefore } = this.chains.seen
    this.#cells.note(headAt, used, this.chains, freed)
    const swapped = this.#memory.atomic.swapPair(headAt, firstBefore, version, first, (version + 1) | 0)
    this.#cells.settle(swapped)
    return swapped
  }
}
