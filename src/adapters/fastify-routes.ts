/** Which gate a route of Fastify has: that of the plugin, or one by what its config says. */
import type { Gate } from '../http/gate.ts'
import { type HttpChoices, type HttpOptions, hasOwnLimits } from '../http/options.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store } from '../stores/store.ts'
import type { FastifyRequestLike } from './fastify-reply.ts'
import type { NodeResponse } from './node-request.ts'

/** The values of `config.rateLimit` of a route. */
export type RouteRateLimit<Req = FastifyRequestLike> = false | HttpChoices<Req> | HttpOptions<Req, Limits, Store>

/**
 * Holds the gate of the plugin that, of several around a route, decides by the limits of the
 * route's own: the innermost, because more than one would count twice.
 */
const OWNER = Symbol('sluice.owner')

/** The text that Fastify's `printRoutes` shows where there is none. */
const NO_ROUTES = '(empty tree)'

interface RouteConfig<Req> {
  readonly rateLimit?: RouteRateLimit<Req>
  readonly url?: string
  [OWNER]?: Gate<Req, NodeResponse> | undefined
  /** The gates that plugins made for the route, each under a symbol of its own. */
  [plugin: symbol]: Gate<Req, NodeResponse> | undefined
}

interface Route<Req> {
  readonly config?: RouteConfig<Req>
}

export class RouteGates<Req> {
  readonly #gate: Gate<Req, NodeResponse>
  readonly #own = Symbol('sluice.gate')
  readonly #late = new WeakMap<object, Map<string | undefined, Gate<Req, NodeResponse>>>()
  /** When the application is ready, it is known whether one of them says something. */
  readonly #noticed: Route<Req>[] = []
  #sawAll = true
  /**
   * No route says anything: then the request need not be asked for its route, which takes as long
   * as a decision.
   */
  #areAllAlike = false

  constructor(gate: Gate<Req, NodeResponse>) {
    this.#gate = gate
  }

  /** The plugin is loaded: `routes` is what the application has by now, as text. */
  load(routes: string): void {
    if (routes !== NO_ROUTES) this.#sawAll = false
  }

  /** A route is made. The hooks of inner plugins come after those of outer ones. */
  notice(route: Route<Req>): void {
    this.#noticed.push(route)
    const { config } = route
    const rateLimit = config?.rateLimit
    if (config === undefined || rateLimit === undefined || rateLimit === false) return
    // The route for HEAD that Fastify adds has the same config, and shares the gate.
    config[this.#own] ??= this.#gate.with(rateLimit)
    if (hasOwnLimits(rateLimit)) config[OWNER] = this.#gate
  }

  /**
   * The application is ready: other plugins, too, have said about the routes what they had to say.
   */
  onReady(): void {
    this.#areAllAlike = this.#sawAll && this.#noticed.every(({ config }) => config?.rateLimit === undefined)
  }

  /** Undefined if the route goes without, or if another plugin decides about it. */
  gateOf(request: FastifyRequestLike): Gate<Req, NodeResponse> | undefined {
    // A request that is not found has no route and no config of its own: it is limited as its scope
    // is.
    return this.#areAllAlike || request.is404 ? this.#gate : this.#gateOfRoute(request)
  }

  #gateOfRoute(request: FastifyRequestLike): Gate<Req, NodeResponse> | undefined {
    const config = request.routeOptions.config as RouteConfig<Req> | undefined
    const rateLimit = config?.rateLimit
    if (config === undefined || rateLimit === undefined) return this.#gate
    if (rateLimit === false) return undefined
    if (hasOwnLimits(rateLimit)) {
      config[OWNER] ??= this.#gate
      if (config[OWNER] !== this.#gate) return undefined
    }
    config[this.#own] ??= this.#lateGate(config, rateLimit)
    return config[this.#own]
  }

  /**
   * Of a route that was made before the plugin was loaded, as where its registration is not
   * awaited. By now HEAD has a config of its own.
   */
  #lateGate({ url }: RouteConfig<Req>, rateLimit: object): Gate<Req, NodeResponse> {
    const byUrl = this.#late.get(rateLimit) ?? new Map<string | undefined, Gate<Req, NodeResponse>>()
    this.#late.set(rateLimit, byUrl)
    const gate = byUrl.get(url) ?? this.#gate.with(rateLimit)
    byUrl.set(url, gate)
    return gate
  }
}
