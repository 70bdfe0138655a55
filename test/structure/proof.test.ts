/**
 * What the mutation check needs to be of this code: every Lua file is judged, by tests that are
 * there, and each proof is of a line that is there.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { CLAIMS } from '../../proof/equivalent.mjs'
import { mutantsIn, sourceFiles } from '../../proof/sources.mjs'
import { LUA_SOURCES, testsFor } from '../../proof/suites.mjs'
import { collector } from '../../proof/test-api.mjs'

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

test('those tests use nothing of vitest that the check does not have', () => {
  const { api } = collector(0)
  const paths = new Set(sourceFiles(root).flatMap((file) => testsFor(root, file).map(({ path }) => path)))
  const used = [...paths].flatMap((path) => {
    const names = readFileSync(join(root, path), 'utf8').matchAll(/^ *(test|describe)\.(\w+)/gm)
    return Array.from(names, ([, of, name]) => ({ path, of, name }) as { path: string; of: 'test' | 'describe'; name: string })
  })
  expect(used.filter(({ of, name }) => !(name in api[of]))).toEqual([])
  expect(used.length).toBeGreaterThan(10)
})

test('every proof is of a mutant that is there', () => {
  const mutants = sourceFiles(root).flatMap((file) => mutantsIn(root, file))
  expect(CLAIMS.filter(({ covers }) => !mutants.some(covers)).map(({ name }) => name)).toEqual([])
})
