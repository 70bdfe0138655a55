/** Hono: `app.use(rateLimit({ limit }))`; the decision is `c.get('rateLimit')`, typed by `new Hono<{ Variables: RateLimitVariables }>()`. */
import { type Entry, Gate } from '../http/gate.ts'
import type { HttpOptions } from '../http/options.ts'
import type { Refusal } from '../http/refusal.ts'
import { type AnyRequest, type HttpRequest, isPromise } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Abortable } from '../limiter/input.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { closing, leaveAtEnd, type NodeRequest, type NodeResponse, setHeaders } from './incoming.ts'
import { type Connection, toldAddress } from './told-address.ts'

export * from '../http/index.ts'

export interface RateLimitVariables {
  /** What the last limiter decided. Undefined if the request was skipped. */
  rateLimit: Decision | undefined
}

/** What is needed of Hono's context. */
export interface HonoContext {
  // biome-ignore lint/suspicious/noExplicitAny: whatever the runtime and the application put there
  readonly env: any
  readonly req: { header(name: string): string | undefined; readonly raw: object }
  readonly res: { readonly status: number }
  // biome-ignore lint/suspicious/noExplicitAny: its type depends on the variables of the application
  set: any
  header(name: string, value: string): void
}

export interface HonoOptions<Ctx> {
  /** The client's address. Default: what Node, Deno and Bun tell. On Workers: `(c) => c.req.header('cf-connecting-ip')`. */
  readonly address?: (c: Ctx) => string | undefined
}

/** Hono does not name the class of its responses in a way that can be matched without it. */
// biome-ignore lint/suspicious/noExplicitAny: a Response of whatever runtime
type Answer = any

export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Ctx extends HonoContext = AnyRequest,
>(options: HttpOptions<Ctx, L, S, P> & HonoOptions<Ctx>): (c: Ctx, next: () => Promise<void>) => Promise<Answer> {
  const gate = new Gate<Ctx, HonoHttp>(options, (http) => http.signal, ['address'])
  return (c, next) => {
    const node = nodeOf(c)
    const http = new HonoHttp(c, node, options.address as ((c: HonoContext) => string | undefined) | undefined)
    const goOn = (entry: Entry): Answer => {
      c.set('rateLimit', entry.decision)
      if (entry.gone) return new Response(null, { status: 499 })
      if (entry.refusal !== undefined) return refused(entry.refusal)
      if (node === undefined) return nextAnywhere(c, http, entry, next)
      // Hono's answer to a header of its own is to build `Headers`, which takes longer than all the rest; Node's response takes it as it is.
      setHeaders(node.outgoing, entry.headers)
      leaveAtEnd(entry, node.outgoing)
      return next()
    }
    const entered = gate.enter(c, http, http)
    return isPromise(entered) ? entered.then(goOn) : goOn(entered)
  }
}

async function nextAnywhere(c: HonoContext, http: HonoHttp, { headers, leave }: Entry, next: () => Promise<void>): Promise<void> {
  for (let k = 0; k < headers.length; k += 2) c.header(headers[k] as string, headers[k + 1] as string)
  await next()
  leave?.({ status: c.res.status, aborted: http.signal?.aborted ?? false })
}

/** From plain headers, which is what @hono/node-server is quickest with. */
function refused({ status, headers, body }: Refusal): Response {
  const fields: Record<string, string> = {}
  for (let k = 0; k < headers.length; k += 2) fields[headers[k] as string] = headers[k + 1] as string
  return new Response(body, { status, headers: fields })
}

interface NodeBindings {
  readonly incoming: NodeRequest
  readonly outgoing: NodeResponse
}

/** Node's own request and response, where @hono/node-server serves. */
function nodeOf({ env }: HonoContext): NodeBindings | undefined {
  const bindings = env?.server?.incoming === undefined ? env : env.server
  return typeof bindings?.outgoing?.setHeader === 'function' && bindings.incoming !== undefined ? bindings : undefined
}

class HonoHttp implements HttpRequest {
  readonly #c: HonoContext
  readonly #node: NodeBindings | undefined
  readonly #addressOf: ((c: HonoContext) => string | undefined) | undefined

  constructor(c: HonoContext, node: NodeBindings | undefined, addressOf: ((c: HonoContext) => string | undefined) | undefined) {
    this.#c = c
    this.#node = node
    this.#addressOf = addressOf
  }

  get address(): string | undefined {
    if (this.#addressOf !== undefined) return this.#addressOf(this.#c)
    if (this.#node !== undefined) return this.#node.incoming.socket?.remoteAddress
    const { env, req } = this.#c
    return toldAddress(req.raw, (env?.server ?? env) as Connection | undefined)
  }

  /** Aborted when the client leaves. */
  get signal(): Abortable | undefined {
    return this.#node === undefined ? (this.#c.req.raw as { signal?: Abortable }).signal : closing(this.#node.outgoing)
  }

  header(name: string): string | undefined {
    return this.#c.req.header(name)
  }
}
