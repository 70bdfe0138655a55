/** What the adapters for Node's own requests and responses share. Only the parts that they need are declared, so that no types are. */
import type { Entry } from '../http/gate.ts'
import type { Refusal } from '../http/refusal.ts'
import type { HttpRequest } from '../http/request.ts'
import type { Abortable } from '../limiter/input.ts'

/** `IncomingMessage`, of HTTP/1 or HTTP/2. */
export interface NodeRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket: { readonly remoteAddress?: string | undefined }
}

/** `ServerResponse`, of HTTP/1 or HTTP/2. */
export interface NodeResponse {
  statusCode: number
  /** Not there over HTTP/2. */
  readonly writableFinished?: boolean
  readonly writableEnded: boolean
  readonly destroyed: boolean
  setHeader(name: string, value: string): unknown
  end(body?: string): unknown
  once(event: 'close', listener: () => void): unknown
}

export class Incoming implements HttpRequest {
  readonly #request: NodeRequest

  constructor(request: NodeRequest) {
    this.#request = request
  }

  get address(): string | undefined {
    return this.#request.socket?.remoteAddress
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return typeof value === 'string' || value === undefined ? value : value.join(', ')
  }
}

/** Aborted when the connection is closed. A response closes at its end too; then nobody waits any more. */
export function closing(response: Pick<NodeResponse, 'destroyed' | 'once'>): Abortable {
  const controller = new AbortController()
  if (response.destroyed) controller.abort()
  else response.once('close', () => controller.abort())
  return controller.signal
}

/** Tells the gate how the response ended, if it wants to know. */
export function leaveAtEnd({ leave }: Entry, response: NodeResponse): void {
  if (leave === undefined) return
  response.once('close', () => leave({ status: response.statusCode, aborted: !(response.writableFinished ?? response.writableEnded) }))
}

export function setHeaders(response: NodeResponse, headers: readonly string[]): void {
  for (let k = 0; k < headers.length; k += 2) response.setHeader(headers[k] as string, headers[k + 1] as string)
}

export function answer(response: NodeResponse, { status, headers, body }: Refusal): void {
  response.statusCode = status
  setHeaders(response, headers)
  response.end(body)
}
