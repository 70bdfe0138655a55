// `npm run bench`, `bench:redis`, `bench:shared`, `bench:against`, `bench:http`, `bench:server`, `bench:page`: installs, builds, and measures Sluice beside its peers.
// Arguments go to the bench: `npm run bench -- --quick`.
import { ensureChromium, ensureRedis } from './packages.mjs'
import { installFolder, installPackages, run, step } from './run.mjs'

const BENCHES = {
  redis: 'bench/redis/run.mjs',
  shared: 'bench/shared.mjs',
  against: 'bench/against.mjs',
  http: 'bench/http-run.mjs',
  server: 'bench/server/run.mjs',
  page: 'playground/scripts/frames.mjs',
}
/** Of those that measure more than the library: what else is installed and built. */
const FOLDERS = { server: ['server'], page: ['server', 'playground'] }
const [name] = process.argv.slice(2)
const bench = BENCHES[name] ?? 'bench/run.mjs'
const folders = FOLDERS[name]

installPackages()
for (const folder of folders ?? ['bench']) installFolder(folder)
if (name === 'redis') ensureRedis()
if (name === 'page') ensureChromium()
step('build')
for (const build of folders?.map((folder) => `build:${folder}`) ?? ['build']) run('npm', ['run', '--silent', build])
run(process.execPath, [bench, ...process.argv.slice(name in BENCHES ? 3 : 2)])
