/** Whom a request counts for: no header that a client can send may change it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ADDRESS_HEADERS, isAddressList } from '../../src/http/address-headers.ts'
import { byIp } from '../../src/http/by-ip.ts'
import { byHeader, byUser, everyone } from '../../src/http/keys.ts'
import type { HttpRequest } from '../../src/http/request.ts'

const SEED = { seed: 20_261_115, numRuns: 3_000 }

function requestOf(address: string | undefined, headers: Record<string, string> = {}): HttpRequest {
  return { address, header: (name) => headers[name] }
}

function keyOf(options: Parameters<typeof byIp>[0], address: string | undefined, forwarded?: string): string {
  return byIp(options)(undefined, requestOf(address, forwarded === undefined ? {} : { 'x-forwarded-for': forwarded }))
}

/** What a client may write before the trusted proxies append. */
const written = fc.oneof(
  fc.string(),
  fc.ipV4(),
  fc.ipV6(),
  fc
    .array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('', ' ', 'unknown', '127.0.0.1', '10.0.0.1', '::1', '[::1]:80', '_x')), {
      maxLength: 6,
    })
    .map((list) => list.join(', ')),
)
const address = fc.oneof(fc.ipV4(), fc.ipV6())

describe('for any headers a client sends', () => {
  test('the socket alone makes the key where nobody is trusted', () => {
    fc.assert(
      fc.property(address, written, (peer, forged) => {
        expect(keyOf({}, peer, forged)).toBe(keyOf({}, peer))
      }),
      SEED,
    )
  })

  test('the addresses that so many trusted proxies appended make the key, and nothing before them', () => {
    fc.assert(
      fc.property(written, fc.array(address, { minLength: 1, maxLength: 4 }), address, (forged, appended, peer) => {
        const options = { trustProxy: appended.length }
        const honest = appended.join(', ')
        expect(keyOf(options, peer, `${forged}, ${honest}`)).toBe(keyOf(options, peer, honest))
        expect(keyOf(options, peer, honest)).toBe(keyOf({}, appended[0]))
      }),
      SEED,
    )
  })

  test('a proxy that hides its client hides nothing behind what the client wrote', () => {
    fc.assert(
      fc.property(written, fc.constantFrom('unknown', '_gazonk', '', 'for=1.2.3.4', '999.1.1.1'), address, (forged, hidden, peer) => {
        expect(keyOf({ trustProxy: 1 }, peer, `${forged}, ${hidden}`)).toBe(keyOf({}, peer))
      }),
      SEED,
    )
  })

  test('the first address outside the trusted networks makes the key', () => {
    const trusted = fc.integer({ min: 0, max: 255 }).map((n) => `10.1.2.${n}`)
    const outside = fc.ipV4().filter((text) => !text.startsWith('10.'))
    fc.assert(
      fc.property(written, outside, fc.array(trusted, { maxLength: 3 }), trusted, (forged, client, hops, peer) => {
        const options = { trustProxy: ['10.0.0.0/8'] }
        expect(keyOf(options, peer, [forged, client, ...hops].join(','))).toBe(`ip:${client}`)
        // A client that connects by itself is not believed anything.
        expect(keyOf(options, client, forged)).toBe(`ip:${client}`)
      }),
      SEED,
    )
  })

  test('no address of a client leaves its network of 56 bits', () => {
    fc.assert(
      fc.property(fc.nat(0xff), fc.array(fc.nat(0xffff), { minLength: 4, maxLength: 4 }), (subnet, low) => {
        const host = low.map((group) => group.toString(16)).join(':')
        const address = `2001:db8:1:${(0x200 + subnet).toString(16)}:${host}`
        expect(keyOf({}, address)).toBe('ip:2001:db8:1:200::/56')
        expect(keyOf({ ipv6Subnet: 48 }, address)).toBe('ip:2001:db8:1::/48')
      }),
      SEED,
    )
  })
})

