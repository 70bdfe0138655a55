/** A request as Hono shows it, wherever it runs. */
import type { HttpRequest } from '../http/request.ts'
import { routeText } from '../http/route.ts'
import type { Abortable } from '../limiter/input.ts'
import { type Closable, closing, type NodeRequest, type NodeResponse } from './node-request.ts'
import { type Connection, peerAddress } from './peer-address.ts'
import type { Lifetime } from './response-end.ts'

/** The parts of Hono's context that are needed. */
export interface HonoContext {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the runtime and the application put there
  readonly env: any
  readonly req: {
    header(name: string): string | undefined
    readonly raw: object
    readonly matchedRoutes: readonly { readonly method: string; readonly path: string }[]
  }
  readonly res: {
    readonly ok: boolean
    readonly status: number
    readonly body: unknown
    readonly headers: { has(name: string): boolean; get(name: string): string | null; set(name: string, value: string): void }
  }
  // biome-ignore lint/suspicious/noExplicitAny: its type depends on the variables of the application
  set: any
  // biome-ignore lint/suspicious/noExplicitAny: its type depends on the variables of the application
  get: any
  /** Throws where the runtime has none. */
  readonly executionCtx?: Lifetime
  /** Without a value it takes the header away. */
  header(name: string, value?: string): void
}

export interface NodeBindings {
  readonly incoming: NodeRequest
  readonly outgoing: NodeResponse
}

/** Node's own request and response, where @hono/node-server serves. */
export function nodeOf({ env }: HonoContext): NodeBindings | undefined {
  const bindings = env?.server?.incoming === undefined ? env : env.server
  return typeof bindings?.outgoing?.setHeader === 'function' && bindings.incoming !== undefined ? bindings : undefined
}

/** The socket of a request without a response, which @hono/node-server makes a WebSocket of. */
export function webSocketOf({ env }: HonoContext): Closable | undefined {
  const { incoming, outgoing } = env?.server ?? env ?? {}
  return outgoing === undefined && typeof incoming?.socket?.once === 'function' ? incoming.socket : undefined
}

export function lifetimeOf(c: HonoContext): Lifetime | undefined {
  try {
    return c.executionCtx
  } catch {
    return undefined
  }
}

export class HonoHttp implements HttpRequest {
  readonly #c: HonoContext
  readonly #node: NodeBindings | undefined
  readonly #addressOf: ((c: HonoContext) => string | null | undefined) | undefined

  constructor(c: HonoContext, node: NodeBindings | undefined, addressOf: ((c: HonoContext) => string | null | undefined) | undefined) {
    this.#c = c
    this.#node = node
    this.#addressOf = addressOf
  }

  get address(): string | undefined {
    if (this.#addressOf !== undefined) return this.#addressOf(this.#c) ?? undefined
    if (this.#node !== undefined) return this.#node.incoming.socket?.remoteAddress
    const { env, req } = this.#c
    const bindings = env?.server ?? env
    // Of a WebSocket's first request there is no response yet, only what came.
    return peerAddress(req.raw, bindings as Connection | undefined) ?? bindings?.incoming?.socket?.remoteAddress
  }

  /** Of what matches a request, its handler is the last. */
  get route(): string | undefined {
    const last = this.#c.req.matchedRoutes.at(-1)
    return last && routeText(last.method, last.path)
  }

  get hasLeft(): boolean {
    return this.#node?.incoming.stream?.destroyed === true
  }

  /** Aborted when the client leaves. */
  get signal(): Abortable | undefined {
    return this.#node === undefined ? (this.#c.req.raw as { signal?: Abortable }).signal : closing(this.#node.outgoing)
  }

  header(name: string): string | undefined {
    return this.#c.req.header(name)
  }
}
