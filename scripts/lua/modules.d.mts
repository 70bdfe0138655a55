import type { LuaModule, Plain } from './generate.mjs'
export function algorithmFolders(): string[]
export function luaModules(): LuaModule[]
export function luaPlain(): ({ readonly name: string } & Plain)[]
export function luaPhases(): { readonly name: string; readonly text: string }[]
export function luaTakeAll(): string
