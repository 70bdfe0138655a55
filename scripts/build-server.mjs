// Builds server/dist from server/src and the library's sources, with plain tsc.
import { cpSync, rmSync } from 'node:fs'
import { root, run } from './run.mjs'

const dist = `${root}server/dist`
rmSync(dist, { recursive: true, force: true })
run('npx', ['--no-install', 'tsc', '-p', 'server/tsconfig.build.json'])
cpSync(`${root}server/src/grpc/rls.proto`, `${dist}/server/src/grpc/rls.proto`)
