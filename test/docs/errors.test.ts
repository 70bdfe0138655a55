/**
 * The error codes are told in three places, the union, the page and the code that throws; they must
 * agree.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

/** `| 'CONFIG' // when`, a line each. */
const inUnion = [...textOf('src/errors.ts').matchAll(/^ {2}\| '([A-Z_]+)'/gm)].map((match) => match[1] as string)

/** `` | `CONFIG` | when | what to do | ``, a row each. */
const inDocs = [...textOf('docs/reference/errors.md').matchAll(/^\| *`([A-Z_]+)` *\|(.*)\|(.*)\|$/gm)].map(([, code, when, todo]) => ({
  code: code as string,
  when: (when as string).trim(),
  todo: (todo as string).trim(),
}))

const thrown = (readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }) as string[])
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
  .flatMap((path) =>
    [...textOf(join('src', path)).matchAll(/new SluiceError\(\s*'(\w+)'/g)].map((match) => ({ path, code: match[1] as string })),
  )

describe('error codes', () => {
  test('are found in the source', () => {
    expect(inUnion).toContain('CONFIG')
    expect(thrown.map(({ code }) => code)).toContain('CONFIG')
  })

  test('stand on the page in the order of the union', () => {
    expect(inDocs.map(({ code }) => code)).toEqual(inUnion)
  })

  test.each(inDocs)('$code: the page says when and what to do', ({ when, todo }) => {
    expect(when).toMatch(/^[A-Z].*\.$/)
    expect(todo).toMatch(/^[A-Z].*\.$/)
  })

  test.each(thrown)('$code thrown in $path is in the union', ({ code }) => {
    expect(inUnion).toContain(code)
  })
})
