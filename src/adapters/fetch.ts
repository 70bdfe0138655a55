/** Handlers from `Request` to `Response`: Bun.serve, Deno.serve, Next.js route handlers, Workers. `Deno.serve(rateLimit({ limit })(handler))`. */
import { Gate } from '../http/gate.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, type HttpRequest, isPromise } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Abortable } from '../limiter/input.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { type Connection, toldAddress } from './told-address.ts'

export * from '../http/index.ts'

/** What is needed of a `Request`. */
export interface FetchRequest {
  readonly headers: { get(name: string): string | null }
  readonly signal?: unknown
}

/** What is needed of a `Response`. */
export interface FetchResponse {
  readonly status: number
  readonly headers: { set(name: string, value: string): void }
}

export interface FetchOptions<Req> {
  /**
   * The client's address, from what the runtime hands to the handler. Default: what Deno and Bun tell. Others have to be asked: on Workers
   * `(request) => request.headers.get('cf-connecting-ip')`.
   */
  readonly address?: (request: Req, ...rest: never[]) => string | null | undefined
}

type AddressOf<Req> = (request: Req, ...rest: unknown[]) => string | null | undefined

const decisions = new WeakMap<object, Decision>()

/** What was decided about a request. */
export function rateLimitOf(request: object): Decision | undefined {
  return decisions.get(request)
}

/** Returns what puts the limits before a handler. */
export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Req extends FetchRequest = AnyRequest,
>(
  options: HttpOptions<Req, L, S, P> & FetchOptions<Req>,
): <R extends Req, Rest extends unknown[], Res extends FetchResponse>(
  handler: (request: R, ...rest: Rest) => Res | Promise<Res>,
) => (request: R, ...rest: Rest) => Promise<Res> {
  const gate = new Gate<Req, FetchRequest>(options, signalOf, ['address'])
  const addressOf = (options.address ?? ((request: Req, connection?: Connection) => toldAddress(request, connection))) as AddressOf<Req>
  return <R extends Req, Rest extends unknown[], Res extends FetchResponse>(handler: (request: R, ...rest: Rest) => Res | Promise<Res>) =>
    async (request: R, ...rest: Rest): Promise<Res> => {
      const http = new Fetched(request, addressOf(request, ...rest) ?? undefined)
      const entered = gate.enter(request, http, request)
      const { decision, refusal, headers, gone, leave } = isPromise(entered) ? await entered : entered
      if (decision !== undefined) decisions.set(request, decision)
      // Nobody will see it, but a handler has to answer something.
      if (gone) return new Response(null, { status: 499 }) as unknown as Res
      if (refusal !== undefined) return response(refusal.body, refusal.status, refusal.headers) as unknown as Res
      try {
        const answered = withHeaders(await handler(request, ...rest), headers)
        leave?.({ status: answered.status, aborted: signalOf(request)?.aborted ?? false })
        return answered
      } catch (error) {
        // The runtime will answer with it.
        leave?.({ status: 500, aborted: signalOf(request)?.aborted ?? false })
        throw error
      }
    }
}

function signalOf({ signal }: FetchRequest): Abortable | undefined {
  return signal as Abortable | undefined
}

class Fetched implements HttpRequest {
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

function response(body: string, status: number, headers: readonly string[]): Response {
  return withHeaders(new Response(body, { status }), headers)
}

/** A response that came from `fetch` or a cache may not be changed: then it is copied. */
function withHeaders<Res extends FetchResponse>(given: Res, headers: readonly string[]): Res {
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
