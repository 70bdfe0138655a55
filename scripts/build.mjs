// Builds dist/ from src/: ES modules with plain tsc, and dist/cjs from them for `require`.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { rolldown } from 'rolldown'
import { root, run } from './run.mjs'

const dist = join(root, 'dist')
const cjs = join(dist, 'cjs')

rmSync(dist, { recursive: true, force: true })
run('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json'])
await bundleCommonJs()
copyDeclarations()
// Tells Node and TypeScript that the files below are CommonJS, though the package is not.
writeFileSync(join(cjs, 'package.json'), `${JSON.stringify({ type: 'commonjs' })}\n`)

/** One file for each path of `exports`, and the files that they share. Frameworks stay outside. */
async function bundleCommonJs() {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const files = Object.values(exports).flatMap(({ require }) => require ?? [])
  const names = files.map((path) => path.replace('./dist/cjs/', '').replace(/\.js$/, ''))
  const input = Object.fromEntries(names.map((name) => [name, join(dist, `${name}.js`)]))
  const bundle = await rolldown({ input, cwd: root, platform: 'node', external: /^[^./]/ })
  await bundle.write({ dir: cjs, format: 'cjs', entryFileNames: '[name].js', chunkFileNames: 'shared/[name].js' })
  await bundle.close()
}

/** The same declarations, read as those of CommonJS for where they lie. */
function copyDeclarations() {
  const paths = readdirSync(dist, { recursive: true, encoding: 'utf8' })
  for (const path of paths.filter((each) => each.endsWith('.d.ts'))) {
    mkdirSync(dirname(join(cjs, path)), { recursive: true })
    // Their maps stay behind.
    writeFileSync(join(cjs, path), readFileSync(join(dist, path), 'utf8').replace(/^\/\/# sourceMappingURL=.*$/m, ''))
  }
}
