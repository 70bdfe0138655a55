/** Docs that can be run are run: every `ts` block of every page is type-checked and executed. `ts no-run` blocks are type-checked only. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** Inside the package, so that `import 'sluice'` finds the package itself. */
const folder = join(root, '.snippets')

interface Snippet {
  readonly name: string
  readonly code: string
  readonly run: boolean
}

const pages = ['*.md', 'docs/**/*.md', 'src/**/*.md'].flatMap((pattern) => filesMatching(pattern))

function filesMatching(pattern: string): string[] {
  const listed = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', pattern], { cwd: root, encoding: 'utf8' })
  return listed.stdout.split('\n').filter((path) => path !== '')
}

function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(join(root, page), 'utf8')
  return [...text.matchAll(/^```ts( no-run)?\n(.*?)^```/gms)].map((match, k) => ({
    name: `${basename(page, '.md')}-${k + 1}`,
    code: match[2] as string,
    run: match[1] === undefined,
  }))
}

const snippets = [...new Set(pages)].flatMap(snippetsOf)

function compile(): string {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const { name, code } of snippets) writeFileSync(join(folder, `${name}.ts`), `${code}\nexport {}\n`)
  const config = {
    extends: '../tsconfig.json',
    compilerOptions: { noEmit: false, outDir: 'out', rootDir: '.', noUnusedLocals: false },
    include: ['*.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  return spawnSync('npx', ['--no-install', 'tsc', '-p', join(folder, 'tsconfig.json')], { cwd: root, encoding: 'utf8' }).stdout
}

describe('the snippets of the documents', () => {
  test('are found, and pass the type checker', () => {
    expect(snippets.length).toBeGreaterThan(0)
    expect(compile()).toBe('')
  })

  test.each(snippets.filter(({ run }) => run))('$name runs', ({ name }) => {
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'out', `${name}.js`)], { cwd: root, encoding: 'utf8' })
    expect(stderr).toBe('')
    expect(status).toBe(0)
  })
})
