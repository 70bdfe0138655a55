/**
 * Which limiters use the memory, so that threads that mean different things by one name are told so
 * at once, and so that no limiter ever reads the records of another. A list of entries, [next,
 * number, bytes of text, text..., width of each limit...], the newest first. An entry is written
 * privately and then becomes the first by one swap; a thread that loses the race looks at what has
 * come in first.
 *
 * A width is how many doubles the limit takes under the largest numbers it has been opened with, in
 * any thread. Numbers change limit by limit, so one record may hold every limit at its widest, and
 * must have room for that. A limiter of which a limit becomes wider is entered again, under its
 * number.
 *
 * There is room for two lists. When one is full, what is still needed of it is written to the
 * other, which takes its place by the same swap: not the names that no thread has open and that no
 * key is in use of. Every thread has a page where it marks which numbers it has open. It marks one
 * before it swaps the head, so a list that was made without that mark is never put in place.
 */
import { SluiceError } from '../../errors.ts'
import type { Scope } from '../store.ts'
import { CATALOG_ENDS, CATALOG_HEAD, COMPACTOR, HALF_INTS, type SharedMemory } from './layout.ts'
import { wordsOfAll } from './record.ts'
import { rest } from './thread.ts'

const NUMBER = 1
const BYTES = 2
const TEXT = 3

/** The head is one word: the first entry or 0, which half it is in, and a count of its changes. */
const ENTRY_MASK = 2 ** 13 - 1
const HALF_SHIFT = 13
const COUNT_SHIFT = 14

/** Within a page: whose it is, a bit for each number, and how many write to each half. */
const MARKS = 1
const MOST_NAMES = 255
const HALVES = 2
const WRITES = MARKS + (MOST_NAMES + 1) / 32
/** Of a thread in a runtime where threads have no names. */
const NAMELESS = -1
/** The page of all threads for which there was none. What they open stays open. */
const COMMON_PAGE = 0

/** Answers of a try besides a number. */
const OUTRUN = 0
const NO_ROOM = -1

/** How often, a millisecond each, a thread waits for another that makes room. */
const ROUNDS = 20

/**
 * Which of these limiters, by number, have keys in use. What is idle of the others must be dropped
 * by then.
 */
export type InUse = (numbers: ReadonlySet<number>) => ReadonlySet<number>

interface Opened {
  readonly number: number
  times: number
}

/** The catalog as one store in one thread sees it. */
export class Catalog {
  readonly #memory: SharedMemory
  readonly #ints: Int32Array
  readonly #thread: number
  /** By name, what is open here. */
  readonly #opened = new Map<string, Opened>()
  /** Where its page begins; 0 while it has none. */
  #pageAt = 0

  constructor(memory: SharedMemory, thread: number) {
    this.#memory = memory
    this.#ints = memory.ints
    this.#thread = thread === 0 ? NAMELESS : thread
  }

