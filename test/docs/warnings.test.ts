/** The codes of warnings are told in two places, the union and the page; they must agree. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

test('every warning stands on the page in the order of the union, with what to do', () => {
  const inUnion = [...textOf('src/http/warnings.ts').matchAll(/^ {2}\| '(\w+)'/gm)].map((match) => match[1])
  const inDocs = [...textOf('docs/reference/http.md').matchAll(/^\| `(SLUICE_\w+)` \| \S.*\. \| [A-Z].*\. \|$/gm)].map((match) => match[1])
  expect(inUnion.length).toBeGreaterThan(3)
  expect(inDocs).toEqual(inUnion)
})
