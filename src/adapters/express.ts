/** Express 4 and 5, and anything else that takes `(req, res, next)`: `app.use(rateLimit({ limit: gcra({ rate: '100/min', burst: 20 }) }))`. */
import { type Entry, Gate } from '../http/gate.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, asError, isPromise } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { answer, closing, Incoming, leaveAtEnd, type NodeRequest, type NodeResponse, setHeaders } from './incoming.ts'

export * from '../http/index.ts'

declare global {
  namespace Express {
    interface Request {
      /** What the last limiter decided. Undefined if the request was skipped. */
      rateLimit?: Decision
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
  const gate = new Gate<Req, NodeResponse>(options, closing)
  return (request, response, next) => {
    let entered: Entry | Promise<Entry>
    try {
      entered = gate.enter(request, new Incoming(request), response)
    } catch (error) {
      return next(asError(error))
    }
    if (isPromise(entered)) entered.then((entry) => goOn(entry, request, response, next)).catch((error) => next(asError(error)))
    else goOn(entered, request, response, next)
  }
}

function goOn(entry: Entry, request: object, response: NodeResponse, next: () => void): void {
  ;(request as { rateLimit?: Decision }).rateLimit = entry.decision as Decision
  if (entry.gone) return
  if (entry.refusal !== undefined) answer(response, entry.refusal)
  else {
    setHeaders(response, entry.headers)
    leaveAtEnd(entry, response)
    next()
  }
}
