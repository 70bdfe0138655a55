// `npm run simulate`: installs, builds, and shows what limits do. Arguments go to the simulation.
import { installPackages, run } from './run.mjs'

installPackages()
run('npm', ['run', '--silent', 'build'])
run(process.execPath, ['dist/cli/main.js', 'simulate', ...process.argv.slice(2)])
