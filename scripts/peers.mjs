// What the benches compare with: a hundred packages that nothing else needs. They live in bench/, with a lock file of their own.
import { existsSync, readFileSync } from 'node:fs'
import { root, run, step } from './run.mjs'

export function installPeers() {
  const { dependencies } = JSON.parse(readFileSync(`${root}bench/package.json`, 'utf8'))
  if (Object.entries(dependencies).every(([name, version]) => installedVersion(name) === version)) return
  step('npm ci in bench/')
  run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: `${root}bench` })
}

function installedVersion(name) {
  const path = `${root}bench/node_modules/${name}/package.json`
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : undefined
}
