/**
 * The built files as any web server would serve them: without a service behind, and from a folder
 * of its own.
 */
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'

export const DIST = fileURLToPath(new URL('../../dist/', import.meta.url))
const FOLDER = '/some/folder/'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
}

export interface StaticServer {
  readonly url: string
  close(): void
}

export async function serveStatic(): Promise<StaticServer> {
  const server = createServer(({ url = '' }, response) => {
    const path = url.startsWith(FOLDER) ? url.slice(FOLDER.length) || 'index.html' : ''
    try {
      const body = readFileSync(DIST + path)
      response.writeHead(200, { 'content-type': TYPES[extname(path)] ?? 'application/octet-stream' }).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${FOLDER}`, close: () => server.close() }
}
