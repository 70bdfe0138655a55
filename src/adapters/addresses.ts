/**
 * Node forgets the address of a connection that is closed, unless it was asked for it before. A
 * client that sends a request and hangs up while an earlier middleware is at work would have no
 * address when it is counted. So every request's address is asked for as it arrives.
 */

interface Channels {
  subscribe(name: string, listener: (message: unknown) => void): void
}

interface Host {
  readonly process?: { getBuiltinModule?(name: string): Channels | undefined }
}

interface Started {
  readonly socket?: { readonly remoteAddress?: string | undefined }
}

let isAsking = false

/** From the first middleware on, for all servers of the process. */
export function keepAddresses(): void {
  if (isAsking) return
  isAsking = true
  const { process } = globalThis as Host
  process?.getBuiltinModule?.('node:diagnostics_channel')?.subscribe('http.server.request.start', (message) => {
    void (message as Started).socket?.remoteAddress
  })
}
