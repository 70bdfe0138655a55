// Makes sure that there is a redis-server to test against: installs it with the system's package manager where it is missing.
import { fail, run, step, succeeds } from './run.mjs'

export function ensureRedis() {
  if (succeeds('redis-server', ['--version'])) return
  step('installing redis-server')
  if (succeeds('apt-get', ['--version'])) installWithApt()
  else if (succeeds('brew', ['--version'])) run('brew', ['install', 'redis'])
  if (!succeeds('redis-server', ['--version'])) {
    fail(
      'The tests need redis-server (6.2 or later) and could install it neither with apt-get nor with brew.\nInstall it by hand, so that `redis-server --version` works, and run `npm test` again.',
    )
  }
}

/** Valkey is tested too where the system's packages have it. It is not in all of them, so it is not required. */
export function tryValkey() {
  if (succeeds('valkey-server', ['--version']) || !succeeds('apt-cache', ['show', 'valkey-server'])) return
  step('installing valkey-server')
  const apt = process.getuid?.() === 0 ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  succeeds(apt[0], [...apt.slice(1), 'install', '-y', '-q', '--no-install-recommends', 'valkey-server'])
}

function installWithApt() {
  const root = process.getuid?.() === 0
  const apt = root ? ['apt-get'] : ['sudo', '-n', 'apt-get']
  if (!root && !succeeds('sudo', ['-n', 'true'])) {
    fail('The tests need redis-server, and installing it needs root: run `sudo apt-get install redis-server` and then `npm test` again.')
  }
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  run(apt[0], [...apt.slice(1), 'update', '-q'], { env })
  run(apt[0], [...apt.slice(1), 'install', '-y', '-q', '--no-install-recommends', 'redis-server'], { env })
}
