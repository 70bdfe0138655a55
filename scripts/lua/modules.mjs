// The modules of the library that run in Redis: every algorithm, and the decision.
import { readdirSync } from 'node:fs'
import { generateLua, generatePhases, generatePlain, generateTakeAll, prelude } from './generate.mjs'
import { camelCase } from './names.mjs'

const root = new URL('../../', import.meta.url)
const ALGORITHMS = 'src/algorithms'

/** Every algorithm has a folder, and in it a module of the same name. */
export function algorithmFolders() {
  const entries = readdirSync(new URL(ALGORITHMS, root), { withFileTypes: true })
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/**
 * `{ name, path, text, needs }` for each, the prelude first, and each behind those that it needs.
 */
export function luaModules() {
  const algorithms = algorithmFolders().map((name) => ({
    path: `${ALGORITHMS}/${name}/${name}.ts`,
    roots: [`${camelCase(name)}Algorithm`],
  }))
  const entries = [...algorithms, { path: `${ALGORITHMS}/decide.ts`, roots: ['decide'] }]
  const generated = generateLua({ root, entries }).map((each) => ({ ...each, needs: ['prelude', ...each.needs] }))
  return [{ name: 'prelude', path: 'scripts/lua/prelude.lua', text: prelude, needs: [] }, ...generated]
}

/**
 * What each algorithm decides by one limit, by the name of the module: `{ name, ... }`, see
 * `generatePlain`.
 */
export function luaPlain() {
  return ofEachAlgorithm(generatePlain)
}

/** What a take by several limits does with a cell of each algorithm. */
export function luaPhases() {
  return ofEachAlgorithm((options) => ({ text: generatePhases(options) }))
}

function ofEachAlgorithm(generate) {
  return algorithmFolders().map((folder) => {
    const name = camelCase(folder)
    const algorithm = { path: `${ALGORITHMS}/${folder}/${folder}.ts`, name: `${name}Algorithm` }
    return { name, ...generate({ root, decide: `${ALGORITHMS}/decide.ts`, algorithm }) }
  })
}

/** The take by several limits. */
export function luaTakeAll() {
  return generateTakeAll({ root, decide: `${ALGORITHMS}/decide.ts` })
}
