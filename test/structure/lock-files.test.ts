/**
 * The lock files: every downloaded package is checked by its hash, and comes from the registry that
 * the user has set.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

interface Entry {
  readonly version?: string
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
}

const root = fileURLToPath(new URL('../../', import.meta.url))
const lockFiles = execFileSync('git', ['ls-files', '*package-lock.json'], { cwd: root, encoding: 'utf8' }).trim().split('\n')

/**
 * All entries but those of the folders themselves: the package that the file is for, its
 * workspaces, and links to them.
 */
function downloaded(path: string): [name: string, entry: Entry][] {
  const { packages } = JSON.parse(readFileSync(join(root, path), 'utf8')) as { packages: Record<string, Entry> }
  return Object.entries(packages).filter(([name, { link }]) => name.includes('node_modules/') && link !== true)
}

test('all lock files are looked at', () => {
  expect(lockFiles).toEqual(expect.arrayContaining(['package-lock.json', 'server/package-lock.json', 'playground/package-lock.json']))
})

describe.each(lockFiles)('%s', (path) => {
  test('every package has a hash', () => {
    const unchecked = downloaded(path).filter(([, { integrity = '' }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity))
    expect(unchecked.map(([name]) => name)).toEqual([])
  })

  test('no package names the host that it was downloaded from', () => {
    expect(downloaded(path).filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
  })
})
