/**
 * Koa: `app.use(rateLimit({ limit }))`; the decision is `ctx.state.rateLimit`, typed by
 * `new Koa<RateLimitState>()`.
 */
import { SluiceError } from '../errors.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, isPromise } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { koaRoute } from './koa-route.ts'
import {
  besidesOnNode,
  leaveAtEnd,
  NodeHttpRequest,
  type NodeRequest,
  type NodeResponse,
  nodeGate,
  put,
  setHeaders,
} from './node-request.ts'
import { koaClient } from './trusted-address.ts'

export * from '../http/index.ts'

export interface RateLimitState {
  /** The decision of the last limiter. Undefined if the request was skipped. */
  rateLimit?: HttpDecision
}

/** The parts of Koa's context that are needed. */
export interface KoaContext {
  readonly req: NodeRequest
  readonly res: NodeResponse
  // biome-ignore lint/suspicious/noExplicitAny: Koa's own default
  state: any
  status: number
  body: unknown
  respond?: boolean
}

export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Ctx extends KoaContext = AnyRequest,
>(options: HttpOptions<Ctx, L, S, P>): (ctx: Ctx, next: () => Promise<unknown>) => Promise<unknown> {
  const gate = nodeGate<Ctx>(options)
  return async (ctx, next) => {
    if (ctx.res === undefined) throw withoutResponse()
    const entered = gate.enter(ctx, new NodeHttpRequest<object>(ctx.req, ctx, koaRoute, ctx, koaClient), ctx.res)
    const entry = isPromise(entered) ? await entered : entered
    const { rateLimit: earlier } = ctx.state as RateLimitState
    ctx.state.rateLimit = entry.decision
    if (entry.gone) {
      ctx.respond = false
      return undefined
    }
    if (entry.refusal === undefined) {
      leaveAtEnd(entry, ctx.res)
      setHeaders(ctx.res, entry, earlier)
      const handled = next()
      entry.hold?.handledBy(handled)
      return handled
    }
    const { headers } = entry.refusal
    ctx.status = entry.refusal.status
    put(ctx.res, earlier === undefined ? headers : besidesOnNode(ctx.res, headers, true))
    // After the headers: Koa looks for a type where there is none.
    ctx.body = entry.refusal.body
    return undefined
  }
}

/** Before anything is taken: nothing would tell when to give it back. */
function withoutResponse(): SluiceError {
  return new SluiceError(
    'UNSUPPORTED',
    'sluice/koa cannot limit a context without a response, such as that of a WebSocket of koa-websocket: ask a limiter in the handler of the socket',
  )
}
