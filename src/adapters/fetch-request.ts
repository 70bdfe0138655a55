/**
 * Shared by the adapters for `Request` and `Response`. Only the parts that they need are declared,
 * so that no types of a browser are.
 */
import type { Refusal } from '../http/refusal.ts'
import { CLIENT_LEFT, type HttpOutcome, type HttpRequest, SWITCHING_PROTOCOLS } from '../http/request.ts'
import type { Abortable } from '../limiter/input.ts'

/** The parts of a `Request` that are needed. */
export interface FetchRequest {
  readonly method?: string
  readonly headers: { get(name: string): string | null }
  readonly signal?: unknown
}

/** The parts of a `Response` that are needed. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { get(name: string): string | null; set(name: string, value: string): void }
}

export function signalOf({ signal }: FetchRequest): Abortable | undefined {
  return signal as Abortable | undefined
}

/**
 * Nothing is sent before the handler is done, so that who has left by then was answered nothing.
 */
export function outcomeOf(status: number, signal: Abortable | undefined): HttpOutcome {
  return signal?.aborted ? { status: CLIENT_LEFT, aborted: true } : { status, aborted: false }
}

/**
 * A connection that becomes another (a WebSocket) is no answer to put headers on. Bun's handlers
 * return nothing then.
 */
export function isUpgrade(answered: FetchResponse | undefined): boolean {
  return answered === undefined || answered.status === SWITCHING_PROTOCOLS
}

export class FetchHttpRequest implements HttpRequest {
  readonly address: string | undefined
  readonly #request: FetchRequest

  constructor(request: FetchRequest, address: string | undefined) {
    this.#request = request
    this.address = address
  }

  header(name: string): string | undefined {
    return this.#request.headers.get(name) ?? undefined
  }
}

/** A response that came from `fetch` or a cache may not be changed: then it is copied. */
export function withHeaders<Res extends FetchResponse>(given: Res, headers: readonly string[]): Res {
  if (headers.length === 0) return given
  try {
    return changed(given, headers)
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    const whole = given as unknown as Response
    return changed(new Response(whole.body, whole) as unknown as Res, headers)
  }
}

function changed<Res extends FetchResponse>(given: Res, headers: readonly string[]): Res {
  for (let k = 0; k < headers.length; k += 2) given.headers.set(headers[k] as string, headers[k + 1] as string)
  return given
}

/** From plain headers, which is what @hono/node-server is quickest with. */
export function refusedWith({ status, headers, body }: Refusal): FetchResponse {
  const fields: Record<string, string> = {}
  for (let k = 0; k < headers.length; k += 2) fields[headers[k] as string] = headers[k + 1] as string
  return new Response(body, { status, headers: fields })
}
