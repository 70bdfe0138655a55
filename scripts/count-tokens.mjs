// `node scripts/count-tokens.mjs [commit]`: how many tokens src has, by folder, without comments,
// tests and generated files. A commit before it, or what lies here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const [commit] = process.argv.slice(2)
const git = (...args) => execFileSync('git', args, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })

const files = (commit === undefined ? git('ls-files', 'src') : git('ls-tree', '-r', '--name-only', commit, 'src'))
  .split('\n')
  .filter((path) => /\.(ts|lua)$/.test(path) && !/\.test\.ts$|generated/.test(path))

const textOf = (path) => (commit === undefined ? readFileSync(path, 'utf8') : git('show', `${commit}:${path}`))

const COMMENTS = { ts: /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, lua: /--.*$/gm }
const TOKEN =
  /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|[\w$#]+(?:\.\d+)?|=>|[=!<>]==?|&&|\|\||\?\?=?|\?\.|\.\.\.?|[+\-*/|&^]=|\S/g

function tokensIn(path) {
  const text = textOf(path).replace(COMMENTS[path.split('.').pop()], '')
  return text.match(TOKEN)?.length ?? 0
}

const byFolder = new Map()
for (const path of files) {
  const folder = path
    .split('/')
    .slice(0, 3)
    .join('/')
    .replace(/\/[^/]+\.(ts|lua)$/, '')
  byFolder.set(folder, (byFolder.get(folder) ?? 0) + tokensIn(path))
}
for (const [folder, count] of [...byFolder].sort()) console.log(`${String(count).padStart(8)}  ${folder}`)
console.log(`${String([...byFolder.values()].reduce((sum, count) => sum + count, 0)).padStart(8)}  all`)
