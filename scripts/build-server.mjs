// Builds server/dist from server/src and the library's sources, with plain tsc.
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { root, run } from './run.mjs'

const dist = `${root}server/dist`
rmSync(dist, { recursive: true, force: true })
run('npx', ['--no-install', 'tsc', '-p', 'server/tsconfig.build.json'])
// Where what is built looks for its version.
const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))
writeFileSync(`${dist}/package.json`, `${JSON.stringify({ type: 'module', version })}\n`)
for (const name of ['rls', 'health']) cpSync(`${root}server/src/grpc/${name}.proto`, `${dist}/server/src/grpc/${name}.proto`)
