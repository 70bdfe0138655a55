// Builds the commit that is checked out, and packs its ES modules into test/reference/: the old
// side of comparisons. The package says of which commit it is, so nothing may be changed in src.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { root, run } from './run.mjs'

const changed = execFileSync('git', ['status', '--porcelain', 'src', 'package.json'], { cwd: root, encoding: 'utf8' })
if (changed !== '') throw new Error(`commit these first:\n${changed}`)
run('npm', ['run', '--silent', 'build'])

const folder = mkdtempSync(join(tmpdir(), 'sluice-reference-'))
const { name, version, license, type, exports, imports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()

const modules = readdirSync(join(root, 'dist'), { recursive: true, encoding: 'utf8' })
for (const path of modules.filter((each) => each.endsWith('.js') && !each.startsWith('cjs'))) {
  const to = join(folder, 'package/dist', path)
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, readFileSync(join(root, 'dist', path), 'utf8').replace(/^\/\/# sourceMappingURL=.*\n?/m, ''))
}
const paths = Object.entries(exports).map(([path, target]) => [path, target.import ?? target])
writeFileSync(
  join(folder, 'package/package.json'),
  `${JSON.stringify({ name, version, license, commit, type, imports, exports: Object.fromEntries(paths) }, undefined, 2)}\n`,
)
const tarball = join(root, 'test/reference/sluice.tar.gz')
mkdirSync(dirname(tarball), { recursive: true })
const SAME_EVERYWHERE = ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--numeric-owner']
execFileSync('tar', [...SAME_EVERYWHERE, '-I', 'gzip -9n', '-cf', tarball, '-C', folder, 'package'])
rmSync(folder, { recursive: true })
