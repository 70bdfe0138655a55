import type { AddressInfo, Server } from 'node:net'

/** Resolves with the port when the server listens. Port 0: whichever is free. */
export function listening(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve((server.address() as AddressInfo).port)
    })
  })
}
