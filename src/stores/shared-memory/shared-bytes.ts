import { SluiceError } from '../../errors.ts'
import { wasm } from './wasm.ts'

export interface SharedBytes {
  readonly buffer: SharedArrayBuffer
  /** A `WebAssembly.Memory` over the same bytes. */
  readonly memory?: object
}

const PAGE_BYTES = 65_536
const MOST_PAGES = 65_536
/** What 31 bits can count the 32-bit words of. */
const MOST_BYTES = 2 ** 33 - PAGE_BYTES

/** At least so many bytes that threads can share, all 0; as a memory of WebAssembly where there is one. */
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