describe('byIp', () => {
  test.each([
    ['fewer entries than proxies: some were gone around', { trustProxy: 2 }, '192.0.2.1', '203.0.113.9', 'ip:192.0.2.1'],
    ['no header at all', { trustProxy: 1 }, '192.0.2.1', undefined, 'ip:192.0.2.1'],
    ['a socket without an address, behind a proxy', { trustProxy: 1 }, undefined, '203.0.113.9', 'ip:203.0.113.9'],
    ['a list, and a socket without an address', { trustProxy: ['loopback'] }, undefined, '203.0.113.9', 'ip:unknown'],
    ['everybody in the chain is trusted', { trustProxy: ['private'] }, '10.0.0.1', '10.0.0.3, 10.0.0.2', 'ip:10.0.0.3'],
    ['a mapped socket in a list', { trustProxy: ['127.0.0.1'] }, '::ffff:127.0.0.1', '203.0.113.9', 'ip:203.0.113.9'],
    ['a client behind NAT64', {}, '64:ff9b::203.0.113.9', undefined, 'ip:203.0.113.9'],
    ['a client behind NAT64 and a proxy', { trustProxy: 1 }, '192.0.2.1', '64:ff9b::203.0.113.9', 'ip:203.0.113.9'],
    ['a network of 64 bits', { ipv6Subnet: 64 }, '2001:db8:1:2::1', undefined, 'ip:2001:db8:1:2::/64'],
    ['whole addresses', { ipv6Subnet: 128 }, '2001:db8::1', undefined, 'ip:2001:db8::1'],
  ])('%s', (_name, options, peer, forwarded, expected) => {
    expect(keyOf(options, peer, forwarded)).toBe(expected)
  })

  test.each([
    [{ trustProxy: true }, 'trustProxy true must be how many proxies'],
    [{ trustProxy: -1 }, 'trustProxy -1 must be'],
    [{ trustProxy: 1.5 }, 'trustProxy 1.5 must be'],
    [{ trustProxy: [] }, 'trustProxy [] must be'],
    [{ trustProxy: '10.0.0.0/8' }, 'trustProxy "10.0.0.0/8" must be'],
    [{ trustProxy: ['10.0.0.0/8', 'nowhere'] }, 'trustProxy: "nowhere" must be'],
    [{ ipv6Subnet: 0 }, 'ipv6Subnet 0 must be a whole number from 1 to 128'],
    [{ ipv6Subnet: 129 }, 'ipv6Subnet 129 must be'],
    [{ trustproxy: 1 }, 'is not an option'],
  ])('refuses %j', (options, message) => {
    expect(() => byIp(options as never)).toThrow(message)
  })
})

describe('byIp of a header', () => {
  const options = { header: 'CF-Connecting-IP', from: ['10.0.0.0/8', 'fd00::/8'] }
  const of = (peer: string | undefined, value?: string) =>
    byIp(options)(undefined, requestOf(peer, value === undefined ? {} : { 'cf-connecting-ip': value, 'x-forwarded-for': '1.2.3.4' }))

  test.each([
    ['from a proxy', '10.0.0.1', '203.0.113.9', 'ip:203.0.113.9'],
    ['from a proxy, whose address is mapped', '::ffff:10.0.0.1', '203.0.113.9', 'ip:203.0.113.9'],
    ['an IPv6 address, by its network', 'fd00::1', '2001:db8:1:2ff::1', 'ip:2001:db8:1:200::/56'],
    ['an address with a port', '10.0.0.1', '203.0.113.9:4711', 'ip:203.0.113.9'],
    ['from elsewhere', '192.0.2.1', '203.0.113.9', 'ip:192.0.2.1'],
    ['not there', '10.0.0.1', undefined, 'ip:10.0.0.1'],
    ['empty', '10.0.0.1', '', 'ip:10.0.0.1'],
    ['two addresses', '10.0.0.1', '198.51.100.1, 203.0.113.9', 'ip:10.0.0.1'],
    ['no address', '10.0.0.1', 'unknown', 'ip:10.0.0.1'],
    ['a very long text', '10.0.0.1', `203.0.113.9${' '.repeat(5_000)}`, 'ip:10.0.0.1'],
    ['nobody knows from whom', undefined, '203.0.113.9', 'ip:unknown'],
  ])('%s', (_name, peer, value, expected) => {
    expect(of(peer, value)).toBe(expected)
  })

  test('believes nothing that clients write to others than the proxies', () => {
    const outside = fc.ipV4().filter((text) => !text.startsWith('10.'))
    fc.assert(
      fc.property(outside, written, (peer, forged) => {
        expect(of(peer, forged)).toBe(`ip:${peer}`)
      }),
      SEED,
    )
    fc.assert(
      fc.property(address, (client) => {
        expect(of('10.0.0.1', client)).toBe(keyOf({}, client))
      }),
      SEED,
    )
  })

  test.each([
    [
      { header: 'cf-connecting-ip' },
      "byIp: from undefined must be a list of the networks of the proxies that set cf-connecting-ip themselves, each written like '10.0.0.0/8'",
    ],
    [{ header: 'cf-connecting-ip', from: [] }, 'from [] must be a list'],
    [{ header: 'cf-connecting-ip', from: '10.0.0.0/8' }, 'from "10.0.0.0/8" must be a list'],
    [{ header: 'cf-connecting-ip', from: ['cloudflare'] }, 'from: "cloudflare" must be'],
    [{ from: ['10.0.0.0/8'] }, 'header undefined must be the name of a header'],
    [{ header: 'real ip', from: ['10.0.0.0/8'] }, 'header "real ip" must be'],
    [{ header: 'X-Forwarded-For', from: ['10.0.0.0/8'] }, 'is a list, to which each proxy appends: say byIp({ trustProxy: 1 })'],
    [{ header: 'x-real-ip', from: ['10.0.0.0/8'], trustProxy: 1 }, 'exclude each other'],
  ])('refuses %j', (wrong, message) => {
    expect(() => byIp(wrong as never)).toThrow(expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining(message) }))
  })
})

