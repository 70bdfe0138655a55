/**
 * What the mutation check needs to be of this code: every Lua file is judged, by tests that are
 * there, and each proof is of a line that is there.
 */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { CLAIMS } from '../../proof/equivalent.mjs'
import { mutantsIn, sourceFiles } from '../../proof/sources.mjs'
import { LUA_SOURCES, testsFor } from '../../proof/suites.mjs'

const root = fileURLToPath(new URL('../../', import.meta.url))

function luaBelow(folder: string): string[] {
  const paths = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
  return paths.filter((path) => path.endsWith('.lua')).map((path) => join(folder, path))
}

test('every Lua file is judged', () => {
  expect([...LUA_SOURCES].sort()).toEqual([...luaBelow('src'), ...luaBelow('scripts')].sort())
})

test.each(sourceFiles(root))('%s is judged by tests that are there', (file) => {
  const paths = testsFor(root, file).map(({ path }) => path)
  expect(paths.length).toBeGreaterThan(0)
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
})

test('every proof is of a mutant that is there', () => {
  const mutants = sourceFiles(root).flatMap((file) => mutantsIn(root, file))
  expect(CLAIMS.filter(({ covers }) => !mutants.some(covers)).map(({ name }) => name)).toEqual([])
})
