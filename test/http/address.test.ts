/**
 * Addresses, read from sockets and headers, and the networks they are in: by tapes, and against
 * Node's own parser on random text.
 */
import { BlockList, isIPv4, isIPv6, SocketAddress } from 'node:net'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { addressIn, addressText, contains, holdAll, networksOf } from '../../src/http/address.ts'

const SEED = { seed: 20_261_115, numRuns: 2_000 }
const textOf = (entry: string, bits = 128): string | undefined => {
  const address = addressIn(entry)
  return address && addressText(address, bits)
}

describe('an address in a header is read', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    [' 203.0.113.9\t', '203.0.113.9'],
    ['203.0.113.9:4711', '203.0.113.9'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['::FFFF:cb00:7109', '203.0.113.9'],
    ['[::ffff:203.0.113.9]:80', '203.0.113.9'],
    ['2001:DB8::1', '2001:db8::1'],
    ['[2001:db8::1]', '2001:db8::1'],
    ['[2001:db8::1]:65535', '2001:db8::1'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]:80', 'fe80::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['::', '::'],
    ['::1', '::1'],
    ['64:ff9b::192.0.2.33', '192.0.2.33'],
    ['64:ff9b:1:fffe::192.0.2.33', '192.0.2.33'],
    ['2002:c000:221::1', '192.0.2.33'],
    ['64:ff9b:0:0:1::192.0.2.33', '64:ff9b::1:0:c000:221'],
    ['2003:c000:221::1', '2003:c000:221::1'],
  ])('%s as %s', (entry, expected) => {
    expect(textOf(entry)).toBe(expected)
  })

  test.each([
    ...[
      '',
      ' ',
      'unknown',
      '_hidden',
      '1.2.3',
      '1.2.3.4.5',
      '256.1.1.1',
      '01.2.3.4',
      '1.2.3.4:',
      '1.2.3.4:123456',
      '1.2.3.4:http',
      '1.2.3.-4',
    ],
    ...[
      '1.2.3.4 5',
      '0x7f.0.0.1',
      '2130706433',
      ':',
      ':::',
      '1::2::3',
      '1:2:3:4:5:6:7',
      '1:2:3:4:5:6:7:8:9',
      '1:2:3:4:5:6:7::8:9',
      '12345::',
    ],
    ...[
      'g::1',
      '[::1',
      '::1]',
      '[::1]x',
      '[::1]:',
      '[1.2.3.4]',
      '::1.2.3',
      '::1.2.3.4:5',
      '1.2.3.4::',
      'ip:1.2.3.4',
      '"1.2.3.4"',
      '1'.repeat(5000),
    ],
  ])('but not %j', (entry) => {
    expect(textOf(entry)).toBeUndefined()
  })

  test('as Node reads it, for any text that looks like one', () => {
    const piece = fc.constantFrom('0', '1', '255', '256', 'ff', 'abcd', '12345', '.', ':', '::', '.', ':', '1.2.3.4', 'ffff', 'g', '')
    const nearly = fc.oneof(fc.array(piece, { maxLength: 17 }), fc.array(piece, { maxLength: 4 })).map((pieces) => pieces.join(''))
    fc.assert(
      fc.property(fc.oneof(nearly, fc.ipV4(), fc.ipV6()), (text) => {
        // A port is no address to Node.
        fc.pre(!/^[^:]*:[^:]*$/.test(text))
        expect(addressIn(text) !== undefined).toBe(isIPv4(text) || isIPv6(text))
      }),
      SEED,
    )
  })

  test('and written as Node writes it', () => {
    fc.assert(
      fc.property(fc.ipV6(), (text) => {
        const written = textOf(text) as string
        if (isIPv4(written)) expect(new SocketAddress({ address: text, family: 'ipv6' }).address).toBe(`::ffff:${written}`)
        // Node writes what looks like an embedded IPv4 address with dots; ours is all hexadecimal,
        // and the same address.
        else expect(addressIn(new SocketAddress({ address: written, family: 'ipv6' }).address)).toEqual(addressIn(text))
      }),
      SEED,
    )
  })

  test('and never fails, whatever stands there', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: 'binary' })), (text) => {
        addressIn(text)
      }),
      SEED,
    )
  })
})

describe('a key holds', () => {
  test.each([
    ['2001:db8:1:2:3:4:5:6', 64, '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6', 56, '2001:db8:1::/56'],
    ['2001:db8:1:2ff:3:4:5:6', 56, '2001:db8:1:200::/56'],
    ['2001:db8:1:2:3:4:5:6', 48, '2001:db8:1::/48'],
    ['2001:db8:1:2:3:4:5:6', 1, '::/1'],
    ['ffff::', 3, 'e000::/3'],
    ['::ffff:1.2.3.4', 64, '1.2.3.4'],
  ])('%s in its network of %i bits', (entry, bits, expected) => {
    expect(textOf(entry, bits)).toBe(expected)
  })
})

describe('networks', () => {
  test('hold what Node says they hold', () => {
    const network = fc.oneof(
      fc.record({ address: fc.ipV4(), bits: fc.integer({ min: 0, max: 32 }), family: fc.constant('ipv4' as const) }),
      fc.record({ address: fc.ipV6(), bits: fc.integer({ min: 0, max: 128 }), family: fc.constant('ipv6' as const) }),
    )
    fc.assert(
      fc.property(network, fc.oneof(fc.ipV4(), fc.ipV6()), fc.boolean(), ({ address, bits, family }, other, near) => {
        const list = new BlockList()
        list.addSubnet(address, bits, family)
        const probe = near ? address : other
        // Node takes mapped addresses for IPv4 ones only on one side; ours are the same on both.
        fc.pre(family === 'ipv4' || !/^(::ffff:|0:0:0:0:0:ffff)/i.test(addressText(addressIn(address) ?? [], 128)))
        const first = addressIn(address) as readonly number[]
        const wide = family === 'ipv4' ? bits + 96 : bits
        const found = contains({ first, bits: wide }, addressIn(probe) as readonly number[])
        const isSameFamily = isIPv4(probe) === (family === 'ipv4')
        if (isSameFamily) expect(found).toBe(list.check(probe, family))
      }),
      SEED,
    )
  })

  test.each([
    ['10.0.0.0/33', 'must have a length of 0 to 32'],
    ['fd00::/129', 'must have a length of 0 to 128'],
    ['10.0.0.1/8', 'has bits beyond its length'],
    ['ten', "must be 'loopback', 'private', an address, or a network"],
    ['1.2.3.4:80', "must be 'loopback'"],
    [7 as unknown as string, 'trustProxy: 7 must be'],
  ])('%s is refused', (text, rule) => {
    expect(() => networksOf(text, 'trustProxy')).toThrow(rule)
  })
})

test.each([
  [true, ['0.0.0.0/0']],
  [true, ['::/0']],
  [true, ['0.0.0.0/1', '128.0.0.0/1']],
  [true, ['0.0.0.0/1', '128.0.0.0/2', '192.0.0.0/2', '10.0.0.0/8']],
  [true, ['::/1', '8000::/1', 'fd00::/8']],
  [false, ['0.0.0.0/1', '0.0.0.0/1']],
  [false, ['128.0.0.0/1', '128.0.0.0/2', '192.0.0.0/2', '10.0.0.0/8']],
  [false, ['loopback', 'private']],
  [false, ['::/1', '::/2', '4000::/2']],
])('%s: all addresses are in %j', (isAll, texts) => {
  expect(holdAll(texts.flatMap((text) => networksOf(text, 'trustProxy')))).toBe(isAll)
})
