/**
 * The shared bytes: what lies where. docs/decisions/shared-memory.md tells why.
 *
 *   header    256 bytes: magic, layout version, sizes, seeds, the common origin of time; what changes lies in lines of its own
 *   catalog   the limiters that use the memory, and 64 bytes for each thread, with those it has open: catalog.ts
 *   journals  256 bytes each: what a thread holds while it is in the middle of a step: journal.ts
 *   heads     8 bytes each, two for each key that fits: record (0 = none), version: chain.ts
 *   records   32-bit: fingerprint (two), next record, scope and tag; 64-bit: idleAtUs, then the limits' figures and words: record.ts; who holds them: holders.ts
 *
 * Where a thread could see another's write too early or too late, `Atomics` are used. The rest are
 * plain reads and writes of what belongs to one thread, or of records, which are checked against
 * the version of their head after they were read.
 */
import { SluiceError, shown } from '../../errors.ts'
import { type AtomicOperations, atomicOperations } from './atomic.ts'
import { type SharedBytes, sharedBytes } from './bytes.ts'

const MAGIC = 0x51_75_1c_e0
/**
 * Of the layout, the protocol and the arithmetic. Count it up for every change of what lies where,
 * of the fingerprints, of what threads do with it, and of what an algorithm computes: threads of
 * two versions must not share a state that they would decide on differently.
 */
export const LAYOUT_VERSION = 9

/** For each key that fits: with more of them chains are shorter. */
const HEADS_PER_KEY = 2

const FIELD = {
  magic: 0,
  version: 1,
  heads: 2,
  records: 3,
  recordWords: 4,
  journals: 5,
  seedLow: 6,
  seedHigh: 7,
  allowWhenFull: 8,
  reclaimAfterMs: 9,
} as const
/** In doubles. */
const ORIGIN_US = 6
/**
 * These change, so each has a cache line of its own. In doubles: the latest time that any thread
 * has read.
 */
export const LATEST_US = 8
/** In 32-bit words. */
export const NEXT_JOURNAL = 32
export const CATALOG_HEAD = 48
/** Where each half of the catalog ends. */
export const CATALOG_ENDS = 49
/** Which thread makes room in the catalog. */
export const COMPACTOR = 51
/** Whether a thread has warned that the table is full. */
export const HAS_WARNED = 52

const HEADER_INTS = 64
export const HALF_INTS = 2048
const CATALOG_INTS = 2 * HALF_INTS
const PAGE_INTS = 16
export const JOURNAL_INTS = 64
const HEAD_INTS = 2
const INT_BYTES = 4

/** The header of a record, before the words of its limits. */
export const RECORD_HEADER_WORDS = 3
/** Within a record, in 32-bit words. */
export const FINGERPRINT_LOW = 0
export const FINGERPRINT_HIGH = 1
export const NEXT = 2
export const SCOPE_AND_TAG = 3
/** How many bits of that word are the tag. */
export const TAG_BITS = 20
/** Within a record, in doubles. */
export const IDLE_AT = 2

/**
 * How many spare records a journal needs. No chain of records is longer, so that any of its keys
 * can be replaced with them.
 */
export const SPARES = 12
/**
 * How many it holds at rest. The one more is for a new key while records that are free are in the
 * hands of other threads.
 */
export const AT_REST = SPARES + 1

/**
 * Within a journal, in 32-bit words. Even at rest, odd while a thread has it. Counts up, so that
 * one step is told from the next.
 */
export const STATE = 0
/**
 * Which thread has it, or had it last. Both are swapped as one, so that they never disagree about
 * who is in which step.
 */
export const THREAD = 1
/** How many spares it holds. */
export const HELD = 2
/**
 * The note: what stage the step is at and how many records it uses and frees, which head, what tag
 * its records have.
 */
export const COUNTS = 3
export const HEAD = 4
export const TAG = 5
/** Written and never read. Storing to it is a fence: earlier reads are done before later ones. */
export const FENCE = 6
/** If no record was written: the fingerprint of the one that is freed. */
export const FREED_LOW = 7
export const FREED_HIGH = 8
export const SPARES_AT = 16
/**
 * The records that are freed, and the word of each with its scope and tag, as it was seen in the
 * chain.
 */
export const FREED_AT = 32
export const SEEN_AT = 48

/**
 * Nothing noted yet; the note is complete and the head may have been swapped; the head was swapped.
 */
