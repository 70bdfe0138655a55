/**
 * Headers in which proxies tell the address of a client. A client can send any of them itself, so
 * that none is believed unless it came from a proxy of ours.
 */

/** Lists, to which each proxy appends. */
const LISTS = ['x-forwarded-for', 'forwarded', 'x-forwarded', 'forwarded-for', 'x-original-forwarded-for']

/** One address, which a proxy or a provider sets. */
const SINGLE = [
  'x-real-ip',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
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
  'x-azure-socketip',
  'x-envoy-external-address',
  'x-nf-client-connection-ip',
  'x-vercel-forwarded-for',
  'do-connecting-ip',
  'ali-cdn-real-ip',
  'incap-client-ip',
  'x-sucuri-clientip',
  'proxy-client-ip',
  'wl-proxy-client-ip',
]

export const ADDRESS_HEADERS: readonly string[] = [...LISTS, ...SINGLE]

export function isAddressList(name: string): boolean {
  return LISTS.includes(name.toLowerCase())
}

/** The line to write instead of a header as a key; undefined if it carries no address. */
export function byIpInstead(name: string): string | undefined {
  const field = name.toLowerCase()
  if (isAddressList(field)) return 'byIp({ trustProxy: 1 })'
  return SINGLE.includes(field) ? `byIp({ header: '${field}', from: ['10.0.0.0/8'] })` : undefined
}
