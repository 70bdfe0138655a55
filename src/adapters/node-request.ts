/**
 * Shared by the adapters for Node's own requests and responses. Only the parts that they need are
 * declared, so that no types are.
 */
import type { Entry } from '../http/entry.ts'
import { Gate } from '../http/gate.ts'
import { besides } from '../http/headers.ts'
import type { Refusal } from '../http/refusal.ts'
import { CLIENT_LEFT, type HttpOutcome, type HttpRequest, SWITCHING_PROTOCOLS } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Abortable } from '../limiter/input.ts'
import { keepAddresses } from './addresses.ts'

/** `IncomingMessage`, of HTTP/1 or HTTP/2. */
export interface NodeRequest {
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  readonly socket: { readonly remoteAddress?: string | undefined }
  /** Only there over HTTP/2. */
  readonly stream?: { readonly destroyed?: boolean } | undefined
}

/** The other end's connection: a `Socket` of `node:net`. */
export interface Closable {
  readonly destroyed?: boolean
  once(event: 'close', listener: () => void): unknown
}

/** `ServerResponse`, of HTTP/1 or HTTP/2, or what Socket.IO has in its place for a WebSocket. */
export interface NodeResponse {
  statusCode: number
  /** Not there over HTTP/2. */
  readonly writableFinished?: boolean
  readonly headersSent: boolean
  /** Not there over HTTP/2. */
  readonly destroyed?: boolean
  /** Only there over HTTP/2. */
  readonly stream?: { readonly destroyed?: boolean; readonly aborted?: boolean } | undefined
  /** Null while responses before it on the same connection are still under way. */
  readonly socket?: unknown
  readonly req?: { readonly socket?: unknown; readonly upgrade?: boolean } | undefined
  setHeader(name: string, value: string): unknown
  getHeader(name: string): unknown
  end(body?: string): unknown
  /** Not there for a WebSocket of Socket.IO. */
  once?(event: 'close' | 'finish', listener: () => void): unknown
}

/**
 * `framed` is the framework's own request, whose client `clientOf` finds, and `native` what
 * `routeOf` knows a route by. One class for all: one that extends another takes longer to make.
 */
export class NodeHttpRequest<Native = NodeRequest> implements HttpRequest {
  readonly #request: NodeRequest
  readonly #native: Native
  readonly #routeOf: (native: Native) => string | undefined
  readonly #framed: object
  readonly #clientOf: (framed: object) => string | undefined

  constructor(
    request: NodeRequest,
    native: Native,
    routeOf: (native: Native) => string | undefined = unknown,
    framed: object = request,
    clientOf: (framed: object) => string | undefined = unknown,
  ) {
    this.#request = request
    this.#native = native
    this.#routeOf = routeOf
    this.#framed = framed
    this.#clientOf = clientOf
  }

  get address(): string | undefined {
    return this.#request.socket?.remoteAddress
  }

  get clientAddress(): string | undefined {
    return this.#clientOf(this.#framed)
  }

  get route(): string | undefined {
    return this.#routeOf(this.#native)
  }

  get hasLeft(): boolean {
    return this.#request.stream?.destroyed === true
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return typeof value === 'string' || value === undefined ? value : value.join(', ')
  }
}

function unknown(): undefined {
  return undefined
}

/** A gate for Node's responses. `more`: names of options that the adapter itself reads. */
export function nodeGate<Req>(options: object, more: readonly string[] = []): Gate<Req, NodeResponse> {
  keepAddresses()
  return new Gate(options, closing, more)
}

/**
 * Aborted when the connection is closed. A response closes at its end too; then no request waits
 * any more.
 */
export function closing(response: NodeResponse): Abortable {
  const controller = new AbortController()
  // Where nothing would tell, nobody is known to have left.
  if (response.once !== undefined || connectionOf(response) !== undefined) whenEnded(response, () => controller.abort())
  return controller.signal
}

/**
 * Tells the gate how the response ended, if it wants to know. Before its headers are set, which
 * fails where other code has answered meanwhile.
 */
export function leaveAtEnd({ leave }: Entry, response: NodeResponse): void {
  if (leave !== undefined) whenEnded(response, (isSent) => leave(endOf(response, isSent)))
}

