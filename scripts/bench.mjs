// `npm run bench`, `bench:redis`, `bench:shared`, `bench:http`: installs, builds, and measures Sluice beside its peers.
// Arguments go to the bench: `npm run bench -- --quick`.
import { existsSync, readFileSync } from 'node:fs'
import { ensureRedis } from './redis.mjs'
import { installPackages, root, run, step } from './run.mjs'

const BENCHES = { redis: 'redis/run.mjs', shared: 'shared.mjs', http: 'http-run.mjs' }
const [name] = process.argv.slice(2)
const bench = BENCHES[name] ?? 'run.mjs'

installPackages()
installPeers()
if (name === 'redis') ensureRedis()
step('build')
run('npm', ['run', '--silent', 'build'])
run(process.execPath, [`bench/${bench}`, ...process.argv.slice(bench === 'run.mjs' ? 2 : 3)])

/** The peers bring hundreds of packages that nothing else needs: they live in bench/, with a lock file of their own. */
function installPeers() {
  const { dependencies } = JSON.parse(readFileSync(`${root}bench/package.json`, 'utf8'))
  if (Object.entries(dependencies).every(([peer, version]) => installedVersion(peer) === version)) return
  step('npm ci in bench/')
  run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: `${root}bench` })
}

function installedVersion(peer) {
  const path = `${root}bench/node_modules/${peer}/package.json`
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined
}
