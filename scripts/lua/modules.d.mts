import type { LuaModule } from './generate.mjs'
export function camelCase(name: string): string
export function algorithmFolders(): string[]
export function luaModules(): LuaModule[]
