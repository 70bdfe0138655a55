export interface LuaModule {
  readonly name: string
  readonly path: string
  readonly text: string
  readonly needs: readonly string[]
}
export interface Entry {
  readonly path: string
  readonly roots: readonly string[]
}
export const prelude: string
export function generateLua(options: { readonly root: URL; readonly entries: readonly Entry[] }): LuaModule[]
export interface OfAlgorithm {
  readonly root: URL
  readonly decide: string
  readonly algorithm: { readonly path: string; readonly name: string }
}
export interface Plain {
  readonly words?: number
  readonly windowUs?: string
  readonly rule?: string
  readonly take: string
  readonly charge: string
  readonly settle: string
}
export function generatePlain(options: OfAlgorithm): Plain
export function generatePhases(options: OfAlgorithm): string
export function generateTakeAll(options: { readonly root: URL; readonly decide: string }): string