describe('everyone', () => {
  test('is one key for all', () => {
    expect(new Set([everyone(), everyone()])).toEqual(new Set(['everyone']))
  })
})

describe('byHeader and byUser', () => {
  test('make keys that cannot be taken for each other', () => {
    const http = requestOf('203.0.113.9', { 'x-api-key': 'ip:203.0.113.9' })
    expect(byHeader('X-API-Key')(undefined, http)).toBe('x-api-key:ip:203.0.113.9')
    expect(byUser(() => 'ip:203.0.113.9')(undefined, http)).toBe('user:ip:203.0.113.9')
    expect(byUser(() => 42)(undefined, http)).toBe('user:42')
  })

  test('fall back to the address, or to what they are told', () => {
    const http = requestOf('203.0.113.9')
    expect(byHeader('x-api-key')(undefined, http)).toBe('ip:203.0.113.9')
    expect(byUser(() => undefined)(undefined, http)).toBe('ip:203.0.113.9')
    expect(byUser(() => null, { otherwise: () => 'guests' })(undefined, http)).toBe('guests')
  })

  test('wait for an id that has to be looked up', async () => {
    expect(await byUser(async () => 'ann')(undefined, requestOf('203.0.113.9'))).toBe('user:ann')
    expect(await byUser(async () => undefined)(undefined, requestOf('203.0.113.9'))).toBe('ip:203.0.113.9')
  })

  test.each<readonly [string, string]>([
    ['x-forwarded-for', 'byIp({ trustProxy: 1 })'],
    ['Forwarded', 'byIp({ trustProxy: 1 })'],
    ...[
      ...ADDRESS_HEADERS.filter((name) => !isAddressList(name)),
      ...[
        'CF-Connecting-IP',
        'cf-connecting-ipv6',
        'cf-pseudo-ipv4',
        'cdn-src-ip',
        'x-originating-ip',
        'x-forwarded-ip',
        'x-ip',
        'x_real_ip',
      ],
      ...['x-arr-clientip', 'x-azure-socketip', 'x-realip', 'x-ms-forwarded-client-ip', 'proxy-client-ip', 'x-vercel-proxied-for'],
      ...['x-appengine-remote-addr', 'Remote-Addr', 'REMOTE_ADDR', 'x-remote-address', 'x-ip-address', 'z-forwarded-for'],
    ].map((name) => [name, `byIp({ header: '${name.toLowerCase()}', from: [/* networks of the proxies that set it */] })`] as const),
  ])('%s is no key: any client can write it', (name, instead) => {
    const message = `byHeader: "${name}" carries addresses, and any client can write it: say ${instead}`
    expect(() => byHeader(name)).toThrow(expect.objectContaining({ code: 'CONFIG', message }))
  })

  // Set by oauth2-proxy, Envoy and CloudFront, or by whatever checked the key before.
  test.each(['x-forwarded-user', 'x-forwarded-email', 'x-forwarded-client-cert', 'x-forwarded-host', 'cloudfront-viewer-country'])(
    '%s may be a key: it carries no address',
    (name) => void byHeader(name),
  )

  test.each(['x-api-key', 'x-tenant-ip-plan', 'x-wallet-address', 'x-email-address', 'x-membership', 'x-zip', 'x-client-id', 'x-device'])(
    '%s may be a key',
    (name) => void byHeader(name),
  )

  test('refuse what is no header and no function', () => {
    expect(() => byHeader('x api key')).toThrow('byHeader: "x api key" must be the name of a header')
    expect(() => byUser('id' as never)).toThrow('byUser: "id" must be a function')
    expect(() => byUser(() => 1, { otherwise: 'ip' as never })).toThrow('otherwise "ip" must be a function')
  })
})
