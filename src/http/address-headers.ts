/**
 * Headers in which proxies tell the address of a client. A client can send any of them itself, so
 * that none is believed unless it came from a proxy of ours.
 */

/** Lists, to which each proxy appends. */
const LISTS = ['x-forwarded-for', 'forwarded', 'x-forwarded', 'forwarded-for', 'x-original-forwarded-for']

/** Where one of these is seen, a proxy stands in front. */
export const ADDRESS_HEADERS: readonly string[] = [
  ...LISTS,
  'x-real-ip',
  'cf-connecting-ip',
  'true-client-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'client-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-remote-ip',
  'x-remote-addr',
  'x-appengine-user-ip',
  'x-azure-clientip',
  'x-envoy-external-address',
  'x-nf-client-connection-ip',
  'x-vercel-forwarded-for',
  'do-connecting-ip',
  'ali-cdn-real-ip',
  'incap-client-ip',
  'x-sucuri-clientip',
  'wl-proxy-client-ip',
  'cloudfront-viewer-address',
]

/**
 * The names of headers with an address end like this: `x-real-ip`, `cf-connecting-ipv6`,
 * `x-azure-clientip`, `remote-addr`, `x-vercel-forwarded-for`. Not `x-forwarded-user`,
 * `x-tenant-ip-plan` or `x-wallet-address`.
 */
const WHOSE = 'client|remote|viewer|peer|real|source|src|external|origin|socket'
const CARRIES_ADDRESS = new RegExp(`(^|[-_])((${WHOSE})?ip(v?[46])?|(${WHOSE}|ip)[-_]?addr(ess)?|forwarded|(forwarded|proxied)[-_]for)$`)

export function isAddressList(name: string): boolean {
  return LISTS.includes(name.toLowerCase())
}

/** The line to write instead of a header as a key; undefined if it carries no address. */
export function byIpInstead(name: string): string | undefined {
  const field = name.toLowerCase()
  if (isAddressList(field)) return 'byIp({ trustProxy: 1 })'
  return CARRIES_ADDRESS.test(field) ? `byIp({ header: '${field}', from: [/* networks of the proxies that set it */] })` : undefined
}
