import type { Mutant } from './sources.mjs'
export const CLAIMS: readonly { readonly name: string; covers(mutant: Mutant): boolean }[]
