/**
 * Docs that can be run are run: every `ts` block of every page is type-checked and executed.
 * `ts no-run` blocks are type-checked only.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { type Compiled, compiled, filesMatching, type Program, root } from '../support/compile.ts'

interface Snippet extends Program {
  readonly run: boolean
}

function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```ts( no-run)?\n(.*?)^```/gms)].map((match, k) => ({
    name: `${page.replace(/\.md$/, '').replaceAll('/', '-')}-${k + 1}`,
    code: match[2] as string,
    run: match[1] === undefined,
  }))
}

/** English pages first: the Chinese ones have the same blocks, and each is run once. */
const pages = filesMatching('*.md', 'docs/**/*.md', 'src/**/*.md').sort(
  (a, b) => Number(a.includes('.zh-CN')) - Number(b.includes('.zh-CN')),
)
const all = pages.flatMap(snippetsOf)
const snippets = all.filter(({ code, run }, k) => all.findIndex((other) => other.code === code && other.run === run) === k)

describe('the snippets of the documents', () => {
  let programs: Compiled
  beforeAll(() => {
    programs = compiled('documents', snippets, { noUnusedLocals: false })
  })

  test('are found, and pass the type checker', () => {
    expect(snippets.length).toBeGreaterThan(0)
    expect(programs.errors).toBe('')
  })

  test.each(snippets.filter(({ run }) => run))('$name runs', ({ name }) => {
    const { status, stderr } = programs.run(name)
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })
})
