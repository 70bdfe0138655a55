/**
 * IP addresses as text and as numbers. All are eight groups of 16 bits; an IPv4 address is the IPv6
 * address that maps it (`::ffff:1.2.3.4`), so that a client has one address whichever way its
 * connection is shown.
 */
import { SluiceError, shown } from '../errors.ts'

export type Address = readonly number[]

/**
 * The longest address there is, with a zone and a port, is shorter. Longer texts are no addresses.
 */
const MAX_LENGTH = 100

/**
 * The address in an entry of a header, or of a socket: with a port, in brackets, with a zone, or
 * bare. Undefined for anything else.
 */
export function addressIn(entry: string): Address | undefined {
  if (entry.length > MAX_LENGTH) return undefined
  const text = entry.trim()
  if (text.startsWith('[')) return inBrackets(text)
  // One colon parts an IPv4 address from its port; an IPv6 address has two at least, and no port
  // without brackets.
  const colon = text.indexOf(':')
  if (colon < 0) return ofIpv4(text)
  if (text.indexOf(':', colon + 1) < 0) return isPort(text.slice(colon + 1)) ? ofIpv4(text.slice(0, colon)) : undefined
  return ofIpv6(withoutZone(text))
}

function inBrackets(text: string): Address | undefined {
  const end = text.indexOf(']')
  if (end < 0) return undefined
  const rest = text.slice(end + 1)
  return rest === '' || (rest.startsWith(':') && isPort(rest.slice(1))) ? ofIpv6(withoutZone(text.slice(1, end))) : undefined
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text)
}

/** A zone names an interface of the machine that wrote it: it says nothing about the client. */
function withoutZone(text: string): string {
  const percent = text.indexOf('%')
  return percent < 0 ? text : text.slice(0, percent)
}

function ofIpv4(text: string): Address | undefined {
  const bits = ipv4Bits(text)
  return bits === undefined ? undefined : [0, 0, 0, 0, 0, 0xffff, bits >>> 16, bits & 0xffff]
}

/** Four numbers from 0 to 255. One with a leading zero is refused: some would read it as octal. */
function ipv4Bits(text: string): number | undefined {
  const parts = text.split('.')
  if (parts.length !== 4) return undefined
  let bits = 0
  for (const part of parts) {
    if (!/^(0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined
    bits = (bits << 8) | Number(part)
  }
  return bits
}

function ofIpv6(text: string): Address | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const [head, tail] = halves.map((half, k) => groupsOf(half, k === halves.length - 1))
  if (head === undefined || (halves.length === 2 && tail === undefined)) return undefined
  if (tail === undefined) return head.length === 8 ? head : undefined
  const missing = 8 - head.length - tail.length
  // '::' stands for one group of zeros at least.
  return missing < 1 ? undefined : [...head, ...new Array<number>(missing).fill(0), ...tail]
}

/**
 * The groups on one side of '::'. At the end of the whole the last may be written as an IPv4
 * address, which makes two.
 */
function groupsOf(text: string, isEnd: boolean): number[] | undefined {
  if (text === '') return []
  const parts = text.split(':')
  const last = parts[parts.length - 1] as string
  const bits = isEnd && last.includes('.') ? ipv4Bits(last) : undefined
  if (bits !== undefined) parts.splice(-1, 1, (bits >>> 16).toString(16), (bits & 0xffff).toString(16))
  if (!parts.every((part) => /^[0-9a-f]{1,4}$/i.test(part))) return undefined
  return parts.map((part) => Number.parseInt(part, 16))
}

/** An IPv4 address that an IPv6 address maps. */
function isIpv4(address: Address): boolean {
  return address[5] === 0xffff && address.slice(0, 5).every((group) => group === 0)
}

/** The address without its last bits: `bits` of them stay. */
function masked(address: Address, bits: number): Address {
  return address.map((group, k) => group & (0xffff << Math.min(16, Math.max(0, 16 * (k + 1) - bits))) & 0xffff)
}

/**
 * Where the IPv4 address of a client stands in the IPv6 address that a translator made of it, as
 * the index of its first group: NAT64 (RFC 6052, and RFC 8215 for use within a network) and 6to4
 * (RFC 3056). All clients behind one translator share the network that it writes them in.
 */
function ipv4Within(address: Address): number | undefined {
  if (isIpv4(address)) return 6
  const [first, second, third] = address
  if (first === 0x2002) return 1
  if (first !== 0x64 || second !== 0xff9b) return undefined
  return third === 1 || address.slice(2, 6).every((group) => group === 0) ? 6 : undefined
}

/**
 * How an address is written in a key: IPv4 with dots, IPv6 as the network of its first `ipv6Bits`
 * bits.
 */
export function addressText(address: Address, ipv6Bits: number): string {
  const at = ipv4Within(address)
  if (at !== undefined) {
    const [high, low] = address.slice(at) as [number, number]
    return `${high >>> 8}.${high & 255}.${low >>> 8}.${low & 255}`
  }
  const text = ipv6Text(masked(address, ipv6Bits))
  return ipv6Bits === 128 ? text : `${text}/${ipv6Bits}`
}

/**
 * As RFC 5952 writes it: lower case, no leading zeros, the longest run of two or more zeros as
 * '::'.
 */
function ipv6Text(address: Address): string {
  const { start, length } = longestZeros(address)
  const hex = address.map((group) => group.toString(16))
  if (length < 2) return hex.join(':')
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
}

function longestZeros(address: Address): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  for (let start = 0; start < 8; start++) {
    let end = start
    while (end < 8 && address[end] === 0) end++
    if (end - start > best.length) best = { start, length: end - start }
  }
  return best
}

