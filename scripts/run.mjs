// Small helpers that the commands in package.json share.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../', import.meta.url))

/** Runs a command in the project's root and ends this process with its code if it fails. */
export function run(command, args, options = {}) {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: 'inherit', ...options })
  if (error) fail(`${command} could not be started: ${error.message}`)
  if (status !== 0) process.exit(status ?? (signal ? 1 : 0))
}

export function succeeds(command, args, options = {}) {
  return spawnSync(command, args, { stdio: 'ignore', ...options }).status === 0
}

export function fail(message) {
  console.error(`\n${message}\n`)
  process.exit(1)
}

/** A heading, so that a reader of a long log sees where it is. */
export function step(title) {
  console.log(`\n=== ${title}`)
}

/** Installs the npm packages, unless the ones that the lock file names are there already. */
export function installPackages() {
  const installed = `${root}node_modules/.package-lock.json`
  if (existsSync(installed) && sameVersions(`${root}package-lock.json`, installed)) return
  step('npm ci')
  // Without scripts: one package is built by its own, for minutes, and the tests do that faster.
  run('npm', ['ci', '--no-audit', '--no-fund', '--ignore-scripts'])
}

function sameVersions(lockPath, installedPath) {
  const wanted = JSON.parse(readFileSync(lockPath, 'utf8')).packages
  const found = JSON.parse(readFileSync(installedPath, 'utf8')).packages
  return Object.entries(wanted).every(([path, { version, optional, link }]) => {
    return path === '' || optional || link || found[path]?.version === version
  })
}

/**
 * The dependencies of one folder are installed there, by its own lock file: the library has no
 * dependencies, and the benches have hundreds.
 */
export function installFolder(folder) {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(`${root}${folder}/package.json`, 'utf8'))
  if (Object.entries({ ...dependencies, ...devDependencies }).every(([name, version]) => installedIn(folder, name) === version)) return
  step(`npm ci in ${folder}/`)
  run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: `${root}${folder}` })
}

function installedIn(folder, name) {
  const path = `${root}${folder}/node_modules/${name}/package.json`
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined
}
