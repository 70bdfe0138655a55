/** The client's address as a key. */
import { onlyKnown } from '../algorithms/rate.ts'
import { SluiceError, shown } from '../errors.ts'
import { type Address, addressIn, addressText, contains, holdAll, isNearby, type Network, networksOf } from './address.ts'
import { ADDRESS_HEADERS, isAddressList } from './address-headers.ts'
import { isHeaderName } from './fields.ts'
import { clientAddress, type Trust } from './forwarded.ts'
import { type AnyRequest, ClientLeft, type HttpRequest } from './request.ts'
import { shortKey, shortKeys } from './short-key.ts'
import { explainOnce } from './warnings.ts'

interface Subnet {
  /**
   * How many bits of an IPv6 address make one client: who has one address has its whole network. 1
   * to 128, default 56.
   */
  readonly ipv6Subnet?: number
}

interface ByProxies extends Subnet {
  /**
   * The proxies whose `X-Forwarded-For` is believed. A number: so many proxies stand in front, each
   * appending one entry. A list: the networks they are in, such as `['10.0.0.0/8', 'fd00::/8']`;
   * `'loopback'` and `'private'` name the usual ones. Default: those that the framework trusts
   * (`trust proxy` of Express, `trustProxy` of Fastify, `proxy` of Koa), or none.
   */
  readonly trustProxy?: number | readonly string[]
  readonly header?: undefined
  readonly from?: undefined
}

interface ByAddressHeader extends Subnet {
  /**
   * A header in which proxies tell one address, such as `'x-real-ip'`. It is believed if the
   * other end of the socket is in `from`; otherwise that end is counted.
   */
  readonly header: string
  /**
   * The networks of those proxies, written as in `trustProxy`. Only those that set the header, or
   * remove what a client wrote in it: one that passes it on lets clients write their address.
   */
  readonly from: readonly string[]
  readonly trustProxy?: undefined
}

export type ByIpOptions = ByProxies | ByAddressHeader

/** Finds the sender of a request, given the other end of its socket. */
type Finder = (http: HttpRequest, peer: Address | undefined) => Address | undefined

const MAX_HOPS = 100
/** Many providers give this to one customer: 256 networks of 64 bits. */
const DEFAULT_SUBNET = 56

/**
 * The client's address: the other end of the socket, or what trusted proxies tell of it. No other
 * header that a client sends changes it.
 */
export function byIp(options: ByIpOptions = {}): (native: AnyRequest, http: HttpRequest) => string {
  onlyKnown(options, ['ipv6Subnet', 'trustProxy', 'header', 'from'], 'byIp')
  const { header, from, trustProxy } = options
  const ipv6Bits = subnetOf(options.ipv6Subnet ?? DEFAULT_SUBNET)
  const finder = header === undefined && from === undefined ? finderBy(trustProxy) : finderIn(header, from, trustProxy)
  const keyOfRequest = finder === undefined ? rememberedKeys(ipv6Bits, trustProxy === undefined) : foundKeys(ipv6Bits, finder)
  const keyOf = (_native: AnyRequest, http: HttpRequest) => keyOfRequest(http)
  shortKeys.add(keyOf)
  return keyOf
}

function subnetOf(bits: number): number {
  if (Number.isInteger(bits) && bits >= 1 && bits <= 128) return bits
  throw new SluiceError('CONFIG', `ipv6Subnet ${shown(bits)} must be a whole number from 1 to 128`)
}

/** Undefined where no proxy is trusted by this option. */
function finderBy(trustProxy: ByIpOptions['trustProxy']): Finder | undefined {
  const trust = trustOf(trustProxy ?? 0)
  return trust === 0 ? undefined : (http, peer) => clientAddress(peer, http.header('x-forwarded-for'), trust)
}

function trustOf(trust: number | readonly string[]): Trust {
  if (Array.isArray(trust) && trust.length > 0) return networksIn(trust, 'trustProxy')
  if (Number.isInteger(trust) && (trust as number) >= 0 && (trust as number) <= MAX_HOPS) return trust as number
  throw new SluiceError(
    'CONFIG',
    `trustProxy ${shown(trust)} must be how many proxies stand in front (0 to ${MAX_HOPS}), or a list of their networks such as ['10.0.0.0/8']`,
  )
}

