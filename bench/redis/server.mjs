// A redis-server of our own: on a free port of this machine, with nothing else to do and nothing to
// write to disk.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const HOST = '127.0.0.1'

/** Resolves when it takes connections. `stop()` ends it; so does the end of this process. */
export async function startServer() {
  const port = await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
  const options = { port, bind: HOST, save: '', appendonly: 'no', dir: folder }
  const child = spawn(
    'redis-server',
    Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]),
  )
  const stop = () => {
    child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', stop)
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1))
  await isReady(child)
  return { port, stop }
}

async function freePort() {
  const probe = createServer()
  await new Promise((resolve) => probe.listen(0, HOST, resolve))
  const { port } = probe.address()
  await new Promise((resolve) => probe.close(resolve))
  return port
}

function isReady(child) {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stdout.on('data', (chunk) => {
      said += chunk
      if (said.includes('Ready to accept connections')) resolve()
    })
    child.once('error', (cause) => reject(new Error('redis-server could not be started: `npm run bench:redis` installs it', { cause })))
    child.once('exit', (code) => reject(new Error(`redis-server ended with code ${code}:\n${said}`)))
  })
}
