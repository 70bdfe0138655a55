// `npm run bench:server`: installs, builds, and measures the service beside bare node:http. `npm run bench:server -- --quick`.
import { installPackages, installServer, run, step } from './run.mjs'

installPackages()
installServer()
step('build')
run('npm', ['run', '--silent', 'build:server'])
run(process.execPath, ['bench/server/run.mjs', ...process.argv.slice(2)])
