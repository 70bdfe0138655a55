/** Hono: `app.use(rateLimit({ limit }))`; the decision is `c.get('rateLimit')`, typed by `new Hono<{ Variables: RateLimitVariables }>()`. */
import { type Entry, Gate } from '../http/gate.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, isPromise } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { isUpgrade, outcomeOf, refusedWith } from './fetched.ts'
import { type HonoContext, HonoHttp, nodeOf } from './hono-request.ts'
import { leaveAtEnd, setHeaders } from './incoming.ts'

export * from '../http/index.ts'
export type { HonoContext } from './hono-request.ts'

export interface RateLimitVariables {
  /** What the last limiter decided. Undefined if the request was skipped. */
  rateLimit: Decision | undefined
}

export interface HonoOptions<Ctx> {
  /** The client's address. Default: what Node, Deno and Bun tell. On Workers: `(c) => c.req.header('cf-connecting-ip')`. */
  readonly address?: (c: Ctx) => string | null | undefined
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
    const http = new HonoHttp(c, node, options.address as ((c: HonoContext) => string | null | undefined) | undefined)
    const goOn = (entry: Entry): Answer => {
      c.set('rateLimit', entry.decision)
      if (entry.gone) return new Response(null, { status: 499 })
      if (entry.refusal !== undefined) return refusedWith(entry.refusal)
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
  // A handler that made its own response did not look at the headers of the context.
  if (!isUpgrade(c.res)) {
    for (let k = 0; k < headers.length; k += 2) {
      if (!c.res.headers.has(headers[k] as string)) c.header(headers[k] as string, headers[k + 1] as string)
    }
  }
  leave?.(outcomeOf(c.res.status, http.signal))
}
