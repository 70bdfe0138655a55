export const LUA_SOURCES: readonly string[]
export function testsFor(root: string, file: string): { readonly path: string }[]