export const NOTHING = 0
export const NOTED = 1
export const SWAPPED = 2
/**
 * The counts and the stage are one word: 4 bits for each, 4 more for how many spares there were
 * before.
 */
const COUNT_BITS = 4
export const COUNT_MASK = 2 ** COUNT_BITS - 1
export const USED_SHIFT = COUNT_BITS
export const FREED_SHIFT = 2 * COUNT_BITS
export const BEFORE_SHIFT = 3 * COUNT_BITS

/** A tag tells by which step a record was written: 8 bits for the journal, 12 for the step. */
export const TAG_MASK = 2 ** TAG_BITS - 1
export const JOURNAL_BITS = 8
export const STEP_MASK = 2 ** (TAG_BITS - JOURNAL_BITS) - 1
/** Of a record that was freed. No step has it, because there are fewer journals. */
export const FREED_TAG = TAG_MASK
export const MOST_JOURNALS = 2 ** JOURNAL_BITS - 2

export interface SharedMemoryOptions {
  readonly maxKeys: number
  readonly maxThreads: number
  readonly recordWords: number
  readonly allowWhenFull: boolean
  readonly reclaimAfterMs: number
  readonly originUs: number
}

/** The handle of a store, for `workerData` or `postMessage`. */
export interface SharedHandle {
  readonly buffer: SharedArrayBuffer
  /**
   * A `WebAssembly.Memory` over the same bytes, where the runtime has one: it makes swaps cheaper.
   */
  readonly memory?: object
}

export class SharedMemory {
  readonly handle: SharedHandle
  readonly ints: Int32Array
  readonly bytes: Uint8Array
  readonly doubles: Float64Array
  readonly atomic: AtomicOperations
  readonly maxKeys: number
  readonly headCount: number
  readonly recordCount: number
  readonly journalCount: number
  /** One for each thread that may be in a step, and one for all others. */
  readonly pageCount: number
  readonly recordWords: number
  readonly seedLow: number
  readonly seedHigh: number
  readonly allowWhenFull: boolean
  readonly reclaimAfterMs: number
  readonly originUs: number
  /** Where things begin, in 32-bit words. */
  readonly catalogAt = HEADER_INTS
  readonly catalogEnd = HEADER_INTS + CATALOG_INTS
  readonly journalsAt: number
  readonly headsAt: number
  readonly recordsAt: number
  /** How long a record is, in 32-bit words. */
  readonly recordInts: number

  constructor(bytes: SharedBytes) {
    // Whole words: what was not made here may have any length.
    const ints = new Int32Array(bytes.buffer, 0, Math.floor(bytes.buffer.byteLength / INT_BYTES))
    checkLayout(ints)
    checkSame(ints, bytes)
    const at = (name: keyof typeof FIELD) => ints[FIELD[name]] as number
    this.handle = bytes
    this.ints = ints
    this.bytes = new Uint8Array(bytes.buffer)
    this.doubles = new Float64Array(bytes.buffer)
    this.atomic = atomicOperations(bytes)
    this.maxKeys = at('heads') / HEADS_PER_KEY
    this.headCount = at('heads')
    this.recordCount = at('records')
    this.recordWords = at('recordWords')
    this.journalCount = at('journals')
    this.pageCount = pagesFor(this.journalCount)
    this.journalsAt = this.pageAt(this.pageCount)
    this.seedLow = at('seedLow')
    this.seedHigh = at('seedHigh')
    this.allowWhenFull = at('allowWhenFull') === 1
    this.reclaimAfterMs = at('reclaimAfterMs')
    this.originUs = this.doubles[ORIGIN_US] as number
    this.headsAt = this.journalsAt + this.journalCount * JOURNAL_INTS
    this.recordsAt = recordsAt(this.headsAt, this.headCount)
    this.recordInts = recordInts(this.recordWords)
  }

