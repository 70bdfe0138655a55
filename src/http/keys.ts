/**
 * The keys of requests. Each function says in its key what kind it is, so that a user named like an
 * address does not share its state.
 */

import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import { addressIn, addressText, holdAll, isNearby, networksOf } from './address.ts'
import { clientAddress, type Trust } from './forwarded.ts'
import { userLooks } from './late-users.ts'
import { type AnyRequest, ClientLeft, disregard, type HttpRequest, isPromise, type MaybePromise, whenKnown } from './request.ts'
import { shortKeys } from './short-key.ts'
import { explainOnce } from './warnings.ts'

/**
 * Finds the key of a request: `native` is the framework's own, `http` the same for every framework.
 * Of a long one the digest is the key.
 */
export type KeyFunction<Native = AnyRequest, Found = string> = (native: Native, http: HttpRequest) => MaybePromise<Found>

export interface ByIpOptions {
  /**
   * How many bits of an IPv6 address make one client: who has one address has its whole network. 1
   * to 128, default 56.
   */
  readonly ipv6Subnet?: number
  /**
   * The proxies whose `X-Forwarded-For` is believed. A number: so many proxies stand in front, each
   * appending one entry. A list: the networks they are in, such as `['10.0.0.0/8', 'fd00::/8']`;
   * `'loopback'` and `'private'` name the usual ones. Default 0: none.
   */
  readonly trustProxy?: number | readonly string[]
}

const MAX_HOPS = 100
/** Many providers give this to one customer: 256 networks of 64 bits. */
const DEFAULT_SUBNET = 56

/**
 * The client's address. Depends on nothing but the socket and what trusted proxies appended,
 * whatever headers a client sends.
 */
export function byIp(options: ByIpOptions = {}): (native: AnyRequest, http: HttpRequest) => string {
  onlyKnown(options, ['ipv6Subnet', 'trustProxy'], 'byIp')
  const ipv6Bits = subnetOf(options.ipv6Subnet ?? DEFAULT_SUBNET)
  const trust = trustOf(options.trustProxy ?? 0)
  const keyOfPeer = peerKeys(ipv6Bits)
  const keyOf =
    trust === 0
      ? (_native: AnyRequest, http: HttpRequest) => keyOfPeer(http)
      : (_native: AnyRequest, http: HttpRequest) => keyOfSender(http, trust, ipv6Bits)
  shortKeys.add(keyOf)
  return keyOf
}

function subnetOf(bits: number): number {
  if (Number.isInteger(bits) && bits >= 1 && bits <= 128) return bits
  throw new SluiceError('CONFIG', `ipv6Subnet ${shown(bits)} must be a whole number from 1 to 128`)
}

function trustOf(trust: number | readonly string[]): Trust {
  if (Array.isArray(trust) && trust.length > 0) {
    const networks = trust.flatMap(networksOf)
    if (holdAll(networks)) explainOnce('SLUICE_TRUSTS_EVERYONE')
    return networks
  }
  if (Number.isInteger(trust) && (trust as number) >= 0 && (trust as number) <= MAX_HOPS) return trust as number
  throw new SluiceError(
    'CONFIG',
    `trustProxy ${shown(trust)} must be how many proxies stand in front (0 to ${MAX_HOPS}), or a list of their networks such as ['10.0.0.0/8']`,
  )
}

/**
 * How many addresses a key is remembered for: those that call most are nearly always among them.
 */
const MAX_REMEMBERED = 1000
/**
 * How many requests from nearby are looked at for signs of a proxy. If there is one, it is in front
 * of them all.
 */
const MAX_LOOKS = 100
/** Only the first is ever read. */
const PROXY_HEADERS = ['x-forwarded-for', 'forwarded', 'x-real-ip', 'cf-connecting-ip']

interface Peer {
  readonly key: string
  readonly isNearby: boolean
}

/** Reading an address takes longer than deciding about it, and a client calls more than once. */
function peerKeys(ipv6Bits: number): (http: HttpRequest) => string {
  const remembered = new Map<string | undefined, Peer>()
  let looks = 0
  const remember = (text: string | undefined) => {
    const peer = text === undefined ? undefined : peerOf(text, ipv6Bits)
    if (peer === undefined) return undefined
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(text, peer)
    return peer
  }
  const look = (http: HttpRequest) => {
    looks += 1
    if (PROXY_HEADERS.some((name) => http.header(name) !== undefined)) explainOnce('SLUICE_BEHIND_PROXY')
  }
  return (http) => {
    const { address } = http
    const peer = remembered.get(address) ?? remember(address)
    if (peer === undefined) return keyOfNobody(http)
    if (peer.isNearby && looks < MAX_LOOKS) look(http)
    return peer.key
  }
}

function peerOf(text: string, ipv6Bits: number): Peer | undefined {
  const address = addressIn(text)
  return address && { key: `ip:${addressText(address, ipv6Bits)}`, isNearby: isNearby(address) }
}

function keyOfSender(http: HttpRequest, trust: Trust, ipv6Bits: number): string {
  const peer = http.address === undefined ? undefined : addressIn(http.address)
  const sender = clientAddress(peer, http.header('x-forwarded-for'), trust)
  return sender === undefined ? keyOfNobody(http) : `ip:${addressText(sender, ipv6Bits)}`
}

/**
 * Over HTTP/2 the address of a client that has left is not known any more. It counts for no client,
 * and needs no answer.
 */
function keyOfNobody({ hasLeft }: HttpRequest): string {
  if (hasLeft) throw new ClientLeft()
  explainOnce('SLUICE_NO_ADDRESS')
  return 'ip:unknown'
}

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
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~0-9a-z-]+$/i.test(name)) {
    throw new SluiceError('CONFIG', `byHeader: ${shown(name)} must be the name of a header`)
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