function endOf({ headersSent, statusCode: status, stream, writableFinished, req, once }: NodeResponse, isSent: boolean): HttpOutcome {
  if (isSent) return { status, aborted: false }
  if (headersSent) return { status, aborted: stream?.aborted ?? !writableFinished }
  // The handshake of a WebSocket is written to its socket, beside the response. Node sets `upgrade`
  // where an application upgrades connections; the header alone is a client's word.
  if (req?.upgrade === true || once === undefined) return { status: SWITCHING_PROTOCOLS, aborted: false }
  // Before its headers are sent a response has the status that Node or the framework begins with,
  // and the client has not seen it.
  return { status: CLIENT_LEFT, aborted: true }
}

/**
 * Callbacks for the end of a response: one listener for all, because a request may pass many
 * limiters.
 */
const ending = new WeakMap<NodeResponse, ((isSent: boolean) => void)[]>()

/** Once: when all of it was sent, or it is closed. */
function whenEnded(response: NodeResponse, listener: (isSent: boolean) => void): void {
  const others = ending.get(response)
  if (others !== undefined) {
    others.push(listener)
    return
  }
  const listeners = [listener]
  ending.set(response, listeners)
  const end = (isSent: boolean) => {
    if (ending.get(response) !== listeners) return
    ending.delete(response)
    for (const each of listeners) each(isSent)
  }
  // Over HTTP/1 a response closes when it is sent. One that no server made, as in AWS Lambda and in
  // tests, may tell of nothing else.
  if (response.stream === undefined) response.once?.('finish', () => end(true))
  whenClosed(response, () => end(false))
}

/** At once, if it is closed already, or if nothing would tell. */
function whenClosed(response: NodeResponse, listener: () => void): void {
  const connection = connectionOf(response)
  if (response.stream?.destroyed || response.destroyed) listener()
  else if (connection !== undefined) {
    const once = whenConnectionCloses(connection, listener)
    response.once?.('close', once)
  } else if (response.once !== undefined) response.once('close', listener)
  else listener()
}

/**
 * The connection, where the response is not told when that closes: as long as it has not had its
 * turn behind others on the same connection, and where it stands for a WebSocket of Socket.IO.
 */
function connectionOf({ stream, socket, req, once }: NodeResponse): Closable | undefined {
  return stream === undefined && (socket === null || once === undefined) ? (req?.socket as Closable | undefined) : undefined
}

/** Once: at once, if it is closed already. Returns what does it sooner. */
export function whenConnectionCloses(connection: Closable, listener: () => void): () => void {
  const pending = pendingOn(connection)
  const once = () => {
    if (pending.delete(once)) listener()
  }
  pending.add(once)
  if (connection.destroyed) once()
  return once
}

/**
 * Callbacks for the end of a connection: one listener for all, because there may be many requests
 * on it.
 */
const waiting = new WeakMap<Closable, Set<() => void>>()

function pendingOn(connection: Closable): Set<() => void> {
  const known = waiting.get(connection)
  if (known !== undefined) return known
  const made = new Set<() => void>()
  waiting.set(connection, made)
  connection.once('close', () => {
    for (const listener of made) listener()
  })
  return made
}

/** `earlier` is what another limiter has decided about the same request. */
export function setHeaders(response: NodeResponse, { headers, decision }: Entry, earlier: Decision | undefined): void {
  if (earlier === undefined || headers.length === 0) put(response, headers)
  else put(response, besidesOnNode(response, headers, leavesLess(decision, earlier)))
}

/**
 * Of two limiters that admit, clients are told of the one that leaves less where there is room for
 * one.
 */
export function leavesLess(decision: Decision | undefined, earlier: Decision): boolean {
  return (decision?.remaining ?? 0) <= earlier.remaining
}

export function answer(response: NodeResponse, { status, headers, body }: Refusal, earlier: Decision | undefined): void {
  response.statusCode = status
  put(response, earlier === undefined ? headers : besidesOnNode(response, headers, true))
  response.end(body)
}

/** Those of a response beside what it says by now. */
export function besidesOnNode(response: NodeResponse, headers: readonly string[], binds: boolean): string[] {
  return besides(headers, (name) => response.getHeader(name), binds)
}

export function put(response: NodeResponse, headers: readonly string[]): void {
  for (let k = 0; k < headers.length; k += 2) response.setHeader(headers[k] as string, headers[k + 1] as string)
}
