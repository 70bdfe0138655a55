import { SluiceError } from '../../errors.ts'

export interface SharedBytes {
  readonly buffer: SharedArrayBuffer
  /** A `WebAssembly.Memory` over the same bytes. */
  readonly memory?: object
}

/** What is used of WebAssembly: declared here, because not every project has its types. */
interface Wasm {
  readonly Memory: new (limits: { initial: number; maximum: number; shared: true }) => { readonly buffer: SharedArrayBuffer }
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}

const PAGE_BYTES = 65_536
const MOST_PAGES = 65_536
/** What 31 bits can count the 32-bit words of. */
const MOST_BYTES = 2 ** 33 - PAGE_BYTES

/**
 * At least so many bytes that threads can share, all 0; as a memory of WebAssembly where there is
 * one.
 */
export function sharedBytes(bytes: number): SharedBytes {
  if (typeof SharedArrayBuffer === 'undefined') {
    throw new SluiceError('UNSUPPORTED', 'this runtime has no SharedArrayBuffer (in browsers the page must be cross-origin isolated)')
  }
  const memory = wasmMemory(Math.ceil(bytes / PAGE_BYTES))
  if (memory !== undefined) return { buffer: memory.buffer, memory }
  if (bytes > MOST_BYTES) throw tooMuch(bytes)
  try {
    return { buffer: new SharedArrayBuffer(bytes) }
  } catch (cause) {
    throw tooMuch(bytes, cause)
  }
}

/**
 * Arrays of a thread's own that lie outside of the heap, because they are given a buffer: where
 * they lie never changes, and the compiler takes that for a constant too. Small ones lie in the
 * heap otherwise, and are asked where and how long they are at each use.
 */
export function fixedInts(count: number): Int32Array {
  return new Int32Array(new ArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT))
}

export function fixedDoubles(count: number): Float64Array {
  return new Float64Array(new ArrayBuffer(count * Float64Array.BYTES_PER_ELEMENT))
}

function tooMuch(bytes: number, cause?: unknown): SluiceError {
  return new SluiceError('CONFIG', `sharedStore needs ${bytes} bytes of shared memory and did not get them: choose smaller options`, {
    cause,
  })
}

/** Undefined where there is none, or not that much of it. */
function wasmMemory(pages: number): { readonly buffer: SharedArrayBuffer } | undefined {
  const api = wasm()
  if (api === undefined || pages > MOST_PAGES) return undefined
  try {
    const memory = new api.Memory({ initial: pages, maximum: pages, shared: true })
    return memory.buffer instanceof SharedArrayBuffer ? memory : undefined
  } catch {
    return undefined
  }
}

export function wasm(): Wasm | undefined {
  return (globalThis as { WebAssembly?: Wasm }).WebAssembly
}
