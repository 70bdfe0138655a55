// `npm run bench`, `bench:redis`, `bench:databases`, `bench:shared`, `bench:concurrency`,
// `bench:against`, `bench:http`, `bench:overload`, `bench:server`, `bench:page`: installs, builds,
// and measures Sluice beside its peers. Arguments go to the bench: `npm run bench -- --quick`.
// `npm run bench:check` runs a little of each one, to see that they work, and writes no results.
import { ensureChromium, ensurePostgres, ensureRedis } from './packages.mjs'
import { installFolder, installPackages, run, step } from './run.mjs'

/**
 * Of each its file; what `check` gives it; and, of those that measure more than the library, what
 * else is installed and built.
 */
const BENCHES = {
  process: { file: 'bench/run.mjs', check: ['--quick', '--sample'] },
  redis: { file: 'bench/redis/run.mjs', check: ['--quick', '--sample'] },
  databases: { file: 'bench/databases/run.mjs', check: ['--quick'] },
  shared: { file: 'bench/shared.mjs', check: ['--quick'] },
  concurrency: { file: 'bench/concurrency.mjs', check: ['--quick'] },
  against: { file: 'bench/against.mjs', check: ['--quick', '--only', 'gcra one-key', 'HEAD'] },
  http: { file: 'bench/http-run.mjs', check: ['--quick', '--only', 'admitted'] },
  overload: { file: 'bench/overload/run.mjs', check: ['--quick'] },
  server: { file: 'bench/server/run.mjs', folders: ['server'], check: ['--quick'] },
  page: { file: 'playground/scripts/frames.mjs', folders: ['server', 'playground'], check: ['--quick'] },
}

const [first, ...rest] = process.argv.slice(2)
if (first === 'check') check()
else if (first in BENCHES) bench(first, rest)
else bench('process', process.argv.slice(2))

function bench(name, args) {
  const { file, folders } = BENCHES[name]
  prepare([name])
  build(folders?.map((folder) => `build:${folder}`) ?? ['build'])
  run(process.execPath, [file, ...args])
}

/** All of them, one after the other. Ends with the first that fails. */
function check() {
  prepare(Object.keys(BENCHES))
  build(['build', 'build:server', 'build:playground'])
  for (const [name, { file, check: args }] of Object.entries(BENCHES)) {
    step(name)
    run(process.execPath, [file, ...args])
  }
}

function prepare(names) {
  installPackages()
  for (const folder of new Set(names.flatMap((name) => BENCHES[name].folders ?? ['bench']))) installFolder(folder)
  if (names.includes('redis') || names.includes('concurrency')) ensureRedis()
  if (names.includes('databases')) ensurePostgres()
  if (names.includes('page')) ensureChromium()
}

function build(scripts) {
  step('build')
  for (const script of scripts) run('npm', ['run', '--silent', script])
}
