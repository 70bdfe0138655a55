export const GENERATED: string
export function algorithmFolders(): string[]
export function luaSources(): Readonly<Record<string, string>>
export function generated(): string
