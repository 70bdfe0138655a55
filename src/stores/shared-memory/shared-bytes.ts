/**
 * Bytes that threads share, and the one operation that JavaScript has no cheap form of: compare and swap 64 bits. `Atomics` can do it on
 * BigInts, which are made on the heap for every call. WebAssembly does it on plain numbers, in a fifth of the time. Both are the same
 * instruction of the processor, so threads with and without WebAssembly can share.
 */
import { SluiceError } from '../../errors.ts'

export interface SharedBytes {
  readonly buffer: SharedArrayBuffer
  readonly memory?: object
}

/**
 * Swaps the two 32-bit words at an even index from (low, high) to (nextLow, nextHigh), if they still are what is expected. Tells whether they were.
 */
export type CompareAndSwap = (index: number, low: number, high: number, nextLow: number, nextHigh: number) => boolean | number

/** What is used of WebAssembly: declared here, because not every project has its types. */
interface Wasm {
  readonly Memory: new (limits: { initial: number; maximum: number; shared: true }) => { readonly buffer: SharedArrayBuffer }
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: { readonly swap: WasmSwap } }
}

type WasmSwap = (byte: number, low: number, high: number, nextLow: number, nextHigh: number) => number

const PAGE_BYTES = 65_536
const MAX_PAGES = 65_536

export function sharedBytes(bytes: number): SharedBytes {
  if (typeof SharedArrayBuffer === 'undefined') {
    throw new SluiceError('UNSUPPORTED', 'this runtime has no SharedArrayBuffer (in browsers the page must be cross-origin isolated)')
  }
  const memory = wasmMemory(Math.ceil(bytes / PAGE_BYTES))
  if (memory !== undefined) return { buffer: memory.buffer, memory }
  try {
    return { buffer: new SharedArrayBuffer(bytes) }
  } catch (cause) {
    throw new SluiceError('CONFIG', `sharedStore needs ${bytes} bytes of shared memory and did not get them: choose smaller options`, {
      cause,
    })
  }
}

function wasm(): Wasm | undefined {
  return (globalThis as { WebAssembly?: Wasm }).WebAssembly
}

/** Undefined where there is none, or not that much of it. */
function wasmMemory(pages: number): { readonly buffer: SharedArrayBuffer } | undefined {
  const api = wasm()
  if (api === undefined || pages > MAX_PAGES) return undefined
  try {
    const memory = new api.Memory({ initial: pages, maximum: pages, shared: true })
    return memory.buffer instanceof SharedArrayBuffer ? memory : undefined
  } catch {
    return undefined
  }
}

export function compareAndSwap64(bytes: SharedBytes): CompareAndSwap {
  return byWasm(bytes) ?? byBigInt(bytes.buffer)
}

/** Undefined where WebAssembly is not there or, by a page's security policy, not allowed. */
function byWasm({ memory }: SharedBytes): CompareAndSwap | undefined {
  const api = wasm()
  if (api === undefined || memory === undefined) return undefined
  try {
    const { swap } = new api.Instance(new api.Module(new Uint8Array(MODULE)), { sluice: { memory } }).exports
    return (index, low, high, nextLow, nextHigh) => swap(index * 4, low, high, nextLow, nextHigh)
  } catch {
    return undefined
  }
}

function byBigInt(buffer: SharedArrayBuffer): CompareAndSwap {
  const words = new BigInt64Array(buffer, 0, Math.floor(buffer.byteLength / 8))
  const [expected, next] = [new BigInt64Array(1), new BigInt64Array(1)]
  const [expectedHalves, nextHalves] = [new Int32Array(expected.buffer), new Int32Array(next.buffer)]
  return (index, low, high, nextLow, nextHigh) => {
    expectedHalves[0] = low
    expectedHalves[1] = high
    nextHalves[0] = nextLow
    nextHalves[1] = nextHigh
    const before = expected[0] as bigint
    return Atomics.compareExchange(words, index >> 1, before, next[0] as bigint) === before
  }
}

const I32 = 0x7f
const local = (k: number) => [0x20, k]
/** (high << 32) | low */
const joined = (low: number, high: number) => [...local(high), 0xad, 0x42, 32, 0x86, ...local(low), 0xad, 0x84]
const text = (name: string) => [name.length, ...Array.from(name, (letter) => letter.charCodeAt(0))]
const section = (id: number, content: readonly number[]) => [id, content.length, ...content]

/** swap(byte, low, high, nextLow, nextHigh): i64.eq(i64.atomic.rmw.cmpxchg(byte, expected, next), expected) */
const BODY = [0, ...local(0), ...joined(1, 2), ...joined(3, 4), 0xfe, 0x49, 3, 0, ...joined(1, 2), 0x51, 0x0b]

/** The largest memory that may be given, in 7 bits a byte: 65,536 pages. */
const PAGES = [0x80, 0x80, 0x04]

const MODULE: readonly number[] = [
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  ...section(1, [1, 0x60, 5, I32, I32, I32, I32, I32, 1, I32]),
  ...section(2, [1, ...text('sluice'), ...text('memory'), 2, 3, 0, ...PAGES]),
  ...section(3, [1, 0]),
  ...section(7, [1, ...text('swap'), 0, 0]),
  ...section(10, [1, BODY.length, ...BODY]),
]
