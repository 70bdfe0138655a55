/**
 * Room for new keys. A record without a scope is empty, and one whose time `idleAtUs` has come is
 * as good as that: they stay in their chains until a new key needs them. It takes the place of one
 * in its own chain, or a record that is taken out of another chain first.
 */
import { ABSENT, type Chain, chainOf } from './chain.ts'
import type { Journals } from './journals.ts'
import { IDLE_AT, SCOPE_AND_TAG, type SharedMemory, SPARES, TAG_BITS } from './layout.ts'

/**
 * Idle keys may come back, and clocks of threads may differ where they have none in common: unless
 * the table is full they stay for so long.
 */
const GRACE_US = 1_000_000
/** No record has fewer. */
const LEAST_WORDS = 5
/**
 * For so long after a search in vain this thread does not search again: what others free meanwhile
 * is found then.
 */
const FULL_FOR_US = 5_000
/**
 * How many heads are looked at before a key is dropped that has been idle for less, and before the
 * table is called full.
 */
const SEARCH_LONG_IDLE = 100
const SEARCH = 2_048

export class SharedTable {
  readonly #memory: SharedMemory
  readonly #journals: Journals
  readonly chain: Chain
  /** Where the search for idle keys goes on. */
  #hand: number
  /**
   * How long until one of the keys that were looked at in vain is idle: for callers that are
   * refused because the table is full.
   */
  soonestIdleUs = 0
  /**
   * From when until when the table counts as full, and when the first of the keys that were looked
   * at is idle.
   */
  #fullFromUs = 0
  #fullUntilUs = 0
  #soonestIdleAtUs = 0

  constructor(memory: SharedMemory, journals: Journals) {
    this.#memory = memory
    this.#journals = journals
    this.chain = chainOf(memory, journals)
    // Threads that search begin in different places.
    this.#hand = journals.journal.held.number % memory.headCount
  }

  /**
   * Adds the key that was searched for in vain: true, false if another thread was faster, undefined
   * if there is no room.
   */
  insert(scope: number, words: Float64Array, nowUs: number): boolean | undefined {
    const { chain } = this
    const place = this.#reusable(nowUs - GRACE_US)
    if (place >= 0) return chain.put(place, scope, words)
    if (!this.#isKnownToBeFull(nowUs)) {
      this.#journals.claim()
      const hasRoom = this.#findRoom(nowUs)
      const swapped = hasRoom && chain.put(ABSENT, scope, words)
      this.#journals.release()
      if (hasRoom) return swapped
      this.#noteFull(nowUs)
    }
    // Idle keys of its own chain that would have been left alone otherwise.
    const idle = this.#reusable(nowUs)
    if (idle >= 0) return chain.put(idle, scope, words)
    return chain.isAsSeen() ? undefined : false
  }

