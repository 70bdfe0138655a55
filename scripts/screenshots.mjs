// `npm run screenshots`: installs, builds, and makes the pictures in docs/pictures.
import { ensureChromium } from './packages.mjs'
import { installFolder, installPackages, run, step } from './run.mjs'

installPackages()
installFolder('server')
installFolder('playground')
ensureChromium()
step('build')
run('npm', ['run', '--silent', 'build:server'])
run('npm', ['run', '--silent', 'build:playground'])
step('pictures')
run(process.execPath, ['playground/scripts/screenshots.mjs'])
