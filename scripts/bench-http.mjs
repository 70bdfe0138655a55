// `npm run bench:http`: installs, builds, and measures what a limiter adds to a request. Arguments go to the bench: `npm run bench:http -- --quick`.
import { installPeers } from './peers.mjs'
import { installPackages, run, step } from './run.mjs'

installPackages()
installPeers()
step('build')
run('npm', ['run', '--silent', 'build'])
run(process.execPath, ['bench/http-run.mjs', ...process.argv.slice(2)])
