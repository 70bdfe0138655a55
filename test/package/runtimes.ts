/**
 * The runtimes in which the packed package is tried, and two versions of PostgreSQL. They come from
 * the npm registry as packages with the binary inside. Together they weigh 900 MB, too much for
 * `npm ci`, so they have a package.json and a lock file of their own.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from './project.ts'
import { type Ended, output, run } from './run.ts'

const folder = join(import.meta.dirname, 'runtimes')
export const installed: string = join(folder, 'node_modules')
/** A copy of the lock file that `installed` was made from. */
const installedLock = join(installed, 'installed-from.json')

export interface Runtime {
  readonly name: string
  /** Absolute, or within the installed packages. */
  readonly binary: string
  readonly args: readonly string[]
}

export const OLDEST_NODE: Runtime = { name: 'the oldest Node that is supported', binary: 'node-oldest/bin/node', args: [] }

export const RUNTIMES: readonly Runtime[] = [
  { name: 'the Node that runs the tests', binary: process.execPath, args: [] },
  OLDEST_NODE,
  { name: 'Node 22', binary: 'node22/bin/node', args: [] },
  { name: 'Node 24', binary: 'node24/bin/node', args: [] },
  { name: 'Bun', binary: '@oven/bun-linux-x64/bin/bun', args: ['--no-install'] },
  // It may read its files and nothing else: no network, no environment, no writing.
  { name: 'Deno', binary: '@deno/linux-x64-glibc/deno', args: ['run', '--no-prompt', '--allow-read=.'] },
]

/** Why a runtime cannot be had on this machine, or undefined if it can. */
export function whyMissing({ binary }: Runtime): string | undefined {
  if (binary === process.execPath || canInstall()) return undefined
  return `the binaries are for Linux with glibc on x64, this is ${process.platform} on ${process.arch}`
}

function canInstall(): boolean {
  const { header } = process.report.getReport() as unknown as { header: { glibcVersionRuntime?: string } }
  return process.platform === 'linux' && process.arch === 'x64' && header.glibcVersionRuntime !== undefined
}

/** Installs the runtimes, unless the ones that the lock file names are there already. */
export async function installRuntimes(): Promise<void> {
  if (!canInstall() || isCurrent()) return
  console.log('Installing Node, Bun, Deno, workerd and PostgreSQL binaries for test/package and others (900 MB, once) ...')
  // Made aside and then moved as a whole, so that neither an interrupted install nor a second run
  // at the same time leaves a half.
  mkdirSync(join(root, 'tmp'), { recursive: true })
  const aside = mkdtempSync(join(root, 'tmp/runtimes-'))
  try {
    for (const file of ['package.json', 'package-lock.json']) cpSync(join(folder, file), join(aside, file))
    await output('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'], aside)
    cpSync(join(aside, 'package-lock.json'), join(aside, 'node_modules/installed-from.json'))
    moveIntoPlace(join(aside, 'node_modules'))
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

function isCurrent(): boolean {
  return existsSync(installedLock) && readFileSync(installedLock, 'utf8') === readFileSync(join(folder, 'package-lock.json'), 'utf8')
}

function moveIntoPlace(made: string): void {
  if (isCurrent()) return
  rmSync(installed, { recursive: true, force: true })
  renameSync(made, installed)
}

/** Where the binary of an installed runtime is. */
export function binaryOf({ binary }: Runtime): string {
  return resolve(installed, binary)
}

/**
 * Runs a program in a runtime with a bare environment: what it prints on stderr is then the
 * program's doing.
 */
export function runIn(runtime: Runtime, args: readonly string[], cwd: string): Promise<Ended> {
  return run(binaryOf(runtime), [...runtime.args, ...args], cwd, { HOME: cwd })
}
