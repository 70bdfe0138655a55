// What mutants are made from: the TypeScript of the algorithms, and the Lua that is written by
// hand.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { mutantsOfLua } from './mutants-lua.mjs'
import { mutantsOfTypeScript } from './mutants-ts.mjs'
import { LUA_SOURCES } from './suites.mjs'

/** The order of judging: what the others stand on comes first. */
const ORDER =
  'level gcra token-bucket leaky-bucket arithmetic decide rate fixed-window sliding-window sliding-log words codec formats run'.split(' ')

/** The sources below `root`, as paths, in the order of judging. */
export function sourceFiles(root) {
  const algorithms = readdirSync(join(root, 'src/algorithms'), { recursive: true }).map((path) => `src/algorithms/${path}`)
  const sources = [...algorithms.filter((path) => /(?<!\.test|about|\/list)\.ts$/.test(path)), ...LUA_SOURCES]
  return sources.sort((a, b) => placeOf(a) - placeOf(b) || a.localeCompare(b))
}

function placeOf(path) {
  const [name, extension] = basename(path).split('.')
  const place = ORDER.indexOf(name)
  return (extension === 'lua' ? 100 : 0) + (place < 0 ? ORDER.length : place)
}

export function mutantsIn(root, file) {
  const text = readFileSync(join(root, file), 'utf8')
  return file.endsWith('.lua') ? mutantsOfLua(file, text) : mutantsOfTypeScript(file, text)
}
