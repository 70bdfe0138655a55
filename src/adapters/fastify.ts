/**
 * Fastify: `await app.register(rateLimit({ limit }))` limits the scope it is registered in and the
 * scopes within it. A route may go without (`config: { rateLimit: false }`), change some choices
 * (`{ cost: 5 }`), or have a limit of its own (`{ limit: ... }`).
 */
import { SluiceError, shown } from '../errors.ts'
import type { Entry } from '../http/entry.ts'
import type { HttpOptions } from '../http/options.ts'
import { type AnyRequest, asError, isPromise } from '../http/request.ts'
import type { HttpDecision } from '../http/settling.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store, SyncStore } from '../stores/store.ts'
import { type FastifyReplyLike, type FastifyRequestLike, fastifyRoute, sendReply, setReplyHeaders } from './fastify-reply.ts'
import { RouteGates } from './fastify-routes.ts'
import { leaveAtEnd, NodeHttpRequest, nodeGate } from './node-request.ts'
import { fastifyClient } from './trusted-address.ts'

export * from '../http/index.ts'
export type { FastifyReplyLike, FastifyRequestLike } from './fastify-reply.ts'
export type { RouteRateLimit } from './fastify-routes.ts'

/**
 * What a request carries:
 * `declare module 'fastify' { interface FastifyRequest extends RateLimited {} }`.
 */
export interface RateLimited {
  /** The decision of the last limiter. Undefined if the request was skipped. */
  rateLimit?: HttpDecision
}

/** When a request is limited, of Fastify's hooks before the handler. */
const HOOKS = ['onRequest', 'preParsing', 'preValidation', 'preHandler'] as const

/** Other plugins are registered so: Fastify calls the function with the application. */
const NOT_CALLED = 'rateLimit makes the plugin: write app.register(rateLimit({ limit })) instead of app.register(rateLimit, { limit })'

export interface FastifyOptions {
  /**
   * When a request is limited. Later hooks know more of it, such as the user that a hook before
   * found, and more was done for it by then. Default `'onRequest'`.
   */
  readonly hook?: (typeof HOOKS)[number]
}

// biome-ignore lint/suspicious/noExplicitAny: Fastify's instance has too many type parameters to be matched
export type RateLimitPlugin = (instance: any, options: object, done: (error?: Error) => void) => void

export function rateLimit<
  const L extends Limits,
  S extends Store = SyncStore,
  P extends string = never,
  Req extends FastifyRequestLike = AnyRequest,
>(options: HttpOptions<Req, L, S, P> & FastifyOptions): RateLimitPlugin {
  const { hook = 'onRequest', register, ...rest } = Object(options) as typeof options & { readonly register?: unknown }
  if (register !== undefined) throw new SluiceError('CONFIG', NOT_CALLED)
  if (!HOOKS.includes(hook)) throw new SluiceError('CONFIG', `hook ${shown(hook)} must be one of ${HOOKS.join(', ')}`)
  const gate = nodeGate<Req>(rest)
  const routes = new RouteGates(gate)

  const limit = (request: Req & RateLimited, reply: FastifyReplyLike, done: (error?: Error) => void) => {
    let entered: Entry | Promise<Entry> | undefined
    try {
      entered = routes
        .gateOf(request)
        ?.enter(request, new NodeHttpRequest(request.raw, request, fastifyRoute, request, fastifyClient), reply.raw)
    } catch (error) {
      return done(asError(error))
    }
    if (entered === undefined) done()
    else if (isPromise(entered)) goOnLater(entered, request, reply, done)
    else goOn(entered, request, reply, done)
  }

  const plugin: RateLimitPlugin = (instance, _options, done) => {
    if (!instance.hasRequestDecorator('rateLimit')) instance.decorateRequest('rateLimit', undefined)
    routes.load(instance.printRoutes())
    instance.addHook('onRoute', (route: object) => routes.notice(route))
    instance.addHook('onReady', (ready: () => void) => {
      routes.onReady()
      ready()
    })
    // The hook before parsing has the body as well; the others take three arguments.
    const preParsing = (request: Req, reply: FastifyReplyLike, _body: unknown, next: (error?: Error) => void) => limit(request, reply, next)
    instance.addHook(hook, hook === 'preParsing' ? preParsing : limit)
    done()
  }
  // Fastify gives a plugin a scope of its own, unless it says that it is for the scope it is
  // registered in.
  return Object.assign(plugin, { [Symbol.for('skip-override')]: true, [Symbol.for('fastify.display-name')]: 'sluice' })
}

/**
 * By itself, because a hook that made functions would make room for what they use at every request.
 */
function goOnLater(entered: Promise<Entry>, request: RateLimited, reply: FastifyReplyLike, done: (error?: Error) => void): void {
  entered.then((entry) => goOn(entry, request, reply, done)).catch((error) => done(asError(error)))
}

function goOn(entry: Entry, request: RateLimited, reply: FastifyReplyLike, done: () => void): void {
  const { rateLimit: earlier } = request
  request.rateLimit = entry.decision as HttpDecision
  if (entry.gone) reply.hijack()
  else if (entry.refusal !== undefined) sendReply(reply, entry.refusal, earlier)
  else {
    leaveAtEnd(entry, reply.raw)
    setReplyHeaders(reply, entry, earlier)
    done()
  }
}
