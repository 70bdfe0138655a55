// `npm run bench:redis`: installs, builds, and measures Sluice with Redis beside its peers, on a server of its own.
// Arguments go to the bench: `npm run bench:redis -- --quick`.
import { installPeers } from './peers.mjs'
import { ensureRedis } from './redis.mjs'
import { installPackages, run, step } from './run.mjs'

installPackages()
installPeers()
ensureRedis()
step('build')
run('npm', ['run', '--silent', 'build'])
run(process.execPath, ['bench/redis/run.mjs', ...process.argv.slice(2)])