  static create(options: SharedMemoryOptions): SharedMemory {
    const { maxKeys, maxThreads, recordWords } = options
    const records = maxKeys + maxThreads * AT_REST
    const headsAt = HEADER_INTS + CATALOG_INTS + pagesFor(maxThreads) * PAGE_INTS + maxThreads * JOURNAL_INTS
    const heads = maxKeys * HEADS_PER_KEY
    const ints = recordsAt(headsAt, heads) + records * recordInts(recordWords)
    const bytes = sharedBytes(ints * INT_BYTES)
    const view = new Int32Array(bytes.buffer)
    const [seedLow, seedHigh] = crypto.getRandomValues(new Int32Array(2)) as unknown as [number, number]
    const allowWhenFull = options.allowWhenFull ? 1 : 0
    const { reclaimAfterMs } = options
    const fields = { version: LAYOUT_VERSION, heads, records, recordWords, journals: maxThreads, seedLow, seedHigh }
    for (const [name, value] of Object.entries({ ...fields, allowWhenFull, reclaimAfterMs }))
      view[FIELD[name as keyof typeof FIELD]] = value
    new Float64Array(bytes.buffer)[ORIGIN_US] = options.originUs
    view.set([HEADER_INTS, HEADER_INTS + HALF_INTS], CATALOG_ENDS)
    // Every record is in a chain to begin with, as an empty one. So there is no list of free
    // records that threads would have to share.
    for (let k = 0; k < maxKeys; k++) view[headsAt + k * HEADS_PER_KEY * HEAD_INTS] = k + 1
    view[FIELD.magic] = MAGIC
    const memory = new SharedMemory(bytes)
    memory.#fillJournals()
    return memory
  }

  halfAt(half: number): number {
    return this.catalogAt + half * HALF_INTS
  }

  pageAt(page: number): number {
    return this.catalogEnd + page * PAGE_INTS
  }

  /** Where a head lies: its record; its version is the next word. */
  headAt(head: number): number {
    return this.headsAt + head * HEAD_INTS
  }

  /** Records are numbered from 1, so that 0 can stand for none. */
  recordAt(record: number): number {
    return this.recordsAt + (record - 1) * this.recordInts
  }

  /** The records behind those that are in chains are spares. */
  #fillJournals(): void {
    for (let journal = 0; journal < this.journalCount; journal++) {
      const at = this.journalAt(journal)
      for (let k = 0; k < AT_REST; k++) this.ints[at + SPARES_AT + k] = this.maxKeys + journal * AT_REST + k + 1
      this.ints[at + HELD] = AT_REST
    }
  }

  journalAt(journal: number): number {
    return this.journalsAt + journal * JOURNAL_INTS
  }
}

function pagesFor(maxThreads: number): number {
  return maxThreads + 1
}

function recordInts(recordWords: number): number {
  return (RECORD_HEADER_WORDS + recordWords) * 2
}

/** Behind the heads, at the beginning of a cache line. */
function recordsAt(headsAt: number, heads: number): number {
  return Math.ceil((headsAt + heads * HEAD_INTS) / 16) * 16
}

function checkLayout(ints: Int32Array): void {
  if (ints.length < HEADER_INTS || ints[FIELD.magic] !== MAGIC) {
    throw new SluiceError('CONFIG', 'this SharedArrayBuffer was not made by sharedStore()')
  }
  if (ints[FIELD.version] === LAYOUT_VERSION) return
  throw new SluiceError(
    'CONFIG',
    `the shared handle was made by another version of Sluice: its layout is ${ints[FIELD.version]}, this one reads ${LAYOUT_VERSION}; all threads must load the same Sluice`,
  )
}

/**
 * A handle put together from two would swap in one memory what was read in another. The seeds tell
 * memories apart.
 */
function checkSame(ints: Int32Array, { memory }: SharedBytes): void {
  const { buffer } = (memory ?? {}) as { readonly buffer?: unknown }
  if (!(buffer instanceof SharedArrayBuffer)) return
  const others = new Int32Array(buffer, 0, Math.floor(buffer.byteLength / INT_BYTES))
  const isSame = [FIELD.magic, FIELD.seedLow, FIELD.seedHigh].every((at) => others[at] === ints[at])
  if (!isSame)
    throw new SluiceError('CONFIG', 'the buffer and the memory of the shared handle must be of one store: pass the handle on as it is')
}

/** Whether it is a handle and not options. A handle that lost its memory on the way is refused. */
export function isHandle(value: unknown): value is SharedHandle {
  if (typeof value !== 'object' || value === null || !('buffer' in value)) return false
  if (typeof SharedArrayBuffer !== 'undefined' && value.buffer instanceof SharedArrayBuffer) return true
  throw new SluiceError(
    'CONFIG',
    `shared handle ${shown(value)} must hold a SharedArrayBuffer. It passes between threads, by workerData or postMessage; processes (node:cluster, child_process) share no memory: use sluice/redis there`,
  )
}
