export interface ComposedScript {
  readonly types: readonly string[]
  readonly text: string
  readonly sha1: string
}
export interface Place {
  readonly types: readonly string[]
  readonly line: number
  readonly text: string
  readonly source: string
}
export function composedScripts(): Promise<ComposedScript[]>
export function placeOf(scripts: readonly ComposedScript[], message: string): Place | undefined
