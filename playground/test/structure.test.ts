/** The structure of the page: which folder imports which, and the pictures that documents show. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { guidePictures } from '../scripts/guide-pictures.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const src = join(root, 'playground/src')
const sources = (readdirSync(src, { recursive: true, encoding: 'utf8' }) as string[]).filter((path) => path.endsWith('.ts'))
const importsOf = (path: string) =>
  [...readFileSync(join(src, path), 'utf8').matchAll(/from '([^']+)'|^import '([^']+)'/gm)].map((match) => match[1] ?? (match[2] as string))

test('only sluice.ts reaches for the library, and only tapes.ts for the tables', () => {
  const leaving = sources.flatMap((path) =>
    importsOf(path)
      .filter((target) => target.startsWith('.') && relative(src, resolve(src, dirname(path), target)).startsWith('..'))
      .map((target) => [path, target.includes('test/vectors') ? 'vectors' : 'library'].join(' ')),
  )
  expect([...new Set(leaving)].sort()).toEqual(['simulation/tapes.ts vectors', 'sluice.ts library'])
})

test('the simulation knows neither the page nor anything but the library', () => {
  const imports = sources.filter((path) => path.startsWith('simulation/')).flatMap(importsOf)
  const folders = imports.filter((target) => target.startsWith('../') && !target.includes('test/vectors'))
  expect([...new Set(folders)].sort()).toEqual(['../numbers.ts', '../sluice.ts', '../text/en.ts'])
})

test('the pictures of the guides are what the library does and the page draws today', async () => {
  const pictures = await guidePictures(new URL('../src/style/page.css', import.meta.url))
  expect(Object.keys(pictures)).toHaveLength(6)
  for (const [name, svg] of Object.entries(pictures)) expect(svg, name).toBe(readFileSync(join(root, 'docs/pictures', name), 'utf8'))
})

test('every picture that a document shows is there, and no larger than a page should be', () => {
  const documents = ['README.md', 'README.zh-CN.md', ...['playground', 'at-once', 'load'].map((guide) => `docs/guides/${guide}.md`)]
  const pictures = documents.flatMap((document) =>
    [...readFileSync(join(root, document), 'utf8').matchAll(/(?:\]\(|src="|srcset=")([^)"]+\.(?:png|svg))/g)].map(([, target]) =>
      join(dirname(document), target as string),
    ),
  )
  expect(new Set(pictures).size).toBeGreaterThan(4)
  for (const picture of pictures) {
    expect(existsSync(join(root, picture)), picture).toBe(true)
    expect(statSync(join(root, picture)).size, picture).toBeLessThan(200_000)
  }
})
