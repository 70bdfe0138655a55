export const GENERATED: string
export const LUA_SOURCES: Readonly<Record<string, string>>
export function generated(): string
