// Names that mean something else in Lua than in TypeScript.
import { readFileSync } from 'node:fs'

export const PRELUDE = readFileSync(new URL('prelude.lua', import.meta.url), 'utf8')

/** The functions that the prelude defines. */
export const PRELUDE_FUNCTIONS = new Set([...PRELUDE.matchAll(/^local function (\w+)/gm)].map(([, name]) => name))

/** What a text needs of the prelude. */
export function preludeFor(text) {
  const isNeeded = (name) => new RegExp(`\\b${name}\\b`).test(text)
  const functions = PRELUDE.split('\n\n').filter((block) =>
    [...block.matchAll(/^local function (\w+)/gm)].some(([, name]) => isNeeded(name)),
  )
  const math = [...MATH, 'huge'].filter(isNeeded).map((name) => `local ${name} = math.${name}`)
  return [...math, ...functions].join('\n')
}

/** Functions of `Math`, under the same names in the prelude. */
export const MATH = new Set(['max', 'min', 'floor', 'ceil'])

const KEYWORDS = 'and break do else elseif end false for function if in local nil not or repeat return then true until while'.split(' ')

const TAKEN = new Set([...KEYWORDS, ...PRELUDE_FUNCTIONS, ...MATH, 'huge', 'algorithms'])

export function isKeyword(name) {
  return KEYWORDS.includes(name)
}

export function isTaken(name) {
  return TAKEN.has(name)
}

/**
 * The name in Lua of what a function or a block declares. What would hide a keyword, the prelude or
 * an imported function (known by another name in TypeScript, by its own in Lua) gets an underscore.
 */
export function localName(source, name) {
  const hides = TAKEN.has(name) || [...source.imports.values()].some((imported) => imported.name === name)
  return hides ? `${name}_` : name
}

/** The name of a module in Lua, from the name of its file. */
export function camelCase(name) {
  return name.replace(/-([a-z])/g, (_, letter) => letter.toUpperCase())
}
