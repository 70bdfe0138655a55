// The package of an older commit, to be held against this one.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../', import.meta.url))

/** Its dist, built with the tools that are installed here. */
export function builtFrom(ref) {
  const folder = `${root}tmp/against-${git('rev-parse', ref)}`
  if (existsSync(`${folder}/dist/index.js`)) return `${folder}/dist`
  mkdirSync(folder, { recursive: true })
  const archive = execFileSync('git', ['archive', ref], { cwd: root, maxBuffer: 2 ** 29 })
  execFileSync('tar', ['-x', '-C', folder], { input: archive })
  if (!existsSync(`${folder}/node_modules`)) symlinkSync(`${root}node_modules`, `${folder}/node_modules`)
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: folder, stdio: 'inherit' })
  return `${folder}/dist`
}

export function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
