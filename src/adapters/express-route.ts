/** The route of a request of Express, which is known where the limits stand on the route. */
import { routeText } from '../http/route.ts'

interface Routed {
  readonly route?: { readonly path?: unknown; readonly methods?: Readonly<Record<string, boolean>> }
}

/**
 * The path of the route, or its pattern. The path of a router around it is left out: it may have
 * parameters, and of those only what the client wrote is known (`baseUrl`).
 */
export function expressRoute(request: object): string | undefined {
  const { route } = request as Routed
  return route === undefined ? undefined : routeText(Object.keys(route.methods ?? {}), String(route.path))
}
