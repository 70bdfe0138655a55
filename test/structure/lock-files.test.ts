/** What the lock files promise: every package that is downloaded is checked by its hash, and comes from the registry that the user has set. */
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
 * Binaries of development tools for other platforms than the lock file was made on: the registry that it was made with did not have them. Whoever has
 * their hashes (`npm view @rolldown/binding-darwin-arm64@1.2.19 dist.integrity`) puts them into the lock file and takes them out of here.
 */
const UNCHECKED = [
  ...['android-arm64', 'android-x64', 'darwin-arm64', 'darwin-x64', 'linux-arm64-musl', 'linux-x64-musl', 'win32-arm64', 'win32-x64'].map(
    (platform) => `node_modules/@biomejs/cli-${platform}`,
  ),
  ...['android-arm-eabi', 'android-arm64', 'darwin-arm64', 'darwin-x64', 'freebsd-x64', 'linux-arm-gnueabihf', 'linux-arm64-gnu'].map(
    (platform) => `node_modules/@rolldown/binding-${platform}`,
  ),
  ...['linux-arm64-musl', 'linux-ppc64-gnu', 'linux-s390x-gnu', 'linux-x64-musl', 'openharmony-arm64', 'wasm32-wasi'].map(
    (platform) => `node_modules/@rolldown/binding-${platform}`,
  ),
  ...['win32-arm64-msvc', 'win32-x64-msvc'].map((platform) => `node_modules/@rolldown/binding-${platform}`),
]

/** All entries but those of the folders themselves: the package that the file is for, its workspaces, and links to them. */
function downloaded(path: string): [name: string, entry: Entry][] {
  const { packages } = JSON.parse(readFileSync(join(root, path), 'utf8')) as { packages: Record<string, Entry> }
  return Object.entries(packages).filter(([name, { link }]) => name.includes('node_modules/') && link !== true)
}

test('all lock files are looked at', () => {
  expect(lockFiles).toEqual(expect.arrayContaining(['package-lock.json', 'server/package-lock.json', 'playground/package-lock.json']))
})

describe.each(lockFiles)('%s', (path) => {
  test('every package has a hash, but for those that are known to lack it', () => {
    const unchecked = downloaded(path).filter(([, { integrity = '' }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity))
    expect(unchecked.map(([name]) => name)).toEqual(path === 'package-lock.json' ? UNCHECKED : [])
  })

  test('no package names the host that it was downloaded from', () => {
    expect(downloaded(path).filter(([, { resolved }]) => resolved !== undefined)).toEqual([])
  })
})
