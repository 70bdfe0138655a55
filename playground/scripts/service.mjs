// The built service as a process of its own, with the page in it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../server/dist/server/src/main.js', import.meta.url))

/** Ends with an error if the process does, before it says where it serves. */
export async function startService(...args) {
  const child = spawn(process.execPath, [MAIN, 'serve', '--grpc-port', '0', ...args], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const port = await Promise.race([servingPort(child), ended.then(([code]) => Promise.reject(new Error(`the service ended with ${code}`)))])
  return {
    port,
    url: `http://127.0.0.1:${port}/`,
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}

/** It says so in its log. */
async function servingPort(child) {
  for await (const line of createInterface({ input: child.stdout })) {
    const { httpPort } = JSON.parse(line)
    if (httpPort !== undefined) return httpPort
  }
  throw new Error('the service said nothing')
}
