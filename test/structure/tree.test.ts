/**
 * The trees in ARCHITECTURE.md list the files that are there: `index.ts`, types of scripts and
 * tests need not be named.
 *
 * A line of a tree is indented by two for each folder, and begins with folders (`redis/`) or files.
 * Files named in its text, and in the lines below that have no name in front, lie in the folder
 * that the line begins with, or beside the file.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
/** Names of files in a text, but not paths to other places. */
const FILE = /(?<![\w/.*-])(?:<name>|[\w-]+)(?:\.[\w-]+)*\.(?:ts|mjs|lua|md|proto|css)(?![\w/])/g
/** Where texts begin. */
const TEXT_COLUMN = 20

/** All files that a tree names, as paths. */
function listedIn(tree: string): string[] {
  const listed: string[] = []
  const folders: string[] = []
  let current: readonly string[] = []
  for (const line of tree.split('\n')) {
    const indent = line.search(/\S/)
    const [, head = '', text = ''] = indent < TEXT_COLUMN ? (/^ *(\S+(?: \S+)*)(?: {2,}(.*))?$/.exec(line) ?? []) : ['', '', line]
    if (head !== '') {
      const depth = indent / 2
      const parent = folders.slice(0, depth).join('')
      const names = head.split(' ')
      current = names.some((name) => name.endsWith('/')) ? names.map((name) => `${parent}${name}`) : [parent]
      folders[depth] = names[0] as string
      listed.push(...filesOf(names).map((name) => `${parent}${name}`))
    }
    for (const [name] of text.matchAll(FILE)) {
      listed.push(...current.map((folder) => `${folder}${name.replace('<name>', basename(folder))}`))
    }
  }
  return listed
}

/** `codec.ts .lua` is two files. */
function filesOf(names: readonly string[]): string[] {
  const files = names.filter((name) => !name.endsWith('/'))
  return files.map((name, k) => (name.startsWith('.') ? (files[k - 1] as string).replace(/\.\w+$/, name) : name))
}

function filesBelow(folder: string): string[] {
  const paths = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return paths.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name).slice(root.length))
}

const mayBeLeftOut = (path: string) => basename(path) === 'index.ts' || /\.(?:test\.ts|d\.mts)$/.test(path)

describe.each([
  ['The folders', 'src/'],
  ['The folders', 'scripts/lua/'],
  ['The service', 'server/src/'],
  ['The page', 'playground/src/'],
])('the tree of "%s", %s', (heading, folder) => {
  const tree = page.split(`\n## ${heading}\n`)[1]?.split('```')[1] as string
  const listed = listedIn(tree).filter((path) => path.startsWith(folder))
  const there = filesBelow(folder)

  test('lists every file', () => {
    expect(there.filter((path) => !mayBeLeftOut(path) && !listed.includes(path))).toEqual([])
  })

  test('lists no file that is not there', () => {
    expect(listed.filter((path) => !there.includes(path))).toEqual([])
  })
})
