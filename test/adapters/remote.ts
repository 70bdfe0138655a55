/** The fetch adapter under Bun and Deno, each in a process of its own that is started once. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { binaryOf, installRuntimes, RUNTIMES, type Runtime, whyMissing } from '../package/runtimes.ts'
import type { Framework, Served } from './frameworks.ts'
import type { SetupName } from './setups.ts'

const root = join(import.meta.dirname, '../..')

interface Remote {
  readonly server: number
  readonly control: number
}

const started = new Map<string, Promise<Remote>>()
const children: ChildProcess[] = []

async function start(runtime: Runtime): Promise<Remote> {
  await installRuntimes()
  const child = spawn(binaryOf(runtime), [...ARGS[runtime.name as keyof typeof ARGS], join(import.meta.dirname, 'fetch-server.ts')], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  for await (const line of createInterface({ input: child.stdout })) return JSON.parse(line) as Remote
  throw new Error(`${runtime.name} ended before it served`)
}

/** Deno has the one right that a server needs. */
const ARGS = {
  Bun: ['--no-install', 'run'],
  Deno: ['run', '--no-prompt', '--no-check', '--no-config', '--unstable-sloppy-imports', '--allow-net=127.0.0.1'],
} as const

async function serve(runtime: Runtime, setup: SetupName): Promise<Served> {
  const remote = started.get(runtime.name) ?? start(runtime)
  started.set(runtime.name, remote)
  const { server, control } = await remote
  const ask = async (command: string, argument = '') => {
    const query = new URLSearchParams({ command, argument })
    return (await fetch(`http://127.0.0.1:${control}/?${query}`)).json()
  }
  await ask('setup', setup)
  return { url: `http://127.0.0.1:${server}/`, ask, close: async () => {} }
}

export function stopRemotes(): void {
  for (const child of children) child.kill()
}

export const REMOTE_FRAMEWORKS: readonly Framework[] = RUNTIMES.filter(({ name }) => name in ARGS).map((runtime) => ({
  name: `fetch under ${runtime.name}`,
  missing: whyMissing(runtime),
  serve: (setup) => serve(runtime, setup),
}))
