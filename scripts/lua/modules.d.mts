import type { LuaModule } from './generate.mjs'
export function algorithmFolders(): string[]
export function luaModules(): LuaModule[]
