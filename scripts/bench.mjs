// `npm run bench` and `npm run bench:shared`: installs, builds, and measures. Arguments go to the bench: `npm run bench -- --quick`.
import { existsSync, readFileSync } from 'node:fs'
import { installPackages, root, run, step } from './run.mjs'

installPackages()
installPeers()
step('build')
run('npm', ['run', '--silent', 'build'])
const [first, ...rest] = process.argv.slice(2)
if (first === 'shared') run(process.execPath, ['bench/shared.mjs', ...rest])
else run(process.execPath, ['bench/run.mjs', ...process.argv.slice(2)])

/** The peers bring a hundred packages that nothing else needs: they live in bench/, with a lock file of their own. */
function installPeers() {
  const { dependencies } = JSON.parse(readFileSync(`${root}bench/package.json`, 'utf8'))
  if (Object.entries(dependencies).every(([name, version]) => installedVersion(name) === version)) return
  step('npm ci in bench/')
  run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: `${root}bench` })
}

function installedVersion(name) {
  const path = `${root}bench/node_modules/${name}/package.json`
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined
}
