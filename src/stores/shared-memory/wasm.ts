/** What is used of WebAssembly: declared here, because not every project has its types. */
interface Wasm {
  readonly Memory: new (limits: { initial: number; maximum: number; shared: true }) => { readonly buffer: SharedArrayBuffer }
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: object }
}

export function wasm(): Wasm | undefined {
  return (globalThis as { WebAssembly?: Wasm }).WebAssembly
}
