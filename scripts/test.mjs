// `npm test`: everything, from nothing. Arguments go to vitest: `npm test -- gcra`.
import { ensureRedis, tryValkey } from './redis.mjs'
import { installFolder, installPackages, run, step } from './run.mjs'

installPackages()
installFolder('server')
ensureRedis()
tryValkey()
step('build')
run('npm', ['run', '--silent', 'build'])
run('npm', ['run', '--silent', 'build:server'])
step('types')
run('npm', ['run', '--silent', 'typecheck'])
step('lint')
run('npm', ['run', '--silent', 'lint'])
step('tests')
run('npx', ['--no-install', 'vitest', 'run', ...process.argv.slice(2)])
