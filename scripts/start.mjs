// `npm start`: installs, builds and starts the service, with a sample configuration and in memory
// unless told otherwise. Arguments go to `sluice serve`.
import { spawn } from 'node:child_process'
import { installFolder, installPackages, root, run, step } from './run.mjs'

installPackages()
installFolder('server')
installFolder('playground')
step('build')
run('npm', ['run', '--silent', 'build:server'])
run('npm', ['run', '--silent', 'build:playground'])

const args = ['server/dist/server/src/main.js', 'serve', '--hints', ...process.argv.slice(2)]
const service = spawn(process.execPath, args, { cwd: root, stdio: 'inherit' })
// Ctrl-C reaches both processes, a `kill` only this one; either way the service is what ends first.
process.on('SIGINT', () => undefined)
process.on('SIGTERM', () => service.kill('SIGTERM'))
service.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
