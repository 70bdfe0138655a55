/**
 * Fastify: `await app.register(rateLimit({ limit }))` limits the scope it is registered in and the scopes within it. A route may go without
 * (`config: { rateLimit: false }`), change some choices (`{ cost: 5 }`), or have a limit of its own (`{ limit: ... }`).
 */
import { type Entry, Gate, hasOwnLimits } from '../http/gate.ts'
import type { HttpChoices, HttpOptions } from '../http/options.ts'
import { type AnyRequest, asError, isPromise } from '../http/request.ts'
import type { Decision } from '../limiter/decision.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { closing, Incoming, leaveAtEnd, type NodeResponse } from './incoming.ts'
import { type FastifyReplyLike, type FastifyRequestLike, sendReply, setReplyHeaders } from './reply.ts'

export * from '../http/index.ts'
export type { FastifyReplyLike, FastifyRequestLike } from './reply.ts'

/** What a request carries: `declare module 'fastify' { interface FastifyRequest extends RateLimited {} }`. */
export interface RateLimited {
  /** What the last limiter decided. Undefined if the request was skipped. */
  rateLimit?: Decision
}

/** What `config.rateLimit` of a route may be. */
export type RouteRateLimit<Req = FastifyRequestLike> = false | HttpChoices<Req> | HttpOptions<Req, Limits, Store>

/** Where the gate that a plugin made for a route stands in the route's config. */
type OwnGate = symbol

/** Holds the gate of the plugin that, of several around a route, decides by the limits of the route's own: the innermost, because more than one would count twice. */
const OWNER = Symbol('sluice.owner')

interface RouteConfig<Req> {
  readonly rateLimit?: RouteRateLimit<Req>
  readonly url?: string
  [OWNER]?: Gate<Req, NodeResponse> | undefined
  [own: OwnGate]: Gate<Req, NodeResponse> | undefined
}

type Hook = (request: never, reply: never, done: (error?: Error) => void) => void
// biome-ignore lint/suspicious/noExplicitAny: Fastify's instance has too many type parameters to be matched
export type RateLimitPlugin = (instance: any, options: object, done: (error?: Error) => void) => void

export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Req extends FastifyRequestLike = AnyRequest,
>(options: HttpOptions<Req, L, S, P>): RateLimitPlugin {
  const gate = new Gate<Req, NodeResponse>(options, closing)
  const own: OwnGate = Symbol('sluice.gate')
  const late = new WeakMap<object, Map<string | undefined, Gate<Req, NodeResponse>>>()

  const onRoute = ({ config }: { config?: RouteConfig<Req> }) => {
    const rateLimit = config?.rateLimit
    if (config === undefined || rateLimit === undefined || rateLimit === false) return
    // The route for HEAD that Fastify adds has the same config, and shares the gate.
    config[own] ??= gate.with(rateLimit)
    if (hasOwnLimits(rateLimit)) config[OWNER] = gate
  }

  /** The gate for a route; undefined if it goes without, or if another plugin has it. */
  const gateOf = (config: RouteConfig<Req> | undefined): Gate<Req, NodeResponse> | undefined => {
    const rateLimit = config?.rateLimit
    if (config === undefined || rateLimit === undefined) return gate
    if (rateLimit === false) return undefined
    if (hasOwnLimits(rateLimit)) {
      config[OWNER] ??= gate
      if (config[OWNER] !== gate) return undefined
    }
    config[own] ??= lateGate(config, rateLimit)
    return config[own]
  }

  /** Of a route that was made before the plugin was loaded, as all are where its registration is not awaited. HEAD has a config of its own by now. */
  const lateGate = ({ url }: RouteConfig<Req>, rateLimit: object): Gate<Req, NodeResponse> => {
    const byUrl = late.get(rateLimit) ?? new Map<string | undefined, Gate<Req, NodeResponse>>()
    late.set(rateLimit, byUrl)
    const found = byUrl.get(url) ?? gate.with(rateLimit)
    byUrl.set(url, found)
    return found
  }

  const onRequest = (request: Req, reply: FastifyReplyLike, done: (error?: Error) => void) => {
    let entered: Entry | Promise<Entry>
    try {
      const asked = gateOf(request.routeOptions.config as RouteConfig<Req> | undefined)
      if (asked === undefined) return done()
      entered = asked.enter(request, new Incoming(request.raw), reply.raw)
    } catch (error) {
      return done(asError(error))
    }
    if (isPromise(entered)) entered.then((entry) => goOn(entry, request as RateLimited, reply, done)).catch((error) => done(asError(error)))
    else goOn(entered, request as RateLimited, reply, done)
  }

  const plugin: RateLimitPlugin = (instance, _options, done) => {
    if (!instance.hasRequestDecorator('rateLimit')) instance.decorateRequest('rateLimit', undefined)
    instance.addHook('onRoute', onRoute)
    instance.addHook('onRequest', onRequest as Hook)
    done()
  }
  // Fastify gives a plugin a scope of its own, unless it says that it is for the scope it is registered in.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'sluice' })
}

function goOn(entry: Entry, request: RateLimited, reply: FastifyReplyLike, done: () => void): void {
  request.rateLimit = entry.decision as Decision
  if (entry.gone) reply.hijack()
  else if (entry.refusal !== undefined) sendReply(reply, entry.refusal)
  else {
    setReplyHeaders(reply, entry.headers)
    leaveAtEnd(entry, reply.raw)
    done()
  }
}
