// `npm run dev`: the service with its page, built and started again whenever a source changes.
// Arguments go to `sluice serve`.
import { spawn, spawnSync } from 'node:child_process'
import { watch } from 'node:fs'
import { installFolder, installPackages, root, step } from './run.mjs'

/** What is built from which folders. */
const BUILDS = [
  { command: 'build:server', folders: ['src', 'server/src'] },
  { command: 'build:playground', folders: ['src', 'playground/src'] },
]
/** An editor writes several files at a time. */
const SETTLE_MS = 200

const changed = new Set(BUILDS.flatMap(({ folders }) => folders))
let service
let timer
let isEnding = false

installPackages()
installFolder('server')
installFolder('playground')
for (const folder of changed) watch(`${root}${folder}`, { recursive: true }, (_, file) => onChange(folder, file ?? ''))
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, end)
renew()

function onChange(folder, file) {
  if (/\.test\.ts$|\.generated\.ts$/.test(file)) return
  changed.add(folder)
  clearTimeout(timer)
  timer = setTimeout(renew, SETTLE_MS)
}

/**
 * Builds what has changed. If that fails, the old service goes on, and what is wrong stands above.
 */
function renew() {
  const builds = BUILDS.filter(({ folders }) => folders.some((folder) => changed.has(folder)))
  changed.clear()
  step(new Date().toLocaleTimeString())
  const isBuilt = builds.every(
    ({ command }) => spawnSync('npm', ['run', '--silent', command], { cwd: root, stdio: 'inherit' }).status === 0,
  )
  if (isBuilt) restart()
}

function restart() {
  if (service === undefined || service.exitCode !== null) return start()
  service.once('exit', start)
  service.kill('SIGTERM')
}

function start() {
  if (isEnding) return
  service = spawn(
    process.execPath,
    ['server/dist/server/src/main.js', 'serve', '--hints', '--drain', '0s', '--grace', '0s', ...process.argv.slice(2)],
    {
      cwd: root,
      stdio: 'inherit',
    },
  )
}

function end() {
  isEnding = true
  if (service === undefined || service.exitCode !== null) process.exit()
  service.once('exit', () => process.exit())
  service.kill('SIGTERM')
}
