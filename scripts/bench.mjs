// `npm run bench`, `bench:redis`, `bench:shared`, `bench:http`, `bench:server`: installs, builds, and measures Sluice beside its peers.
// Arguments go to the bench: `npm run bench -- --quick`.
import { ensureRedis } from './packages.mjs'
import { installFolder, installPackages, run, step } from './run.mjs'

const BENCHES = { redis: 'redis/run.mjs', shared: 'shared.mjs', http: 'http-run.mjs', server: 'server/run.mjs' }
const [name] = process.argv.slice(2)
const bench = BENCHES[name] ?? 'run.mjs'

installPackages()
installFolder(name === 'server' ? 'server' : 'bench')
if (name === 'redis') ensureRedis()
step('build')
run('npm', ['run', '--silent', name === 'server' ? 'build:server' : 'build'])
run(process.execPath, [`bench/${bench}`, ...process.argv.slice(bench === 'run.mjs' ? 2 : 3)])
