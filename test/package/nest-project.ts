/**
 * A Nest project with Jest, as Nest's command line makes one, that uses the packed package. It has
 * a lock file of its own, as it weighs 130 MB.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './project.ts'
import { type Ended, output, run } from './run.ts'

const folder = join(import.meta.dirname, 'nest')
const installed = join(folder, 'node_modules')
/** A copy of the lock file that `installed` was made from. */
const installedLock = join(installed, 'installed-from.json')

export interface NestProject {
  /** By Jest. */
  test(): Promise<Ended>
  /** By the project's TypeScript, with these options on top. */
  typecheck(...options: string[]): Promise<Ended>
}

/** With the package of this tarball. */
export async function nestProject(tarball: string): Promise<NestProject> {
  await install()
  const own = join(installed, 'sluice')
  rmSync(own, { recursive: true, force: true })
  mkdirSync(own)
  await output('tar', ['-xzf', tarball, '--strip-components=1', '-C', own], folder)
  return {
    test: () => run(process.execPath, [join(installed, 'jest/bin/jest.js'), '--config', 'jest.config.json', '--no-cache'], folder),
    typecheck: (...options) => run(process.execPath, [join(installed, 'typescript/bin/tsc'), '-p', '.', ...options], folder),
  }
}

async function install(): Promise<void> {
  const lock = readFileSync(join(folder, 'package-lock.json'), 'utf8')
  if (existsSync(installedLock) && readFileSync(installedLock, 'utf8') === lock) return
  console.log('Installing Nest and Jest for test/package (130 MB, once) ...')
  // Made aside and then moved as a whole, so that an interrupted install leaves no half.
  mkdirSync(join(root, 'tmp'), { recursive: true })
  const aside = mkdtempSync(join(root, 'tmp/nest-'))
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(folder, file), join(aside, file))
    await output('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], aside)
    cpSync(join(aside, 'package-lock.json'), join(aside, 'node_modules/installed-from.json'))
    rmSync(installed, { recursive: true, force: true })
    renameSync(join(aside, 'node_modules'), installed)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}
