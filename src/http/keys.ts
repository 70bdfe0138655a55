/**
 * The keys of requests. Each function says in its key what kind it is, so that a user named like an
 * address does not share its state.
 */

import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import { byIpInstead } from './address-headers.ts'
import { byIp } from './by-ip.ts'
import { isHeaderName } from './fields.ts'
import { userLooks } from './late-users.ts'
import { type AnyRequest, disregard, type HttpRequest, isPromise, type MaybePromise, whenKnown } from './request.ts'
import { shortKeys } from './short-key.ts'
import { explainOnce } from './warnings.ts'

/**
 * Finds the key of a request: `native` is the framework's own, `http` the same for every framework.
 * Of a long one the digest is the key.
 */
export type KeyFunction<Native = AnyRequest, Found = string> = (native: Native, http: HttpRequest) => MaybePromise<Found>

/** One key for all requests: a limit over all senders together. */
export function everyone(): string {
  return 'everyone'
}
shortKeys.add(everyone)

export interface OtherwiseOptions<Native> {
  /** The key of requests that do not say. Default: `byIp()`. */
  readonly otherwise?: KeyFunction<Native>
}

/**
 * The value of a header, such as an API key. Check it first: a client that may make up values makes
 * up keys.
 */
export function byHeader<Native = AnyRequest>(
  name: string,
  options: OtherwiseOptions<Native> = {},
): (native: Native, http: HttpRequest) => MaybePromise<string> {
  if (!isHeaderName(name)) {
    throw new SluiceError('CONFIG', `byHeader: ${shown(name)} must be the name of a header`)
  }
  const instead = byIpInstead(name)
  if (instead !== undefined) {
    throw new SluiceError('CONFIG', `byHeader: ${shown(name)} carries addresses, and any client can write it: say ${instead}`)
  }
  const field = name.toLowerCase()
  const otherwise = otherwiseOf(options, 'byHeader')
  return (native, http) => {
    const value = http.header(field)
    return value === undefined || value === '' ? otherwise(native, http) : `${field}:${value}`
  }
}

/**
 * The user who is signed in, by what the framework knows of the request:
 * `byUser((req) => req.user?.id)`.
 */
export function byUser<Native>(
  idOf: (native: Native) => MaybePromise<string | number | null | undefined>,
  options: OtherwiseOptions<Native> = {},
): (native: Native, http: HttpRequest) => MaybePromise<string> {
  if (typeof idOf !== 'function') throw new SluiceError('CONFIG', `byUser: ${shown(idOf)} must be a function from a request to an id`)
  const otherwise = otherwiseOf(options, 'byUser')
  const unknown = new WeakSet<object>()
  const keyOf = (native: Native, http: HttpRequest) =>
    whenKnown(idOf(native), (id) => {
      if (isId(id)) return `user:${id}`
      if (typeof native === 'object' && native !== null) unknown.add(native)
      return otherwise(native, http) as string
    })
  userLooks.set(keyOf, { cameLate: (native) => unknown.has(native) && isIdNow(idOf, native) })
  return keyOf
}

function isId(id: unknown): boolean {
  return id !== undefined && id !== null && id !== ''
}

/** Only where that is known at once: no request waits for it. */
function isIdNow<Native>(idOf: (native: Native) => unknown, native: Native): boolean {
  try {
    const id = idOf(native)
    disregard(id)
    return !isPromise(id) && isId(id)
  } catch {
    return false
  }
}

/**
 * The route that a request goes to, as the application wrote it down (`GET /users/:id`): however a
 * client writes its path, it is the same. Requests whose route is not known share one key.
 */
export function byRoute(): (native: AnyRequest, http: HttpRequest) => string {
  const keyOf = (_native: AnyRequest, { route }: HttpRequest) => (route === undefined ? keyOfNoRoute() : `route:${route}`)
  shortKeys.add(keyOf)
  return keyOf
}

function keyOfNoRoute(): string {
  explainOnce('SLUICE_NO_ROUTE')
  return 'route:unknown'
}

function otherwiseOf<Native>(options: OtherwiseOptions<Native>, what: string): KeyFunction<Native> {
  onlyKnown(options, ['otherwise'], what)
  const { otherwise = byIp() } = options
  if (typeof otherwise === 'function') return otherwise
  throw new SluiceError('CONFIG', `${what}: otherwise ${shown(otherwise)} must be a function such as byIp()`)
}