  /** Whether the key that the last look did not find could be added. Only looks. */
  hasRoom(nowUs: number): boolean {
    if (this.#reusable(nowUs) >= 0) return true
    if (this.#isKnownToBeFull(nowUs)) return false
    this.#startSearch(nowUs)
    if (this.chain.seen.length >= SPARES) return false
    if (this.#journals.anyInHand || this.#findIdle(nowUs, SEARCH, () => true)) return true
    this.#noteFull(nowUs)
    return false
  }

  /** A key may have left: the next new one searches for room. */
  searchAgain(): void {
    this.#fullUntilUs = 0
  }

  /**
   * Which of these limiters, by number, have keys in use. Their idle keys are dropped, so a limiter
   * that is not in the answer has no key left, unless another thread adds one meanwhile.
   */
  dropIdle(scopes: ReadonlySet<number>, nowUs: number): ReadonlySet<number> {
    const used = new Set<number>()
    const words = new Float64Array(LEAST_WORDS)
    for (let head = 0; head < this.#memory.headCount; head++)
      while (!this.#hasDropped(this.#memory.headAt(head), scopes, nowUs, used, words));
    this.searchAgain()
    return used
  }

  /** False if there was an idle key to drop in the chain, or another thread was faster. */
  #hasDropped(headAt: number, scopes: ReadonlySet<number>, nowUs: number, used: Set<number>, words: Float64Array): boolean {
    this.chain.look(headAt)
    const { length, records } = this.chain.seen
    for (let place = 0; place < length; place++) {
      const record = records[place] as number
      const scope = this.#scopeOf(record)
      if (!scopes.has(scope)) continue
      if (this.#idleAtUs(record) > nowUs) used.add(scope)
      else {
        if (this.chain.pick(place, words)) this.chain.put(place, 0, words)
        return false
      }
    }
    return this.chain.isAsSeen()
  }

  /** How many keys are held, idle ones included. Others may add and drop some meanwhile. */
  size(): number {
    const { seen } = this.chain
    let size = 0
    for (let head = 0; head < this.#memory.headCount; head++) {
      this.chain.look(this.#memory.headAt(head))
      for (let k = 0; k < seen.length; k++) if (this.#scopeOf(seen.records[k] as number) !== 0) size += 1
    }
    return size
  }

  /** The last place in the chain whose record is empty or was idle at `thenUs`, or -1. */
  #reusable(thenUs: number): number {
    const { length, records } = this.chain.seen
    for (let place = length - 1; place >= 0; place--) {
      const record = records[place] as number
      if (this.#scopeOf(record) === 0 || this.#idleAtUs(record) <= thenUs) return place
    }
    return -1
  }

  #scopeOf(record: number): number {
    const { ints } = this.#memory
    return (ints[this.#memory.recordAt(record) + SCOPE_AND_TAG] as number) >>> TAG_BITS
  }

  #idleAtUs(record: number): number {
    return this.#memory.doubles[(this.#memory.recordAt(record) >> 1) + IDLE_AT] as number
  }

  /**
   * Gets the claimed journal a spare for one more key, if there is one. It may be another journal
   * afterwards.
   */
  #findRoom(nowUs: number): boolean {
    this.#startSearch(nowUs)
    if (this.chain.seen.length >= SPARES) return false
    const journals = this.#journals
    const { journal } = journals
    if (journal.isLaden() || (journal.hasSurplus() && journals.anyInHand)) return true
    const { seen } = this.chain
    const [before, records, tags] = [{ ...seen }, seen.records.slice(), seen.tags.slice()]
    let found = true
    // A journal without its reserve takes that back first.
    do found = this.#unlinkIdle(nowUs, GRACE_US, SEARCH_LONG_IDLE) || this.#unlinkIdle(nowUs, 0, SEARCH)
    while (found && !journal.hasSurplus())
    found ||= journals.anyInHand && journals.changeToSpare()
    Object.assign(seen, before)
    seen.records.set(records)
    seen.tags.set(tags)
    return found
  }

  /** Takes a record that is idle out of its chain and into the journal. */
  #unlinkIdle(nowUs: number, graceUs: number, search: number): boolean {
    return this.#findIdle(nowUs - graceUs, search, (place) => this.chain.unlink(place))
  }

  /** Looks at so many chains for a record that was idle then, until one is found that will do. */
  #findIdle(thenUs: number, search: number, willDo: (place: number) => boolean): boolean {
    const { headCount } = this.#memory
    for (let k = Math.min(search, headCount); k > 0; k--) {
      this.#hand = (this.#hand + 1) % headCount
      this.chain.look(this.#memory.headAt(this.#hand))
      const place = this.#reusable(thenUs)
      if (place >= 0 && willDo(place)) return true
      this.#noteSoonest(thenUs)
    }
    return false
  }

  /**
   * Whether a search has just been in vain. Then it says again how long until a key is idle,
   * counting the chain that was looked at last.
   */
  #isKnownToBeFull(nowUs: number): boolean {
    if (nowUs < this.#fullFromUs || nowUs >= this.#fullUntilUs) return false
    this.soonestIdleUs = this.#soonestIdleAtUs - nowUs
    this.#noteSoonest(nowUs)
    return true
  }

  /**
   * Of the keys that were looked at, none is idle before the first of them: it is not waited for
   * longer than that.
   */
  #noteFull(nowUs: number): void {
    // A chain that is too long says nothing about other keys.
    if (this.chain.seen.length >= SPARES) return
    this.#fullFromUs = nowUs
    this.#soonestIdleAtUs = nowUs + this.soonestIdleUs
    this.#fullUntilUs = Math.min(nowUs + FULL_FOR_US, this.#soonestIdleAtUs)
  }

  #startSearch(nowUs: number): void {
    this.soonestIdleUs = Number.POSITIVE_INFINITY
    this.#noteSoonest(nowUs)
  }

  #noteSoonest(nowUs: number): void {
    const { length, records } = this.chain.seen
    for (let k = 0; k < length; k++) {
      this.soonestIdleUs = Math.min(this.soonestIdleUs, Math.max(1, this.#idleAtUs(records[k] as number) - nowUs))
    }
  }
}
