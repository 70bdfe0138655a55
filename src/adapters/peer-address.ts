/**
 * The second argument of a handler, as far as it holds the address of the client: Deno its info,
 * Bun its server.
 */
export interface Connection {
  readonly remoteAddr?: { readonly hostname?: string }
  readonly requestIP?: (request: unknown) => { readonly address: string } | null
}

export function peerAddress(request: unknown, connection: Connection | undefined): string | undefined {
  return typeof connection?.requestIP === 'function' ? connection.requestIP(request)?.address : connection?.remoteAddr?.hostname
}
