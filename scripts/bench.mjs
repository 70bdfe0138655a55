// `npm run bench`: installs, builds, and measures Sluice beside its peers. Arguments go to the bench: `npm run bench -- --quick`.
import { installPeers } from './peers.mjs'
import { installPackages, run, step } from './run.mjs'

installPackages()
installPeers()
step('build')
run('npm', ['run', '--silent', 'build'])
run(process.execPath, ['bench/run.mjs', ...process.argv.slice(2)])
