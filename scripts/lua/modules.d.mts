import type { LuaModule } from './generate.mjs'
export function algorithmFolders(): string[]
export function luaModules(): LuaModule[]
export function luaTakes(): { readonly name: string; readonly text: string }[]
export function luaPhases(): { readonly name: string; readonly text: string }[]
export function luaTakeAll(): string
