/**
 * Every example is type-checked and run; what it prints stands at its end, as a comment:
 * `// prints:` and a line for each line.
 */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, inject, test } from 'vitest'
import { algorithmFolders } from '../../scripts/embed-lua.mjs'
import { type Compiled, compiled, filesMatching, root } from '../support/compile.ts'

const examples = filesMatching('examples/*.ts').map((path) => {
  const code = readFileSync(join(root, path), 'utf8')
  return { name: basename(path, '.ts'), code, prints: printedBy(code) }
})

/** The lines of the comment block at the end; undefined if there is none. */
function printedBy(code: string): string | undefined {
  const block = /^\/\/ prints:\n((?:\/\/.*\n)+)$/m.exec(code)
  if (block === null || block.index + block[0].length !== code.length) return undefined
  return (block[1] as string).replace(/^\/\/ ?/gm, '')
}

describe('the examples', () => {
  let programs: Compiled
  beforeAll(() => {
    programs = compiled('examples', examples, { experimentalDecorators: true })
  })

  test('pass the type checker', () => {
    expect(examples.length).toBeGreaterThan(0)
    expect(programs.errors).toBe('')
  })

  test('there is one for every algorithm', () => {
    expect(examples.map(({ name }) => name)).toEqual(expect.arrayContaining(algorithmFolders()))
  })

  test.each(examples)('$name prints what it says it prints', ({ name, prints }) => {
    expect(prints, `examples/${name}.ts ends with a comment block '// prints:'`).toBeDefined()
    const { status, stdout, stderr } = programs.run(name, { DATABASE_URL: inject('postgresUrl') })
    expect(stderr).toBe('')
    expect(stdout).toBe(prints)
    expect(status).toBe(0)
  })
})

/** The picture in the guide is the output of an example, so that it is true. */
test('the picture in docs/guides/choosing.md is what examples/compare.ts prints', () => {
  const compare = examples.find(({ name }) => name === 'compare')
  expect(readFileSync(join(root, 'docs/guides/choosing.md'), 'utf8')).toContain(`\`\`\`\n${compare?.prints}\`\`\``)
})

test.each(['README.md', 'README.zh-CN.md'])('%s links to every example', (page) => {
  const text = readFileSync(join(root, page), 'utf8')
  for (const { name } of examples) expect(text).toContain(`(examples/${name}.ts)`)
})
