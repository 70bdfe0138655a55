/** The package of an older commit, to compare with: see test/reference. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export const REFERENCE: string = join(import.meta.dirname, '../reference/sluice.tar.gz')

export interface Unpacked {
  readonly folder: string
  /** A module by its path in `dist/`. */
  load(path: string): Promise<Record<string, unknown>>
  remove(): void
}

export function unpackedReference(): Unpacked {
  const parent = mkdtempSync(join(tmpdir(), 'sluice-reference-'))
  execFileSync('tar', ['-xzf', REFERENCE, '-C', parent])
  const folder = join(parent, 'package')
  return {
    folder,
    load: (path) => import(pathToFileURL(join(folder, 'dist', path)).href),
    remove: () => rmSync(parent, { recursive: true }),
  }
}
