export interface ComposedScript {
  readonly text: string
  readonly sha1: string
}
export interface Place {
  readonly line: number
  readonly text: string
  readonly source: string
}
export function composedScript(): Promise<ComposedScript>
export function placeOf(script: ComposedScript, message: string): Place | undefined
