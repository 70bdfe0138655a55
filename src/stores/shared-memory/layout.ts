/**
 * How the shared buffer is laid out. Everything in it is read and written through `Atomics`, so that the order of operations is
 * the one that is written here, on every processor.
 *
 *   header    magic, version, slot count, record count, words per record, seed, records handed out so far     (32-bit each)
 *   slots     per key: fingerprint (64 bits, 0 = free), head (64 bits: version << 32 | record + 1, low half 0 = no state)
 *   records   doubles: for each limit of the limiter its figures, then its words. First figure 0 = no state for this limit.
 *
 * A record is never changed while a head refers to it. To change a key, a thread writes the next record privately, into a spare of its
 * own, and swaps the head; the record that the head referred to before is its next spare. The version counts the swaps, so that a head
 * that came back to the same record is still told apart (no ABA).
 */
import { SluiceError, shown } from '../../errors.ts'

const MAGIC = 0x51_75_1c_e0
export const VERSION = 1

const HEADER_BYTES = 64
const SLOT_BYTES = 16
const WORD_BYTES = 8

const FIELD = { magic: 0, version: 1, slots: 2, records: 3, recordWords: 4, seed: 5, handedOut: 6 } as const

/** What passes through `workerData` or `postMessage`. */
export interface SharedHandle {
  readonly buffer: SharedArrayBuffer
}

export interface LayoutOptions {
  readonly maxKeys: number
  readonly maxThreads: number
  readonly recordWords: number
  readonly seed: number
}

export class Layout {
  readonly buffer: SharedArrayBuffer
  readonly slotCount: number
  readonly recordCount: number
  readonly recordWords: number
  readonly seed: number
  readonly #header: Int32Array
  /** Two per slot: fingerprint, head. */
  readonly #slots: BigInt64Array
  /** Doubles as pairs of 32-bit halves: `Atomics` works on whole numbers only. */
  readonly #halves: Int32Array

  constructor(buffer: SharedArrayBuffer) {
    this.buffer = buffer
    if (buffer.byteLength < HEADER_BYTES) throw new SluiceError('CONFIG', 'this SharedArrayBuffer was not made by sharedStore()')
    this.#header = new Int32Array(buffer, 0, HEADER_BYTES / 4)
    if (this.#at('magic') !== MAGIC) throw new SluiceError('CONFIG', 'this SharedArrayBuffer was not made by sharedStore()')
    if (this.#at('version') !== VERSION) {
      throw new SluiceError('CONFIG', `the shared handle has layout version ${this.#at('version')}, this Sluice reads version ${VERSION}`)
    }
    this.slotCount = this.#at('slots')
    this.recordCount = this.#at('records')
    this.recordWords = this.#at('recordWords')
    this.seed = this.#at('seed')
    this.#slots = new BigInt64Array(buffer, HEADER_BYTES, this.slotCount * 2)
    this.#halves = new Int32Array(buffer, HEADER_BYTES + this.slotCount * SLOT_BYTES, this.recordCount * this.recordWords * 2)
  }

  static create(options: LayoutOptions): Layout {
    // Twice as many slots as keys keep the probes short.
    const slots = options.maxKeys * 2
    const records = options.maxKeys + options.maxThreads
    const bytes = HEADER_BYTES + slots * SLOT_BYTES + records * options.recordWords * WORD_BYTES
    const buffer = sharedBuffer(bytes)
    const header = new Int32Array(buffer, 0, HEADER_BYTES / 4)
    header[FIELD.slots] = slots
    header[FIELD.records] = records
    header[FIELD.recordWords] = options.recordWords
    header[FIELD.seed] = options.seed
    header[FIELD.version] = VERSION
    Atomics.store(header, FIELD.magic, MAGIC)
    return new Layout(buffer)
  }

  #at(name: keyof typeof FIELD): number {
    return Atomics.load(this.#header, FIELD[name])
  }

  /** A record that nobody has had before, or -1 when all are handed out. */
  newRecord(): number {
    const record = Atomics.add(this.#header, FIELD.handedOut, 1)
    if (record < this.recordCount) return record
    Atomics.sub(this.#header, FIELD.handedOut, 1)
    return -1
  }

  /** The slot that holds the fingerprint, or -1. */
  find(fingerprint: bigint): number {
    const first = Number(BigInt.asUintN(32, fingerprint)) % this.slotCount
    for (let k = 0; k < this.slotCount; k++) {
      const slot = (first + k) % this.slotCount
      const found = Atomics.load(this.#slots, slot * 2)
      if (found === fingerprint) return slot
      if (found === 0n) return -1
    }
    return -1
  }

  /** The slot that holds the fingerprint, claimed if it was not there, or -1 when all are taken. */
  claim(fingerprint: bigint): number {
    const first = Number(BigInt.asUintN(32, fingerprint)) % this.slotCount
    for (let k = 0; k < this.slotCount; k++) {
      const slot = (first + k) % this.slotCount
      const found = Atomics.compareExchange(this.#slots, slot * 2, 0n, fingerprint)
      if (found === 0n || found === fingerprint) return slot
    }
    return -1
  }

  head(slot: number): bigint {
    return Atomics.load(this.#slots, slot * 2 + 1)
  }

  swapHead(slot: number, expected: bigint, next: bigint): boolean {
    return Atomics.compareExchange(this.#slots, slot * 2 + 1, expected, next) === expected
  }

  /** Copies a record into `halves`, the 32-bit view of private memory. What was read is one state only if the head is still the same. */
  readRecord(record: number, halves: Int32Array): void {
    const base = record * this.recordWords * 2
    for (let k = 0; k < halves.length; k++) halves[k] = Atomics.load(this.#halves, base + k)
  }

  /** Writes a record that no head refers to. */
  writeRecord(record: number, halves: Int32Array): void {
    const base = record * this.recordWords * 2
    for (let k = 0; k < halves.length; k++) Atomics.store(this.#halves, base + k, halves[k] as number)
  }
}

export function headOf(version: bigint, record: number): bigint {
  return BigInt.asIntN(64, (version << 32n) | BigInt(record + 1))
}

/** -1 when the head refers to no record. */
export function recordOf(head: bigint): number {
  return Number(BigInt.asUintN(32, head)) - 1
}

export function versionOf(head: bigint): bigint {
  return BigInt.asUintN(32, head >> 32n)
}

function sharedBuffer(bytes: number): SharedArrayBuffer {
  if (typeof SharedArrayBuffer === 'undefined') {
    throw new SluiceError('UNSUPPORTED', 'this runtime has no SharedArrayBuffer (in browsers the page must be cross-origin isolated)')
  }
  try {
    return new SharedArrayBuffer(bytes)
  } catch (cause) {
    throw new SluiceError('CONFIG', `sharedStore needs ${bytes} bytes of shared memory and did not get them: choose smaller options`, {
      cause,
    })
  }
}

export function isHandle(value: unknown): value is SharedHandle {
  if (typeof value !== 'object' || value === null || !('buffer' in value)) return false
  if (value.buffer instanceof SharedArrayBuffer) return true
  throw new SluiceError('CONFIG', `shared handle ${shown(value)} must hold a SharedArrayBuffer`)
}
