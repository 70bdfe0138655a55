/**
 * The route of a request of Koa, by what @koa/router says in its context. It is known where the
 * limits stand on the route.
 */
import { routeText } from '../http/route.ts'

interface Routed {
  readonly method?: string
  /** Of the layer at work. */
  readonly routerPath?: unknown
  readonly matched?: readonly { readonly path?: unknown; readonly methods?: readonly string[] }[]
}

/** Undefined before the router, and in what `router.use` was given: a middleware has no methods. */
export function koaRoute(ctx: object): string | undefined {
  const { method = '', routerPath, matched } = ctx as Routed
  const route = matched?.find(({ path, methods }) => path === routerPath && methods?.includes(method))
  return route && routeText(route.methods, String(route.path))
}
