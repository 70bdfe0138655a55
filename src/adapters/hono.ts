/**
 * Hono: `app.use(rateLimit({ limit }))`; the decision is `c.get('rateLimit')`, typed by
 * `new Hono<{ Variables: RateLimitVariables }>()`.
 */
import type { Entry } from '../http/entry.ts'
import { Gate } from '../http/gate.ts'
import { besides } from '../http/headers.ts'
import type { HttpOptions } from '../http/options.ts'
import type { Refusal } from '../http/refusal.ts'
import { type AnyRequest, isPromise, SWITCHING_PROTOCOLS } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { keepAddresses } from './addresses.ts'
import { type FetchRequest, isUpgrade, outcomeOf, refusedWith } from './fetch-request.ts'
import { type HonoContext, HonoHttp, lifetimeOf, type NodeBindings, nodeOf, webSocketOf } from './hono-request.ts'
import { type Closable, leaveAtEnd, leavesLess, setHeaders, whenConnectionCloses } from './node-request.ts'
import { leaveWhenSent, outliving } from './response-end.ts'

export * from '../http/index.ts'
export type { HonoContext } from './hono-request.ts'

export interface RateLimitVariables {
  /** The decision of the last limiter. Undefined if the request was skipped. */
  rateLimit: HttpDecision | undefined
}

export interface HonoOptions<Ctx> {
  /**
   * The client's address. Default: what Node, Deno and Bun tell. On Workers:
   * `(c) => c.req.header('cf-connecting-ip')`.
   */
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
  keepAddresses()
  const gate = new Gate<Ctx, HonoHttp>(options, (http) => http.signal, ['address'])
  return (c, next) => {
    const node = nodeOf(c)
    const http = new HonoHttp(c, node, options.address as ((c: HonoContext) => string | null | undefined) | undefined)
    const goOn = (entry: Entry): Answer => {
      const earlier: Decision | undefined = c.get('rateLimit')
      c.set('rateLimit', entry.decision)
      if (entry.gone) return new Response(null, { status: 499 })
      if (entry.refusal !== undefined) return refuse(c, node, entry.refusal, earlier)
      if (node === undefined) return nextAnywhere(c, http, entry, earlier, next)
      leaveAtEnd(entry, node.outgoing)
      // Hono's answer to a header of its own is to build `Headers`, which takes longer than all the
      // rest; Node's response takes it as it is.
      setHeaders(node.outgoing, entry, earlier)
      const handled = next()
      entry.hold?.handledBy(handled)
      return handled
    }
    const entered = gate.enter(c, http, http)
    return isPromise(entered) ? entered.then(goOn) : goOn(entered)
  }
}

function refuse(c: HonoContext, node: NodeBindings | undefined, refusal: Refusal, earlier: Decision | undefined): Answer {
  const answered = earlier === undefined ? refusal : { ...refusal, headers: refusalBeside(c, node, refusal) }
  const response = refusedWith(answered)
  ;(c as { res: HonoContext['res'] }).res = response as unknown as HonoContext['res']
  // If there was a response before, Hono has made one of both, in which what was set before has
  // taken the place of ours.
  if (c.res !== (response as unknown)) putAll(c.res, answered.headers)
  return c.res
}

function refusalBeside(c: HonoContext, node: NodeBindings | undefined, { headers }: Refusal): string[] {
  return besides(headers, (name) => node?.outgoing.getHeader(name) ?? c.res.headers.get(name) ?? undefined, true)
}

function putAll({ headers }: HonoContext['res'], all: readonly string[]): void {
  for (let k = 0; k < all.length; k += 2) headers.set(all[k] as string, all[k + 1] as string)
}

async function nextAnywhere(
  c: HonoContext,
  http: HonoHttp,
  { headers, decision, leave: told, hold }: Entry,
  earlier: Decision | undefined,
  next: () => Promise<void>,
): Promise<void> {
  const read = (name: string) => c.res.headers.get(name) ?? undefined
  const all = earlier === undefined ? headers : besides(headers, read, leavesLess(decision, earlier))
  for (let k = 0; k < all.length; k += 2) c.header(all[k] as string, all[k + 1] as string)
  const leave = told && outliving(told, lifetimeOf(c))
  const handled = next()
  hold?.handledBy(handled)
  try {
    await handled
    addHeaders(c, all)
    if (leave === undefined) return
    const socket = webSocketOf(c)
    if (socket !== undefined) leaveWithSocket(c, socket, leave)
    else if (isUpgrade(c.res)) leave(outcomeOf(c.res.status, http.signal))
    else (c as { res: HonoContext['res'] }).res = leaveWhenSent(c.res, c.req.raw as FetchRequest, leave)
  } catch (error) {
    // Hono's own handlers turn errors into answers; one that is thrown here is answered further
    // out.
    leave?.(outcomeOf(500, http.signal))
    throw error
  }
}

/**
 * The answer to a handshake that becomes a WebSocket is empty. Any other is sent, and the socket
 * closes when its client lets it.
 */
function leaveWithSocket({ res: { ok, status, body } }: HonoContext, socket: Closable, leave: NonNullable<Entry['leave']>): void {
  if (!ok || body !== null) leave({ status, aborted: false })
  else whenConnectionCloses(socket, () => leave({ status: SWITCHING_PROTOCOLS, aborted: false }))
}

/** A handler that made its own response did not look at the headers of the context. */
function addHeaders(c: HonoContext, all: readonly string[]): void {
  if (isUpgrade(c.res)) return
  for (let k = 0; k < all.length; k += 2) {
    if (!c.res.headers.has(all[k] as string)) c.header(all[k] as string, all[k + 1] as string)
  }
}