/** All addresses that begin with the first `bits` bits of one. */
export interface Network {
  readonly first: Address
  readonly bits: number
}

const NAMED: Readonly<Record<string, readonly string[]>> = {
  loopback: ['127.0.0.0/8', '::1/128'],
  private: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '169.254.0.0/16', '100.64.0.0/10', 'fc00::/7', 'fe80::/10'],
}

/**
 * A network of a list: `'10.0.0.0/8'`, `'fd00::/8'`, one address, or a name for several. `option`
 * names the list in errors.
 */
export function networksOf(text: string, option: string): readonly Network[] {
  const named = Object.hasOwn(NAMED, text) ? (NAMED[text] as readonly string[]) : [text]
  return named.map((each) => networkOf(each, option))
}

function networkOf(text: string, option: string): Network {
  const [, written, length] = (typeof text === 'string' && /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i.exec(text)) || []
  // Neither a port nor brackets: those belong to headers.
  const first = written === undefined ? undefined : (ofIpv4(written) ?? ofIpv6(written))
  if (first === undefined) throw badNetwork(option, text, "must be 'loopback', 'private', an address, or a network such as '10.0.0.0/8'")
  const mapped = !(written as string).includes(':')
  const most = mapped ? 32 : 128
  const given = length === undefined ? most : Number(length)
  if (given > most) throw badNetwork(option, text, `must have a length of 0 to ${most}`)
  const bits = mapped ? given + 96 : given
  if (masked(first, bits).some((group, k) => group !== first[k]))
    throw badNetwork(option, text, 'has bits beyond its length: it is no network')
  return { first, bits }
}

function badNetwork(option: string, text: unknown, rule: string): SluiceError {
  return new SluiceError('CONFIG', `${option}: ${shown(text)} ${rule}`)
}

export function contains({ first, bits }: Network, address: Address): boolean {
  for (let k = 0; 16 * k < bits; k++) {
    const unused = Math.max(0, 16 * (k + 1) - bits)
    if ((address[k] as number) >>> unused !== (first[k] as number) >>> unused) return false
  }
  return true
}

/**
 * Whether networks hold all addresses of IPv4, or of IPv6, be it in pieces. Of two networks one is
 * within the other, or they have nothing in common.
 */
export function holdAll(networks: readonly Network[]): boolean {
  const isWithin = (network: Network, k: number) =>
    networks.some(
      (other, j) => j !== k && contains(other, network.first) && (other.bits < network.bits || (other.bits === network.bits && j < k)),
    )
  const outer = networks.filter((network, k) => !isWithin(network, k))
  const share = (of: readonly Network[], ofBits: number) => of.reduce((sum, { bits }) => sum + 2 ** (ofBits - bits), 0)
  const isIpv4 = ({ first, bits }: Network) => bits >= 96 && first[5] === 0xffff && first.slice(0, 5).every((group) => group === 0)
  return share(outer, 0) >= 1 || share(outer.filter(isIpv4), 96) >= 1
}

const NEAR = ['loopback', 'private'].flatMap((name) => networksOf(name, 'trustProxy'))

/**
 * Whether an address can only be that of a machine nearby: a proxy, not a client from the internet.
 */
export function isNearby(address: Address): boolean {
  return NEAR.some((network) => contains(network, address))
}
