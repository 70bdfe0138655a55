/** What runtimes hand to a handler beside the request, as far as it tells who is calling: Deno its info, Bun its server. */
export interface Connection {
  readonly remoteAddr?: { readonly hostname?: string }
  readonly requestIP?: (request: unknown) => { readonly address: string } | null
}

export function toldAddress(request: unknown, connection: Connection | undefined): string | undefined {
  return typeof connection?.requestIP === 'function' ? connection.requestIP(request)?.address : connection?.remoteAddr?.hostname
}
