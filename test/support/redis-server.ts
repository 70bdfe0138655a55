/** Starts a Redis of our own on a free port before the tests and stops it after them. Tests find it with `inject('redisPort')`. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  export interface ProvidedContext {
    redisPort: number
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-'))
  const port = await freePort()
  const server = await startRedis(port, folder)
  project.provide('redisPort', port)
  return async () => {
    await stopped(server)
    rmSync(folder, { recursive: true, force: true })
  }
}

async function freePort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as { port: number }
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** Resolves when the server says that it takes connections. */
function startRedis(port: number, folder: string): Promise<ChildProcess> {
  const server = spawn('redis-server', ['--port', `${port}`, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder])
  return new Promise((resolve, reject) => {
    let said = ''
    server.stdout.on('data', (chunk) => {
      said += chunk
      if (said.includes('Ready to accept connections')) resolve(server)
    })
    server.once('error', (cause) => reject(new Error('redis-server could not be started: `npm test` installs it', { cause })))
    server.once('exit', (code) => reject(new Error(`redis-server ended with ${code}:\n${said}`)))
  })
}

function stopped(server: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    server.removeAllListeners('exit')
    server.once('exit', () => resolve())
    server.kill()
  })
}
