/**
 * `node:http`, `node:https` and `node:http2`:
 * `createServer(rateLimit({ limit })((req, res) => res.end('hello')))`.
 */
import type { Entry } from '../http/entry.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, isPromise } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { answer, leaveAtEnd, NodeHttpRequest, type NodeRequest, type NodeResponse, nodeGate, setHeaders } from './node-request.ts'

export * from '../http/index.ts'

/** A request as the handler gets it. */
export type RateLimited<Req> = Req & { rateLimit?: HttpDecision }

export interface NodeOptions<Req> {
  /**
   * What to do when the key, the cost or the store fails: Node has no error handling of its own.
   * Default: tell the console, answer 500.
   */
  readonly onError?: (error: unknown, request: Req, response: NodeResponse) => void
}

/** Returns what puts the limits before a handler. */
export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Req extends NodeRequest = AnyRequest,
  Res extends NodeResponse = NodeResponse,
>(
  options: HttpOptions<Req, L, S, P> & NodeOptions<Req>,
): <R extends Req, W extends Res>(handler: (request: RateLimited<R>, response: W) => unknown) => (request: R, response: W) => void {
  const gate = nodeGate<Req>(options, ['onError'])
  const { onError = answer500 } = options
  return (handler) => (request, response) => {
    const fail = (error: unknown) => onError(error, request, response)
    const goOn = (entry: Entry): unknown => {
      const { rateLimit: earlier } = request as { rateLimit?: HttpDecision }
      ;(request as { rateLimit?: HttpDecision }).rateLimit = entry.decision as HttpDecision
      if (entry.gone) return undefined
      if (entry.refusal !== undefined) return answer(response, entry.refusal, earlier)
      leaveAtEnd(entry, response)
      setHeaders(response, entry, earlier)
      const handled = handler(request, response)
      entry.hold?.handledBy(handled)
      return handled
    }
    let entered: Entry | Promise<Entry>
    try {
      entered = gate.enter(request, new NodeHttpRequest(request, request), response)
    } catch (error) {
      return fail(error)
    }
    if (isPromise(entered)) entered.then(goOn, fail)
    else goOn(entered)
  }
}

function answer500(error: unknown, _request: unknown, response: NodeResponse): void {
  console.error(error)
  response.statusCode = 500
  response.end()
}
