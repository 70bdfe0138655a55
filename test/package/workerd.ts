/** A worker with a Durable Object in workerd, the runtime of Cloudflare Workers. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { binaryOf, type Runtime } from './runtimes.ts'

export const WORKERD: Runtime = { name: 'workerd', binary: '@cloudflare/workerd-linux-64/bin/workerd', args: [] }

const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")]
);
const worker :Workerd.Worker = (
  modules = [(name = "worker.js", esModule = embed "worker.js")],
  compatibilityDate = "2024-09-01",
  durableObjectNamespaces = [(className = "Places", uniqueKey = "places")],
  durableObjectStorage = (inMemory = void),
  bindings = [(name = "PLACES", durableObjectNamespace = "Places")],
);
`

export interface Served {
  readonly url: string
  stop(): void
}

/** Serves a module, which needs no other, from a folder. */
export async function servedByWorkerd(code: string, folder: string): Promise<Served> {
  writeFileSync(join(folder, 'worker.js'), code)
  writeFileSync(join(folder, 'workerd.capnp'), CONFIG)
  const args = ['serve', 'workerd.capnp', '--control-fd=3']
  const child = spawn(binaryOf(WORKERD), args, { cwd: folder, env: { HOME: folder }, stdio: ['ignore', 'inherit', 'inherit', 'pipe'] })
  // One line for each socket, when it listens.
  const lines = createInterface({ input: child.stdio[3] as Readable })
  const ended = once(child, 'exit').then(([code]) => Promise.reject(new Error(`workerd ended with ${code}`)))
  ended.catch(() => {})
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string]
  const { port } = JSON.parse(line) as { port: number }
  return { url: `http://127.0.0.1:${port}`, stop: () => void child.kill() }
}