function networksIn(list: readonly string[], option: string): readonly Network[] {
  const networks = list.flatMap((text) => networksOf(text, option))
  if (holdAll(networks)) explainOnce('SLUICE_TRUSTS_EVERYONE', option)
  return networks
}

/** More than one address in the header, or none, is not believed. */
function finderIn(header: unknown, from: unknown, trustProxy: unknown): Finder {
  const field = headerOf(header)
  if (trustProxy !== undefined)
    throw invalid(`header ${shown(header)} and trustProxy ${shown(trustProxy)} exclude each other: say one of them`)
  if (!Array.isArray(from) || from.length === 0) {
    throw invalid(
      `from ${shown(from)} must be a list of the networks of the proxies that set ${field} themselves, each written like '10.0.0.0/8'`,
    )
  }
  const networks = networksIn(from, 'from')
  return (http, peer) => {
    if (peer === undefined || !networks.some((network) => contains(network, peer))) return peer
    return addressIn(http.header(field) ?? '') ?? peer
  }
}

function headerOf(header: unknown): string {
  if (!isHeaderName(header)) throw invalid(`header ${shown(header)} must be the name of a header`)
  if (isAddressList(header)) throw invalid(`header ${shown(header)} is a list, to which each proxy appends: say byIp({ trustProxy: 1 })`)
  return header.toLowerCase()
}

function invalid(rule: string): SluiceError {
  return new SluiceError('CONFIG', `byIp: ${rule}`)
}

/**
 * How many addresses a key is remembered for: those that call most are nearly always among them.
 */
const MAX_REMEMBERED = 1000

interface Client {
  readonly key: string
  readonly isNearby: boolean
}

/** Reading an address takes longer than deciding about it, and a client calls more than once. */
function rememberedKeys(ipv6Bits: number, asksFramework: boolean): (http: HttpRequest) => string {
  const remembered = new Map<string, Client>()
  const signs = new SignsOfProxies()
  const remember = (text: string) => {
    const address = addressIn(text)
    if (address === undefined) return undefined
    const client = { key: keyOfAddress(address, ipv6Bits), isNearby: isNearby(address) }
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    // The framework's answer is a piece of a header, which it would keep alive.
    remembered.set(shortKey(text), client)
    return client
  }
  const clientOf = (text: string | undefined) => (text === undefined ? undefined : (remembered.get(text) ?? remember(text)))
  return (http) => {
    const { address } = http
    const told = asksFramework ? http.clientAddress : undefined
    const found = told === address ? undefined : clientOf(told)
    if (found !== undefined) return found.key
    const peer = clientOf(address)
    if (peer === undefined) return keyOfNobody(http)
    if (peer.isNearby) signs.look(http)
    return peer.key
  }
}

function foundKeys(ipv6Bits: number, finder: Finder): (http: HttpRequest) => string {
  const signs = new SignsOfProxies()
  return (http) => {
    const peer = http.address === undefined ? undefined : addressIn(http.address)
    const sender = finder(http, peer)
    if (sender === undefined) return keyOfNobody(http)
    if (sender === peer && signs.areLookedFor && isNearby(peer)) signs.look(http)
    return keyOfAddress(sender, ipv6Bits)
  }
}

function keyOfAddress(address: Address, ipv6Bits: number): string {
  return `ip:${addressText(address, ipv6Bits)}`
}

/**
 * How many requests from nearby are looked at for signs of a proxy. If there is one, it is in front
 * of them all.
 */
const MAX_LOOKS = 100

/** Of requests that are counted by the address of a machine nearby. */
class SignsOfProxies {
  #looks = 0

  get areLookedFor(): boolean {
    return this.#looks < MAX_LOOKS
  }

  look(http: HttpRequest): void {
    if (!this.areLookedFor) return
    this.#looks += 1
    if (ADDRESS_HEADERS.some((name) => http.header(name) !== undefined)) explainOnce('SLUICE_BEHIND_PROXY')
  }
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
