/** The built service as a process of its own, with the page in it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../../server/dist/server/src/main.js', import.meta.url))
const CONFIG = fileURLToPath(new URL('./service.yaml', import.meta.url))

export interface RunningService {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
}

/** On any port unless told one: a service that comes back must be found where it was. */
export async function startService(port = 0, ...options: string[]): Promise<RunningService> {
  const args = [MAIN, 'serve', CONFIG, '--port', String(port), '--grpc-port', '0', ...options]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const httpPort = await servingPort(child)
  return { url: `http://127.0.0.1:${httpPort}/`, port: httpPort, stop: () => stopped(child) }
}

/** It says so in its log. */
function servingPort(child: ChildProcess): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the service ended with ${code}`)))
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      const { httpPort } = JSON.parse(line) as { httpPort?: number }
      if (httpPort !== undefined) resolve(httpPort)
    })
  })
}

function stopped(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

export async function decide(url: string, question: object): Promise<void> {
  const response = await fetch(`${url}v1/decide`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(question),
  })
  await response.arrayBuffer()
}
