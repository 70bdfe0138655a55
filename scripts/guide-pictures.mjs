// Draws the pictures of docs/guides that come from simulated runs:
// `node scripts/guide-pictures.mjs`. The drawing is TypeScript of the page.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { rolldown } from 'rolldown'

const root = new URL('..', import.meta.url)

const folder = mkdtempSync(join(tmpdir(), 'sluice-pictures-'))
try {
  const file = join(folder, 'pictures.mjs')
  const bundle = await rolldown({ input: fileURLToPath(new URL('playground/scripts/guide-pictures.ts', root)), platform: 'node' })
  await bundle.write({ file, format: 'esm' })
  const { guidePictures } = await import(pathToFileURL(file).href)
  const pictures = await guidePictures(new URL('playground/src/style/page.css', root))
  for (const [name, svg] of Object.entries(pictures)) writeFileSync(new URL(`docs/pictures/${name}`, root), svg)
} finally {
  rmSync(folder, { recursive: true })
}
