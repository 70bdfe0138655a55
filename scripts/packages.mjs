// Makes sure that the programs which the tests need are there: installs them with the system's
// package manager where they are missing.
import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { fakeTimeLibrary, postgresProgram } from './postgres-server.mjs'
import { fail, run, step, succeeds } from './run.mjs'

export function ensureRedis() {
  const isThere = () => succeeds('redis-server', ['--version'])
  ensure({ name: 'redis-server', wanted: 'redis-server (6.2 or later)', brew: ['redis'], isThere })
}

/** The server and its programs, which Debian keeps off the path. */
export function ensurePostgres() {
  const isThere = () => postgresProgram('initdb') !== undefined && postgresProgram('postgres') !== undefined
  ensure({ name: 'postgresql', wanted: 'PostgreSQL (13 or later)', brew: ['postgresql@17'], isThere, proof: 'initdb --version' })
}

export function ensurePgbouncer() {
  ensure({ name: 'pgbouncer', wanted: 'pgbouncer', brew: ['pgbouncer'], isThere: () => postgresProgram('pgbouncer') !== undefined })
}

/**
 * For a PostgreSQL whose clock is set back. Where there is no apt-get, the test that needs it says
 * so and is left out.
 */
export function ensureFakeTime() {
  if (fakeTimeLibrary() !== undefined || !succeeds('apt-get', ['--version'])) return
  step('installing libfaketime')
  installWithApt('libfaketime')
}

/**
 * For disks that are slow. Where there is no apt-get, the tests that need it say so and are left
 * out.
 */
export function ensureStrace() {
  if (succeeds('strace', ['-V']) || !succeeds('apt-get', ['--version'])) return
  step('installing strace')
  installWithApt('strace')
}

const CHROMIUMS = [
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
]

/**
 * Where there is a Chromium that starts, or undefined: some systems have a script of that name that
 * only says where to get one.
 */
export function chromiumPath() {
  const folders = (process.env.PATH ?? '').split(':')
  const places = CHROMIUMS.flatMap((name) => (isAbsolute(name) ? [name] : folders.map((folder) => join(folder, name))))
  return [process.env.CHROMIUM, ...places].find((path) => path && existsSync(path) && succeeds(path, ['--version']))
}

/** The page is tested in a real one. */
export function ensureChromium() {
  ensure({ name: 'chromium', wanted: 'chromium', brew: ['--cask', 'chromium'], isThere: () => chromiumPath() !== undefined })
}

/** better-sqlite3 is built where no built one can be downloaded. */
export function ensureCompiler() {
  for (const [name, program] of Object.entries({ python3: 'python3', make: 'make', 'g++': 'c++' })) {
    ensure({ name, wanted: name, brew: [name === 'g++' ? 'gcc' : name], isThere: () => succeeds(program, ['--version']) })
  }
}

function ensure({ name, wanted, brew, isThere, proof = `${name} --version` }) {
  if (isThere()) return
  step(`installing ${name}`)
  if (succeeds('apt-get', ['--version'])) installWithApt(name)
  else if (succeeds('brew', ['--version'])) run('brew', ['install', ...brew])
  if (isThere()) return
  fail(
    `The tests need ${wanted} and could install it neither with apt-get nor with brew.\nInstall it by hand, so that \`${proof}\` works, and run \`npm test\` again.`,
  )
}

/**
 * Valkey is tested too where the system's packages have it. It is not in all of them, so it is not
 * required.
 */
export function tryValkey() {
  if (succeeds('valkey-server', ['--version']) || !succeeds('apt-cache', ['show', 'valkey-server'])) return
  step('installing valkey-server')
  const apt = process.getuid?.() === 0 ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  succeeds(apt[0], [...apt.slice(1), 'install', '-y', '-q', '--no-install-recommends', 'valkey-server'])
}

function installWithApt(name) {
  const root = process.getuid?.() === 0
  const apt = root ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  if (!root && !succeeds('sudo', ['-n', 'true'])) {
    fail(`The tests need ${name}, and installing it needs root: run \`sudo apt-get install ${name}\` and then \`npm test\` again.`)
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  run(apt[0], [...apt.slice(1), 'update', '-q'], { env })
  run(apt[0], [...apt.slice(1), 'install', '-y', '-q', '--no-install-recommends', name], { env })
}
