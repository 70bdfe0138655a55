/**
 * Set-ups that look right and limit the wrong thing. Each is explained once in a process, under a
 * code that can be searched for.
 */
import { warnOnce } from '../errors.ts'
import { MISUSE } from '../limiter/misuse.ts'

export type WarningCode =
  // requests come through a proxy, and are counted by its address, which all clients share
  | 'SLUICE_BEHIND_PROXY'
  // headers are believed from all addresses: clients choose their own keys
  | 'SLUICE_TRUSTS_EVERYONE'
  // the runtime tells no address: all clients share one key
  | 'SLUICE_NO_ADDRESS'
  // byRoute() was asked where no route is known: all such requests share one key
  | 'SLUICE_NO_ROUTE'
  // byUser() was asked before users are signed in: they are counted by something else
  | 'SLUICE_USER_CAME_LATE'
  // the middleware is made anew for each request: nothing is ever limited
  | 'SLUICE_LIMITER_PER_REQUEST'
  // two limiters have one name
  | 'SLUICE_SAME_NAME'
  // several processes, each with a memory of its own: together they admit several times the limit
  | 'SLUICE_MEMORY_PER_PROCESS'
  // handlers of WebSockets or microservices, which the guard of Nest does not limit
  | 'SLUICE_NEST_UNLIMITED'
  // what refundWhen wanted back could not be given back
  | 'SLUICE_REFUND_FAILED'
  // what settle said that a request cost could not be charged
  | 'SLUICE_SETTLE_FAILED'
  // a handler was not done long after its response had ended
  | 'SLUICE_HELD_TOO_LONG'
  // onLimited threw
  | 'SLUICE_ON_LIMITED_FAILED'
  // onNearLimit threw
  | 'SLUICE_ON_NEAR_LIMIT_FAILED'
  // something threw in shadow, where no request is refused for it
  | 'SLUICE_SHADOW_FAILED'

const HELP: Readonly<Record<WarningCode, string>> = {
  ...MISUSE,
  SLUICE_BEHIND_PROXY:
    "A request came from a nearby machine, with X-Forwarded-For, Forwarded, X-Real-IP or another header in which proxies tell the client's address, and was counted by that machine's own: there seems to be a proxy in front, and all clients behind it share one limit. Let it append to X-Forwarded-For, the only one of these that is read unless you name another, and say which proxies are yours: by the framework's setting (app.set('trust proxy', 1) of Express, trustProxy: ['10.0.0.0/8'] of Fastify, proxy: true with maxIpsCount: 1 of Koa), or by byIp({ trustProxy: 1 }) or byIp({ trustProxy: ['10.0.0.0/8'] }).",
  SLUICE_TRUSTS_EVERYONE:
    'The networks of proxies hold all addresses, so that headers are believed from every sender, and every client can choose the address it is limited by. Name the networks of your proxies, or how many there are.',
  SLUICE_NO_ADDRESS:
    'A request has no address, so that it shares one limit with all others that have none. Where all requests come through a proxy, say byIp({ trustProxy: 1 }); where the platform tells the address elsewhere, give the adapter `address`; or choose another key.',
  SLUICE_NO_ROUTE:
    'byRoute() was asked for a request whose route is not known, so that all such requests share one limit. In Express, and in Koa with @koa/router, the limits belong on the routes: app.get(path, rateLimit({ ... }), handler). node:http and fetch have no routes: choose another key.',
  SLUICE_USER_CAME_LATE:
    'A request had no user when byUser() was asked, and had one at its end: users are signed in after the limits, and counted by what `otherwise` says. Put the limits behind whatever signs users in: in Fastify by hook: "preHandler", in Nest by @UseGuards(AuthGuard, RateLimitGuard).',
  SLUICE_NEST_UNLIMITED:
    'RateLimitModule limits handlers of HTTP and GraphQL, and not those of WebSockets and microservices. Ask a limiter in them, and say @SkipLimit() on them.',
  SLUICE_REFUND_FAILED:
    'refundWhen, or a refund that it asked for, failed, so that what was taken stays taken. The cause is its error or that of the store.',
  SLUICE_SETTLE_FAILED:
    'settle failed, or the store did when it was told what a request cost, so that what was charged first stays charged. The cause is its error or that of the store.',
  SLUICE_HELD_TOO_LONG:
    'A handler was still running maxHoldMs after its response had ended, so that its place was given to another: more handlers run than the limit says. Handlers should end when their client has left: request.rateLimit.signal, or the signal of the request, can be given to what they call.',
  SLUICE_ON_LIMITED_FAILED: 'onLimited failed. The request was answered as if it had not. The cause is its error.',
  SLUICE_ON_NEAR_LIMIT_FAILED: 'onNearLimit failed. The request was answered as if it had not. The cause is its error.',
  SLUICE_SHADOW_FAILED:
    'A decision in shadow failed, and the request passed. Without shadow it would be an error. The cause is the error of the key, the cost, the plan or the store.',
}

/** `about`: what it is about, where each case wants its own explanation. */
export function explainOnce(code: WarningCode, about = '', cause?: unknown): void {
  warnOnce(code, about === '' ? HELP[code] : `${HELP[code]} (${about})`, cause)
}
