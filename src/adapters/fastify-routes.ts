/** Which gate a route of Fastify has: that of the plugin, or one by what its config says. */
import { type Gate, hasOwnLimits } from '../http/gate.ts'
import type { HttpChoices, HttpOptions } from '../http/options.ts'
import type { Limits } from '../limiter/options.ts'
import type { Store } from '../stores/store.ts'
import type { NodeResponse } from './incoming.ts'
import type { FastifyRequestLike } from './reply.ts'

/** What `config.rateLimit` of a route may be. */
export type RouteRateLimit<Req = FastifyRequestLike> = false | HttpChoices<Req> | HttpOptions<Req, Limits, Store>

/**
 * Holds the gate of the plugin that, of several around a route, decides by the limits of the route's own: the innermost, because more than one
 * would count twice.
 */
const OWNER = Symbol('sluice.owner')

interface RouteConfig<Req> {
  readonly rateLimit?: RouteRateLimit<Req>
  readonly url?: string
  [OWNER]?: Gate<Req, NodeResponse> | undefined
  /** The gates that plugins made for the route, each under a symbol of its own. */
  [plugin: symbol]: Gate<Req, NodeResponse> | undefined
}

export class RouteGates<Req> {
  readonly #gate: Gate<Req, NodeResponse>
  readonly #own = Symbol('sluice.gate')
  readonly #late = new WeakMap<object, Map<string | undefined, Gate<Req, NodeResponse>>>()

  constructor(gate: Gate<Req, NodeResponse>) {
    this.#gate = gate
  }

  /** A route is made. The hooks of inner plugins come after those of outer ones. */
  notice({ config }: { config?: RouteConfig<Req> }): void {
    const rateLimit = config?.rateLimit
    if (config === undefined || rateLimit === undefined || rateLimit === false) return
    // The route for HEAD that Fastify adds has the same config, and shares the gate.
    config[this.#own] ??= this.#gate.with(rateLimit)
    if (hasOwnLimits(rateLimit)) config[OWNER] = this.#gate
  }

  /** Undefined if the route goes without, or if another plugin decides about it. */
  gateOf(given: object | undefined): Gate<Req, NodeResponse> | undefined {
    const config = given as RouteConfig<Req> | undefined
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

  /** Of a route that was made before the plugin was loaded, as where its registration is not awaited. By now HEAD has a config of its own. */
  #lateGate({ url }: RouteConfig<Req>, rateLimit: object): Gate<Req, NodeResponse> {
    const byUrl = this.#late.get(rateLimit) ?? new Map<string | undefined, Gate<Req, NodeResponse>>()
    this.#late.set(rateLimit, byUrl)
    const gate = byUrl.get(url) ?? this.#gate.with(rateLimit)
    byUrl.set(url, gate)
    return gate
  }
}
