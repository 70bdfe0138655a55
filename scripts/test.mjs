// `npm test`: everything, from nothing. Arguments go to vitest: `npm test -- gcra`.
import { ensureBetterSqlite3 } from './better-sqlite3.mjs'
import { ensureChromium, ensureFakeTime, ensurePgbouncer, ensurePostgres, ensureRedis, ensureStrace, tryValkey } from './packages.mjs'
import { installFolder, installPackages, run, step } from './run.mjs'

installPackages()
ensureBetterSqlite3()
installFolder('server')
installFolder('playground')
ensureRedis()
ensurePostgres()
ensurePgbouncer()
ensureFakeTime()
ensureStrace()
ensureChromium()
tryValkey()
step('build')
run('npm', ['run', '--silent', 'build'])
run('npm', ['run', '--silent', 'build:server'])
run('npm', ['run', '--silent', 'build:playground'])
step('types')
run('npm', ['run', '--silent', 'typecheck'])
step('lint')
run('npm', ['run', '--silent', 'lint'])
step('tests')
run('npx', ['--no-install', 'vitest', 'run', ...process.argv.slice(2)])
