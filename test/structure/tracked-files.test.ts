/**
 * The files under version control: known ones at the root, and nothing that a tool leaves behind.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
const tracked = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).trim().split('\n')

const DOCUMENTS = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'README.md', 'README.zh-CN.md', 'SECURITY.md']
const SETTINGS = ['.dockerignore', '.editorconfig', '.gitignore', 'biome.json', 'package-lock.json', 'package.json']
const OF_TYPESCRIPT = ['tsconfig.build.json', 'tsconfig.json', 'vitest.config.ts']
const FOLDERS = ['bench', 'deploy', 'docs', 'examples', 'playground', 'proof', 'scripts', 'server', 'src', 'test', '.ci', '.github']

test('the root has documents, settings and known folders only', () => {
  const atRoot = [...new Set(tracked.map((path) => path.split('/')[0] as string))]
  const known = [...DOCUMENTS, ...SETTINGS, ...OF_TYPESCRIPT, ...FOLDERS]
  expect(atRoot.sort()).toEqual(known.sort())
})

test('no log, profile or trace of a tool is tracked', () => {
  expect(
    tracked.filter((path) => /\.(?:log|cpuprofile|heapprofile|heapsnapshot|rdb|pid|tgz)$|callgrind\.out|(?:^|\/)core$/.test(path)),
  ).toEqual([])
})

test.each(['isolate-0x1-1-v8.log', 'CPU.1.cpuprofile', 'Heap.1.heapsnapshot', 'callgrind.out.1', 'sluice-0.1.0.tgz'])(
  '%s is ignored',
  (file) => {
    expect(execFileSync('git', ['check-ignore', '--no-index', file], { cwd: root, encoding: 'utf8' }).trim()).toBe(file)
  },
)

test('no tracked file has a path of one machine', () => {
  const texts = tracked.filter((path) => /\.(?:md|ts|mts|mjs|json|yaml|lua)$/.test(path) && !path.endsWith('tracked-files.test.ts'))
  const found = texts.filter((path) => /["'` (](?:\/work\/|\/home\/\w+\/|\/Users\/\w+\/)/.test(readFileSync(join(root, path), 'utf8')))
  expect(found).toEqual([])
})
