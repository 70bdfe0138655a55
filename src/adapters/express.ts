/**
 * Express 4 and 5, and anything else that takes `(req, res, next)`:
 * `app.use(rateLimit({ limit: gcra({ rate: '100/min', burst: 20 }) }))`.
 */
import type { Entry } from '../http/entry.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, asError, isPromise } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { expressRoute } from './express-route.ts'
import { answer, leaveAtEnd, NodeHttpRequest, type NodeRequest, type NodeResponse, nodeGate, setHeaders } from './node-request.ts'
import { expressClient } from './trusted-address.ts'

export * from '../http/index.ts'

declare global {
  namespace Express {
    interface Request {
      /** The decision of the last limiter. Undefined if the request was skipped. */
      rateLimit?: HttpDecision
    }
  }
}

export type RateLimitMiddleware<Req> = (request: Req, response: NodeResponse, next: (error?: unknown) => void) => void

export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Req extends NodeRequest = AnyRequest,
>(options: HttpOptions<Req, L, S, P>): RateLimitMiddleware<Req> {
  const gate = nodeGate<Req>(options)
  return (request, response, next) => {
    let entered: Entry | Promise<Entry>
    try {
      entered = gate.enter(request, new NodeHttpRequest(request, request, expressRoute, request, expressClient), response)
    } catch (error) {
      return next(asError(error))
    }
    if (isPromise(entered)) entered.then((entry) => goOn(entry, request, response, next)).catch((error) => next(asError(error)))
    else goOn(entered, request, response, next)
  }
}

function goOn(entry: Entry, request: object, response: NodeResponse, next: () => void): void {
  const { rateLimit: earlier } = request as { rateLimit?: HttpDecision }
  ;(request as { rateLimit?: HttpDecision }).rateLimit = entry.decision as HttpDecision
  if (entry.gone) return
  if (entry.refusal !== undefined) answer(response, entry.refusal, earlier)
  else {
    leaveAtEnd(entry, response)
    setHeaders(response, entry, earlier)
    next()
  }
}
