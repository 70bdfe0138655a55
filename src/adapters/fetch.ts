/**
 * Handlers from `Request` to `Response`: Bun.serve, Deno.serve, Next.js route handlers, Workers.
 * `Deno.serve(rateLimit({ limit })(handler))`.
 */
import { Gate } from '../http/gate.ts'
import { besides } from '../http/headers.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, isPromise, SWITCHING_PROTOCOLS } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import {
  FetchHttpRequest,
  type FetchRequest,
  type FetchResponse,
  isUpgrade,
  outcomeOf,
  refusedWith,
  signalOf,
  withHeaders,
} from './fetch-request.ts'
import { leavesLess } from './node-request.ts'
import { type Connection, peerAddress } from './peer-address.ts'
import { type Lifetime, leaveWhenSent, outliving } from './response-end.ts'

export * from '../http/index.ts'
export type { FetchRequest, FetchResponse } from './fetch-request.ts'

export interface FetchOptions<Req> {
  /**
   * The client's address, from what the runtime hands to the handler. Default: what Deno and Bun
   * tell. Others have to be asked: on Workers
   * `(request) => request.headers.get('cf-connecting-ip')`.
   */
  readonly address?: (request: Req, ...rest: never[]) => string | null | undefined
}

type AddressOf<Req> = (request: Req, ...rest: unknown[]) => string | null | undefined

const decisions = new WeakMap<object, HttpDecision>()

/** The decision about a request. */
export function rateLimitOf(request: object): HttpDecision | undefined {
  return decisions.get(request)
}

/** The handler was itself limited: of the two, the inner one has had its say already. */
function besidesInner(
  answered: FetchResponse,
  headers: readonly string[],
  outer: Decision | undefined,
  inner: Decision | undefined,
): string[] {
  const binds = inner?.allowed !== false && (inner === undefined || leavesLess(outer, inner))
  return besides(headers, (name) => answered.headers.get(name) ?? undefined, binds, true)
}

function lifetimeIn(handed: readonly unknown[]): Lifetime | undefined {
  return handed.find((each): each is Lifetime => typeof (each as Partial<Lifetime> | null | undefined)?.waitUntil === 'function')
}

/** Returns what puts the limits before a handler. */
export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Req extends FetchRequest = AnyRequest,
>(
  options: HttpOptions<Req, L, S, P> & FetchOptions<Req>,
): <R extends Req, Rest extends unknown[], Res extends FetchResponse | undefined>(
  handler: (request: R, ...rest: Rest) => Res | Promise<Res>,
) => (request: R, ...rest: Rest) => Promise<Res> {
  const gate = new Gate<Req, FetchRequest>(options, signalOf, ['address'])
  const addressOf = (options.address ?? ((request: Req, connection?: Connection) => peerAddress(request, connection))) as AddressOf<Req>
  return <R extends Req, Rest extends unknown[], Res extends FetchResponse | undefined>(
    handler: (request: R, ...rest: Rest) => Res | Promise<Res>,
  ) =>
    async (request: R, ...rest: Rest): Promise<Res> => {
      const http = new FetchHttpRequest(request, addressOf(request, ...rest) ?? undefined)
      const entered = gate.enter(request, http, request)
      const entry = isPromise(entered) ? await entered : entered
      const { decision, refusal, headers, gone, hold } = entry
      if (decision !== undefined) decisions.set(request, decision)
      // The client is gone, but a handler has to answer something.
      if (gone) return new Response(null, { status: 499 }) as unknown as Res
      if (refusal !== undefined) return refusedWith(refusal) as unknown as Res
      const leave = outliving(entry.leave, lifetimeIn(rest))
      try {
        const handled = handler(request, ...rest)
        hold?.handledBy(handled)
        const answered = await handled
        if (answered === undefined || isUpgrade(answered)) {
          leave?.(outcomeOf(SWITCHING_PROTOCOLS, signalOf(request)))
          return answered
        }
        const later = decisions.get(request)
        const told = withHeaders(answered, later === decision ? headers : besidesInner(answered, headers, decision, later))
        return leave === undefined ? told : leaveWhenSent(told, request, leave)
      } catch (error) {
        // The runtime will answer with it.
        leave?.(outcomeOf(500, signalOf(request)))
        throw error
      }
    }
}
