/** Whom a request counts for: no header that a client can send may change it. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byHeader, byIp, byUser } from '../../src/http/keys.ts'
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

  test('refuse what is no header and no function', () => {
    expect(() => byHeader('x api key')).toThrow('byHeader: "x api key" must be the name of a header')
    expect(() => byUser('id' as never)).toThrow('byUser: "id" must be a function')
    expect(() => byUser(() => 1, { otherwise: 'ip' as never })).toThrow('otherwise "ip" must be a function')
  })
})
