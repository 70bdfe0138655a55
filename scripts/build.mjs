// Builds dist/ from src/ with plain tsc.
import { rmSync } from 'node:fs'
import { run } from './run.mjs'

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true })
run('npx', ['--no-install', 'tsc', '-p', 'tsconfig.build.json'])
