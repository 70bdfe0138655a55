/** Type-checks and compiles programs the way a user's project would, against the built package. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

export interface Program {
  readonly name: string
  readonly code: string
}

/**
 * Programs that can be run by name. `errors` is what the type checker says: nothing when all is
 * well.
 */
export interface Compiled {
  readonly errors: string
  /** `env`: variables besides those of this process. */
  run(
    name: string,
    env?: Readonly<Record<string, string>>,
  ): { readonly status: number | null; readonly stdout: string; readonly stderr: string }
}

/**
 * `group` keeps programs of different tests apart. They lie inside the package, so that
 * `import 'sluice'` finds the package itself.
 */
export function compiled(group: string, programs: readonly Program[], compilerOptions: object = {}): Compiled {
  const folder = join(root, '.snippets', group)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const { name, code } of programs) writeFileSync(join(folder, `${name}.ts`), `${code}\nexport {}\n`)
  const config = {
    extends: '../../tsconfig.json',
    compilerOptions: { noEmit: false, outDir: 'out', rootDir: '.', ...compilerOptions },
    include: ['*.ts'],
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const { stdout } = spawnSync('npx', ['--no-install', 'tsc', '-p', join(folder, 'tsconfig.json')], { cwd: root, encoding: 'utf8' })
  return {
    errors: stdout,
    run(name, env) {
      const program = join(folder, 'out', `${name}.js`)
      return spawnSync(process.execPath, [program], { cwd: root, encoding: 'utf8', env: { ...process.env, ...env } })
    },
  }
}

/** The project's files that match, those included that are not committed yet. */
export function filesMatching(...patterns: string[]): string[] {
  const listed = spawnSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], { cwd: root, encoding: 'utf8' })
  return [...new Set(listed.stdout.split('\n').filter((path) => path !== ''))]
}
