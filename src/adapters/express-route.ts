/** A request of Express, which knows its route where the limits stand on the route. */
import { routeText } from '../http/route.ts'
import { Incoming, type NodeRequest } from './incoming.ts'

interface Routed {
  readonly baseUrl?: string
  readonly route?: { readonly path?: unknown; readonly methods?: Readonly<Record<string, boolean>> }
}

export class ExpressRequest extends Incoming {
  readonly #request: Routed

  constructor(request: NodeRequest) {
    super(request)
    this.#request = request as Routed
  }

  /**
   * The path of the route, or its pattern. A router may itself be at a path with parameters, of which only what the client wrote is known
   * (`baseUrl`): that is left out.
   */
  override get route(): string | undefined {
    const { route } = this.#request
    return route === undefined ? undefined : routeText(Object.keys(route.methods ?? {}), String(route.path))
  }
}
