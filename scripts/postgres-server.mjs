// Real servers of our own on free ports, for tests and benches: PostgreSQL in a temporary folder, a
// standby, and pgbouncer.
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const HOST = '127.0.0.1'
export const USER = 'postgres'
/**
 * Debian keeps the programs of each version in a folder of its own, and pgbouncer beside root's;
 * Homebrew has folders for old versions.
 */
function programFolders() {
  return [
    ...versionsIn('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin`),
    ...(process.env.PATH ?? '').split(':'),
    '/usr/sbin',
    '/opt/homebrew/opt/postgresql@17/bin',
    '/usr/local/opt/postgresql@17/bin',
  ]
}

/**
 * The path of a program of PostgreSQL or of pgbouncer, or undefined. It may have been installed a
 * moment ago.
 */
export function postgresProgram(name) {
  return programFolders()
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path))
}

/** The newest first. */
function versionsIn(folder) {
  return existsSync(folder) ? readdirSync(folder).sort((a, b) => Number(b) - Number(a)) : []
}

/** It refuses to run as root: then as the user that its package has made. */
function owner() {
  if (process.getuid?.() !== 0) return {}
  const [uid, gid] = ['-u', '-g'].map((option) => Number(spawnSync('id', [option, USER], { encoding: 'utf8' }).stdout))
  return { uid, gid }
}

function ownFolder(prefix) {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  const { uid, gid } = owner()
  if (uid !== undefined) chownSync(folder, uid, gid)
  return folder
}

/**
 * libfaketime, which lets a program read a clock that is set from outside: where its package puts
 * it, or undefined. Not on macOS.
 */
export function fakeTimeLibrary() {
  const folders = existsSync('/usr/lib') ? ['/usr/lib', ...readdirSync('/usr/lib').map((name) => `/usr/lib/${name}`)] : []
  return folders.map((folder) => `${folder}/faketime/libfaketime.so.1`).find((path) => existsSync(path))
}

/**
 * A server with an empty database, whose clock is off by what `setClock` says, in seconds, from
 * then on. The clock of nothing else is touched.
 */
export async function startPostgresWithClock(settings = {}) {
  const folder = ownFolder('sluice-clock-')
  const file = join(folder, 'offset')
  const setClock = (seconds) => {
    // At once, as a whole: the server reads it at every look at the clock.
    writeFileSync(`${file}.next`, `${seconds < 0 ? '' : '+'}${seconds}s\n`)
    renameSync(`${file}.next`, file)
  }
  setClock(0)
  const server = await startPostgres(settings, {
    LD_PRELOAD: fakeTimeLibrary(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: '1',
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
  })
  const remove = async () => {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: server.url, setClock, remove }
}

/**
 * A server of another version, from the folder with its `bin`, `lib` and `share`. It is copied: the
 * user that it runs as may not be allowed into the project.
 */
export async function startPostgresFrom(native, settings = {}) {
  const folder = ownFolder('sluice-version-')
  cpSync(native, folder, { recursive: true, verbatimSymlinks: true })
  for (const name of readdirSync(join(folder, 'bin'))) chmodSync(join(folder, 'bin', name), 0o755)
  const server = await startPostgres(settings, {}, (name) => join(folder, 'bin', name))
  const remove = async () => {
    await server.remove()
    rmSync(folder, { recursive: true, force: true })
  }
  return { url: server.url, remove }
}

/**
 * A server with an empty database. `settings`: of postgresql.conf, by name; `env`: its variables;
 * `program`: where the programs are. Everybody on this machine may connect.
 */
export async function startPostgres(settings = {}, env = {}, program = postgresProgram) {
  const folder = ownFolder('sluice-postgres-')
  const data = join(folder, 'data')
  done('initdb', ['-D', data, '-U', USER, '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale', 'C'], program)
  return running(folder, data, settings, env, program)
}

/** A copy of a server that follows it. `promote()` makes it one that takes writes. */
export async function startStandby(primary, settings = {}) {
  const folder = ownFolder('sluice-standby-')
  const data = join(folder, 'data')
  done('pg_basebackup', ['-D', data, '-h', HOST, '-p', `${primary.port}`, '-U', USER, '-R', '--no-sync', '-c', 'fast'])
  return running(folder, data, settings)
}

async function running(folder, data, settings, env = {}, program = postgresProgram) {
  const port = await freePort()
  const given = { listen_addresses: HOST, unix_socket_directories: '', shared_buffers: '64MB', ...settings, port }
  const args = ['-D', data, ...Object.entries(given).flatMap(([name, value]) => ['-c', `${name}=${value}`])]
  const open = () => started(program('postgres'), args, 'database system is ready to accept', data, env)
  let child = await open()
  const end = () => {
    child.kill('SIGQUIT')
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
  process.once('exit', end)
  const stop = async (signal = 'SIGQUIT') => {
    await ended(child, signal)
  }
  return {
    host: HOST,
    port,
    url: `postgres://${USER}@${HOST}:${port}/postgres`,
    get pid() {
      return child.pid
    },
    /** SIGINT: at once, but in order; SIGQUIT: as a crash would, all its processes. */
    stop,
    async start() {
      child = await open()
    },
    promote: () => done('pg_ctl', ['promote', '-D', data, '-w']),
    async remove() {
      process.off('exit', end)
      await stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** pgbouncer before a server, sharing connections between transactions. */
export async function startPgbouncer(server, settings = {}) {
  const folder = ownFolder('sluice-pgbouncer-')
  const port = await freePort()
  const { host } = server
  const users = join(folder, 'users.txt')
  const file = join(folder, 'pgbouncer.ini')
  const given = {
    listen_addr: HOST,
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'any',
    auth_file: users,
    pool_mode: 'transaction',
    default_pool_size: 4,
    max_client_conn: 200,
    ...settings,
  }
  const lines = Object.entries(given).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(users, `"${USER}" ""\n`)
  writeFileSync(file, `[databases]\npostgres = host=${host} port=${server.port} user=${USER}\n[pgbouncer]\n${lines.join('\n')}\n`)
  const child = await started(postgresProgram('pgbouncer'), [file], 'process up', folder)
  return {
    port,
    url: `postgres://${USER}@${HOST}:${port}/postgres`,
    async remove() {
      await ended(child, 'SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Runs one of PostgreSQL's programs to its end. */
function done(name, args, program = postgresProgram) {
  const { status, stderr, error } = spawnSync(program(name) ?? name, args, { ...owner(), cwd: tmpdir(), encoding: 'utf8' })
  if (status !== 0) throw new Error(`${name} ended with code ${status}: ${stderr ?? error}`)
}

function started(program, args, ready, cwd, env = {}) {
  const child = spawn(program, args, { ...owner(), cwd, stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } })
  return new Promise((resolve, reject) => {
    let said = ''
    child.stderr.on('data', (chunk) => {
      if (said === undefined) return
      said += chunk
      if (!said.includes(ready)) return
      said = undefined
      resolve(child)
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`${program} ended with code ${code}:\n${said}`)))
  })
}

function ended(child, signal) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) {
      resolve()
      return
    }
    child.once('exit', resolve)
    child.kill(signal)
  })
}

async function freePort() {
  const probe = createServer()
  await new Promise((resolve) => probe.listen(0, HOST, resolve))
  const { port } = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return port
}
