/** A worker with a Durable Object in workerd, the runtime of Cloudflare Workers. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { TestRedis } from '../support/redis-client.ts'
import { binaryOf, type Runtime } from './runtimes.ts'

export const WORKERD: Runtime = { name: 'workerd', binary: '@cloudflare/workerd-linux-64/bin/workerd', args: [] }

const CONFIG = `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .worker), (name = "internet", network = (allow = ["private"]))],
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

export interface Services extends Served {
  /** Answers those that ask for it, and have waited until now. */
  tellUsage(usage: string): void
}

/** Redis over HTTP, as workers reach it, and what tells how much a request has used. */
export async function servicesOn(redis: TestRedis): Promise<Services> {
  let tellUsage = (_usage: string) => {}
  const usage = new Promise<string>((resolve) => (tellUsage = resolve))
  const server = createServer(async (request, response) => {
    if (request.url === '/usage') return response.end(await usage)
    const reply = redis.send(JSON.parse(await text(request)) as string[])
    await reply.then(
      (value) => response.end(JSON.stringify(value)),
      (error) => response.writeHead(500).end((error as Error).message),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { url, stop, tellUsage: (told) => tellUsage(told) }
}
