/** The service as it is built, in a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type Agent, type IncomingMessage, request } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

export const main = fileURLToPath(new URL('../../dist/server/src/main.js', import.meta.url))

export interface ServiceProcess {
  readonly process: ChildProcess
  readonly url: string
  readonly httpPort: number
  readonly grpcPort: number
  /** Its log so far. */
  readonly lines: readonly string[]
  /** All bytes that it has written so far, warnings of Node's included. */
  readonly written: () => number
  /** Resolves with the first line that holds the text. */
  line(text: string): Promise<string>
  /** Resolves with code and signal. */
  readonly ended: Promise<unknown[]>
}

/** On free ports. Resolves when it serves. */
export function startedProcess(...args: string[]): Promise<ServiceProcess> {
  return startedWith([], ...args)
}

/** The same, with options of Node's. */
export function startedWith(nodeOptions: readonly string[], ...args: string[]): Promise<ServiceProcess> {
  return startedIn({}, nodeOptions, ['--port', '0', '--grpc-port', '0', ...args])
}

/** The same, in an environment, and on the ports that it says. */
export async function startedIn(
  env: Record<string, string>,
  nodeOptions: readonly string[],
  args: readonly string[],
): Promise<ServiceProcess> {
  const child = spawn(process.execPath, [...nodeOptions, main, 'serve', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let bytes = 0
  for (const output of [child.stdout, child.stderr]) {
    output.on('data', ({ length }: Buffer) => {
      bytes += length
    })
  }
  child.stderr.pipe(process.stderr)
  const lines: string[] = []
  const output = createInterface({ input: child.stdout })
  output.on('line', (line) => lines.push(line))
  const ended = once(child, 'exit')
  const line = async (text: string): Promise<string> => {
    for (;;) {
      const found = lines.find((each) => each.includes(text))
      if (found !== undefined) return found
      await once(output, 'line')
    }
  }
  const { httpPort, grpcPort } = JSON.parse(await line('sluice is serving')) as { httpPort: number; grpcPort: number }
  return { process: child, lines, written: () => bytes, line, ended, url: `http://127.0.0.1:${httpPort}`, httpPort, grpcPort }
}

export interface Posted {
  readonly status: number
  readonly body: unknown
  /** Whether the service says that the connection ends. */
  readonly isLast: boolean
}

/** A decision over a connection that is kept. */
export async function postDecide(url: string, agent: Agent, body: object): Promise<Posted> {
  const sent = request(`${url}/v1/decide`, { method: 'POST', agent, headers: { 'content-type': 'application/json' } })
  sent.end(JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const pieces = (await response.toArray()) as Buffer[]
  return {
    status: response.statusCode as number,
    body: JSON.parse(Buffer.concat(pieces).toString()),
    isLast: response.headers.connection === 'close',
  }
}
