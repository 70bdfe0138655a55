/**
 * The atomic operations that the table is made of, on the 32-bit words of shared bytes. `Atomics`
 * has all of them, but as calls into the engine, and 64 bits only as BigInts, which are made on the
 * heap. WebAssembly has them as single instructions on plain numbers. Both are the same
 * instructions of the processor in the end, so threads with and without WebAssembly can share.
 */
import { type SharedBytes, wasm } from './bytes.ts'

export interface AtomicOperations {
  /** Reads a word before everything that is read after it. */
  load(index: number): number
  /** Swaps a word if it is what is expected. Tells whether it was. */
  swap(index: number, expected: number, next: number): boolean
  /** The same for the two words at an even index and behind it. */
  swapPair(index: number, low: number, high: number, nextLow: number, nextHigh: number): boolean
  /**
   * Whether a word is still what it was, after everything that was read before: `fence` is a word
   * that is written for that, and never read.
   */
  isStill(index: number, value: number, fence: number): boolean
  /**
   * Writes a word behind everything that was written before: a thread that sees it sees that too.
   */
  store(index: number, value: number): void
}

export function atomicOperations(bytes: SharedBytes): AtomicOperations {
  return byWasm(bytes) ?? byAtomics(bytes.buffer)
}

function byAtomics(buffer: SharedArrayBuffer): AtomicOperations {
  const ints = new Int32Array(buffer)
  const pairs = new BigInt64Array(buffer, 0, Math.floor(buffer.byteLength / 8))
  const [expected, next] = [new BigInt64Array(1), new BigInt64Array(1)]
  const [expectedHalves, nextHalves] = [new Int32Array(expected.buffer), new Int32Array(next.buffer)]
  return {
    load: (index) => Atomics.load(ints, index),
    swap: (index, from, to) => Atomics.compareExchange(ints, index, from, to) === from,
    swapPair(index, low, high, nextLow, nextHigh) {
      expectedHalves[0] = low
      expectedHalves[1] = high
      nextHalves[0] = nextLow
      nextHalves[1] = nextHigh
      const before = expected[0] as bigint
      return Atomics.compareExchange(pairs, index >> 1, before, next[0] as bigint) === before
    },
    isStill(index, value, fence) {
      Atomics.store(ints, fence, 0)
      return Atomics.load(ints, index) === value
    },
    store: (index, value) => {
      Atomics.store(ints, index, value)
    },
  }
}

interface Exports {
  load(byte: number): number
  store(byte: number, value: number): void
  swap(byte: number, expected: number, next: number): number
  swapPair(byte: number, low: number, high: number, nextLow: number, nextHigh: number): number
  isStill(byte: number, value: number, fence: number): number
}

/** Undefined where WebAssembly is not there or, by a page's security policy, not allowed. */
function byWasm({ memory }: SharedBytes): AtomicOperations | undefined {
  const api = wasm()
  if (api === undefined || memory === undefined) return undefined
  try {
    const instance = new api.Instance(new api.Module(Uint8Array.from(MODULE)), { sluice: { memory } })
    const { load, store, swap, swapPair, isStill } = instance.exports as unknown as Exports
    return {
      load: (index) => load(index << 2),
      swap: (index, expected, next) => swap(index << 2, expected, next) === 1,
      swapPair: (index, low, high, nextLow, nextHigh) => swapPair(index << 2, low, high, nextLow, nextHigh) === 1,
      isStill: (index, value, fence) => isStill(index << 2, value, fence << 2) === 1,
      store: (index, value) => store(index << 2, value),
    }
  } catch {
    return undefined
  }
}

const I32 = 0x7f
const END = 0x0b
const EQ_32 = 0x46
const EQ_64 = 0x51
const local = (k: number) => [0x20, k]
const constant = (k: number) => [0x41, k]
/** An instruction on an aligned word of 2^align bytes. */
const atomic = (code: number, align: number) => [0xfe, code, align, 0]
const LOAD = atomic(0x10, 2)
const STORE = atomic(0x17, 2)
const COMPARE_EXCHANGE = atomic(0x48, 2)
const COMPARE_EXCHANGE_PAIR = atomic(0x49, 3)
/** (high << 32) | low */
const joined = (low: number, high: number) => [...local(high), 0xad, 0x42, 32, 0x86, ...local(low), 0xad, 0x84]

const FUNCTIONS: readonly {
  readonly name: keyof Exports
  readonly takes: number
  readonly gives: number
  readonly body: readonly number[]
}[] = [
  { name: 'load', takes: 1, gives: 1, body: [...local(0), ...LOAD] },
  { name: 'store', takes: 2, gives: 0, body: [...local(0), ...local(1), ...STORE] },
  { name: 'swap', takes: 3, gives: 1, body: [...local(0), ...local(1), ...local(2), ...COMPARE_EXCHANGE, ...local(1), EQ_32] },
  {
    name: 'swapPair',
    takes: 5,
    gives: 1,
    body: [...local(0), ...joined(1, 2), ...joined(3, 4), ...COMPARE_EXCHANGE_PAIR, ...joined(1, 2), EQ_64],
  },
  { name: 'isStill', takes: 3, gives: 1, body: [...local(2), ...constant(0), ...STORE, ...local(0), ...LOAD, ...local(1), EQ_32] },
]

const text = (name: string) => [name.length, ...Array.from(name, (letter) => letter.charCodeAt(0))]
/** A number in 7 bits a byte. */
const sized = (content: readonly number[]) =>
  content.length < 128 ? [content.length] : [(content.length & 127) | 128, content.length >> 7]
const section = (id: number, items: readonly (readonly number[])[]) => {
  const content = [items.length, ...items.flat()]
  return [id, ...sized(content), ...content]
}
const typeOf = (takes: number, gives: number) => [0x60, takes, ...Array(takes).fill(I32), gives, ...Array(gives).fill(I32)]
const codeOf = (body: readonly number[]) => {
  const code = [0, ...body, END]
  return [...sized(code), ...code]
}

/** The largest memory that may be given, 65,536 pages, in 7 bits a byte. */
const PAGES = [0x80, 0x80, 0x04]

const MODULE: readonly number[] = [
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...section(
    1,
    FUNCTIONS.map(({ takes, gives }) => typeOf(takes, gives)),
  ),
  ...section(2, [[...text('sluice'), ...text('memory'), 2, 3, 0, ...PAGES]]),
  ...section(
    3,
    FUNCTIONS.map((_, k) => [k]),
  ),
  ...section(
    7,
    FUNCTIONS.map(({ name }, k) => [...text(name), 0, k]),
  ),
  ...section(
    10,
    FUNCTIONS.map(({ body }) => codeOf(body)),
  ),
]