  /**
   * The number of a limiter, entered if it is new. Refuses limits that are not those that another
   * thread gave that name, or that do not fit. Each call needs a `close`.
   */
  open(scope: Scope, inUse: InUse): number {
    const text = textOf(scope)
    const widths = scope.limits.map(({ rule }) => wordsOfAll([rule]))
    checkRoom(this.#memory, scope, widths, widths)
    const opened = this.#opened.get(scope.name)
    try {
      const number = this.#numberOf(scope, text, widths, inUse, opened !== undefined)
      if (opened === undefined) this.#opened.set(scope.name, { number, times: 1 })
      else opened.times += 1
      return number
    } finally {
      this.#leaveEmptyPage()
    }
  }

  close(name: string): void {
    const opened = this.#opened.get(name) as Opened
    opened.times -= 1
    if (opened.times > 0) return
    this.#opened.delete(name)
    this.#mark(opened.number, false)
    this.#leaveEmptyPage()
  }

  /** Closes what a thread that has ended had open. */
  free(thread: number): void {
    for (let page = 1; page < this.#memory.pageCount; page++) {
      const at = this.#memory.pageAt(page)
      if (Atomics.load(this.#ints, at) !== thread) continue
      for (let k = MARKS; k < WRITES + HALVES; k++) Atomics.store(this.#ints, at + k, 0)
      Atomics.store(this.#ints, at, 0)
    }
    Atomics.compareExchange(this.#ints, COMPACTOR, thread, 0)
  }

  #numberOf(scope: Scope, text: string, widths: readonly number[], inUse: InUse, isOpen: boolean): number {
    for (let round = 0; ; ) {
      const head = Atomics.load(this.#ints, CATALOG_HEAD)
      const number = this.#tried(head, scope, text, widths, isOpen)
      if (number > 0) return number
      if (number === OUTRUN) continue
      const room = this.#makeRoom(head, inUse)
      if (room === 'none' || (room === 'busy' && round++ === ROUNDS)) throw full(scope)
      if (room === 'busy') rest(1)
    }
  }

  /** One try at it, by the list behind a head: its number, `OUTRUN` or `NO_ROOM`. */
  #tried(head: number, scope: Scope, text: string, widths: readonly number[], isOpen: boolean): number {
    const ints = this.#ints
    const entries = listFrom(this.#memory, head)
    const known = entries?.find(({ name }) => name === scope.name)
    if (entries === undefined || Atomics.load(ints, CATALOG_HEAD) !== head) return OUTRUN
    if (known !== undefined) checkSame(scope, text, known)
    const widest = widths.map((width, k) => Math.max(width, known?.widths[k] ?? 0))
    // A record has one state of a limit that is alone, so its numbers of before do not count.
    const isWide = known !== undefined && (widths.length === 1 || widest.every((width, k) => width === known.widths[k]))
    const number = known?.number ?? lowestFree(entries)
    if (isWide && isOpen) return number
    if (isWide) return this.#swapped(head, head & ENTRY_MASK, number, isOpen) ? number : OUTRUN
    checkRoom(this.#memory, scope, widest, widths)
    if (number > MOST_NAMES) return NO_ROOM
    return this.#enter(head, text, number, widest, isOpen)
  }

  /** Writes an entry to the half of a head, and makes it the first. */
  #enter(head: number, text: string, number: number, widths: readonly number[], isOpen: boolean): number {
    const ints = this.#ints
    const half = halfOf(head)
    // While a thread says that it writes to a half, no list is written there.
    this.#sayWriting(half, true)
    let entry = 0
    let end = 0
    try {
      if (Atomics.load(ints, CATALOG_HEAD) !== head) return OUTRUN
      do {
        entry = Atomics.load(ints, CATALOG_ENDS + half)
        end = endOf(entry, text, widths)
        // Before it is taken: one that is refused must leave the room to those that fit.
        if (end > this.#memory.halfAt(half) + HALF_INTS) {
          entry = 0
          return NO_ROOM
        }
      } while (Atomics.compareExchange(ints, CATALOG_ENDS + half, entry, end) !== entry)
      write(this.#memory, entry, head & ENTRY_MASK, number, text, widths)
      if (!this.#swapped(head, entry, number, isOpen)) return OUTRUN
      entry = 0
      return number
    } finally {
      // Another thread was faster. The room is free again, unless more was taken behind it
      // meanwhile.
      if (entry !== 0) Atomics.compareExchange(ints, CATALOG_ENDS + half, end, entry)
      this.#sayWriting(half, false)
    }
  }

  /** Marks the number, and then makes an entry the first. If that fails, it is open as before. */
  #swapped(head: number, entry: number, number: number, isOpen: boolean): boolean {
    if (!isOpen) this.#mark(number, true)
    if (Atomics.compareExchange(this.#ints, CATALOG_HEAD, head, after(head, halfOf(head), entry)) === head) return true
    if (!isOpen) this.#mark(number, false)
    return false
  }

  /** Writes what is needed of the list to the other half. `busy`: another thread is at it. */
  #makeRoom(head: number, inUse: InUse): 'some' | 'none' | 'busy' {
    const memory = this.#memory
    const ints = this.#ints
    const half = 1 - halfOf(head)
    if (Atomics.compareExchange(ints, COMPACTOR, 0, this.#thread) !== 0) return 'busy'
    try {
      const entries = listFrom(memory, head)
      if (Atomics.load(ints, CATALOG_HEAD) !== head || entries === undefined) return 'some'
      if (this.#areWriting(half)) return 'busy'
      const newest = entries.filter((entry, k) => entries.findIndex(({ number }) => number === entry.number) === k)
      const closed = new Set(newest.flatMap(({ number }) => (this.#isOpen(number) ? [] : [number])))
      const stay = closed.size === 0 ? closed : inUse(closed)
      const needed = newest.filter(({ number }) => !closed.has(number) || stay.has(number))
      if (needed.length === entries.length) return 'none'
      let [entry, end] = [0, memory.halfAt(half)]
      for (const { number, text, widths } of needed.reverse()) {
        write(memory, end, entry, number, text, widths)
        entry = end
        end = endOf(end, text, widths)
      }
      Atomics.store(ints, CATALOG_ENDS + half, end)
      Atomics.compareExchange(ints, CATALOG_HEAD, head, after(head, half, entry))
      return 'some'
    } finally {
      Atomics.store(ints, COMPACTOR, 0)
    }
  }

  #isOpen(number: number): boolean {
    for (let page = 0; page < this.#memory.pageCount; page++) {
      const marks = Atomics.load(this.#ints, this.#memory.pageAt(page) + MARKS + (number >> 5))
      if ((marks & (1 << (number & 31))) !== 0) return true
    }
    return false
  }

  #mark(number: number, isOpen: boolean): void {
    const pageAt = this.#ownPage()
    if (!isOpen && pageAt === this.#memory.pageAt(COMMON_PAGE)) return
    const at = pageAt + MARKS + (number >> 5)
    const bit = 1 << (number & 31)
    for (;;) {
      const marks = Atomics.load(this.#ints, at)
      if (Atomics.compareExchange(this.#ints, at, marks, isOpen ? marks | bit : marks & ~bit) === marks) return
    }
  }

  /** Counts, because many write on the common page. */
  #sayWriting(half: number, isWriting: boolean): void {
    Atomics.add(this.#ints, this.#ownPage() + WRITES + half, isWriting ? 1 : -1)
  }

  #areWriting(half: number): boolean {
    for (let page = 0; page < this.#memory.pageCount; page++) {
      if (Atomics.load(this.#ints, this.#memory.pageAt(page) + WRITES + half) !== 0) return true
    }
    return false
  }

  #leaveEmptyPage(): void {
    if (this.#opened.size > 0 || this.#pageAt === 0) return
    if (this.#pageAt !== this.#memory.pageAt(COMMON_PAGE)) Atomics.store(this.#ints, this.#pageAt, 0)
    this.#pageAt = 0
  }

  #ownPage(): number {
    for (let page = 1; this.#pageAt === 0 && page < this.#memory.pageCount; page++) {
      const at = this.#memory.pageAt(page)
      if (Atomics.load(this.#ints, at) === 0 && Atomics.compareExchange(this.#ints, at, 0, this.#thread) === 0) this.#pageAt = at
    }
    if (this.#pageAt === 0) this.#pageAt = this.#memory.pageAt(COMMON_PAGE)
    return this.#pageAt
  }
}

/**
 * A limiter that some thread has opened: its number, its name and the types of its limits, in their
 * order.
 */
export interface CatalogEntry {
  readonly number: number
  readonly name: string
  readonly types: readonly string[]
  readonly text: string
  readonly widths: readonly number[]
}

/** All limiters, each once for every time that a limit of it became wider. */
export function entriesIn(memory: SharedMemory): readonly CatalogEntry[] {
  for (;;) {
    const head = Atomics.load(memory.ints, CATALOG_HEAD)
    const entries = listFrom(memory, head)
    if (entries !== undefined && Atomics.load(memory.ints, CATALOG_HEAD) === head) return entries
  }
}

/**
 * The list behind a head, to be looked at only if that is still the head afterwards: else it may
 * have been overwritten. Undefined where that shows.
 */
function listFrom(memory: SharedMemory, head: number): CatalogEntry[] | undefined {
  const { ints } = memory
  const entries: CatalogEntry[] = []
  let entry = head & ENTRY_MASK
  while (entry !== 0) {
    const next = ints[entry] as number
    const bytes = ints[entry + BYTES] as number
    // Later entries lie behind earlier ones.
    if (next < 0 || next >= entry || bytes < 0 || bytes > HALF_INTS * 4) return undefined
    const text = String.fromCharCode(...memory.bytes.subarray((entry + TEXT) * 4, (entry + TEXT) * 4 + bytes))
    const [name, limits = ''] = text.split('\n') as [string, string?]
    const types = limits.split(', ').map((limit) => limit.slice(limit.indexOf(': ') + 2))
    const widthsAt = entry + TEXT + wordsFor(text)
    entries.push({
      number: ints[entry + NUMBER] as number,
      name,
      types,
      text,
      widths: [...ints.subarray(widthsAt, widthsAt + types.length)],
    })
    entry = next
  }
  return entries
}

function write({ ints, bytes }: SharedMemory, entry: number, next: number, number: number, text: string, widths: readonly number[]): void {
  ints[entry] = next
  ints[entry + NUMBER] = number
  ints[entry + BYTES] = text.length
  for (let k = 0; k < text.length; k++) bytes[(entry + TEXT) * 4 + k] = text.charCodeAt(k)
  ints.set(widths, entry + TEXT + wordsFor(text))
}

/** Names and types have one byte for each character. */
function textOf({ name, limits }: Scope): string {
  return `${name}\n${limits.map((limit) => `${limit.name}: ${limit.rule.algorithm.type}`).join(', ')}`
}

function wordsFor(text: string): number {
  return Math.ceil(text.length / 4)
}

function endOf(entry: number, text: string, widths: readonly number[]): number {
  return entry + TEXT + wordsFor(text) + widths.length
}

function halfOf(head: number): number {
  return (head >> HALF_SHIFT) & 1
}

function after(head: number, half: number, entry: number): number {
  return (((head >>> COUNT_SHIFT) + 1) << COUNT_SHIFT) | (half << HALF_SHIFT) | entry
}

function lowestFree(entries: readonly CatalogEntry[]): number {
  const taken = new Set(entries.map(({ number }) => number))
  let number = 1
  while (taken.has(number)) number += 1
  return number
}

function checkSame({ name }: Scope, text: string, known: CatalogEntry): void {
  if (known.text === text) return
  const limitsOf = (whole: string) => `{ ${whole.slice(name.length + 1)} }`
  throw new SluiceError(
    'CONFIG',
    `limiter '${name}' with ${limitsOf(text)} must have the limits, in the order, that it has in the other threads of this shared store: ${limitsOf(known.text)}`,
  )
}

function checkRoom({ recordWords }: SharedMemory, { name }: Scope, widest: readonly number[], widths: readonly number[]): void {
  const [words, now] = [widest, widths].map((each) => each.reduce((sum, width) => sum + width)) as [number, number]
  if (words <= recordWords) return
  const why = words > now ? `, ${now} for these numbers and the rest for limits of it that were larger before` : ''
  throw new SluiceError(
    'CONFIG',
    `limiter '${name}' needs recordWords ${words}${why}, the shared store was made with ${recordWords}: make it with sharedStore({ maxKeys, limits }), or with recordWords ${words}`,
  )
}

function full({ name }: Scope): SluiceError {
  return new SluiceError(
    'CONFIG',
    `limiter '${name}' is one too many for this shared store: it has room for some ${MOST_NAMES} names, and those are open or have keys in use. Call close() on limiters that are done, and store.watch(worker) for threads that may end before that`,
  )
}
