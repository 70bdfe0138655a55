/** The public surface of the package is the one that was last agreed on: docs/reference/api.txt. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { describe, expect, test } from 'vitest'
import { REPORT, report } from '../../scripts/api.mjs'

const root = new URL('../../', import.meta.url)
const { exports } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { exports: Record<string, { require?: string }> }
const require = createRequire(root)
const today = report()

/** The names of one path that are there at run time, as the report has them. */
function valuesIn(text: string, path: string): string[] {
  const section = text.split('\n## ').find((each) => each.startsWith(`${path}\n`)) as string
  const named = [...section.matchAll(/^ {2}(\w+)$/gm)].map((match) => match[1] as string)
  const declared = [...section.matchAll(/^(?:abstract )?(?:function|class|const) (\w+)/gm)].map((match) => match[1] as string)
  return [...declared, ...named]
}

test('it is as the report says; if a change is meant: npm run build && npm run api', () => {
  expect(today).toBe(readFileSync(new URL(REPORT, root), 'utf8'))
})

describe('the report has every export that is there at run time', () => {
  const paths = Object.entries(exports).flatMap(([path, target]) => (target.require ? [[path.replace('.', 'sluice'), target.require]] : []))

  test.each(paths as [string, string][])('%s', (path, file) => {
    const names = Object.keys(require(file))
    expect(names.length).toBeGreaterThan(0)
    expect(valuesIn(today, path)).toEqual(expect.arrayContaining(names))
  })
})
