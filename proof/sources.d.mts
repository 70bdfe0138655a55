export interface Mutant {
  readonly id: string
  readonly file: string
}
export function sourceFiles(root: string): string[]
export function mutantsIn(root: string, file: string): Mutant[]
