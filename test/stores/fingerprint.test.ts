/**
 * Fingerprints of keys: the published function, and none of the patterns by which keys could be
 * chosen to fall together.
 */
import { describe, expect, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { fingerprint } from '../../src/stores/shared-memory/fingerprint.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Random } from '../model/random.ts'

function halvesOf(text: string, low: number, high: number): [number, number] {
  const halves = new Int32Array(2)
  fingerprint(text, low, high, halves)
  return [...halves] as [number, number]
}

/** HalfSipHash with 64 bits of output by its definition: byte by byte, in unsigned numbers. */
function slowHalves(bytes: readonly number[], low: number, high: number, rounds: number, finalRounds: number): [number, number] {
  const v = [low, high ^ 0xee, low ^ 0x6c_79_67_65, high ^ 0x74_65_64_62].map((word) => BigInt(word >>> 0)) as [
    bigint,
    bigint,
    bigint,
    bigint,
  ]
  const MASK = 0xff_ff_ff_ffn
  const rotated = (word: bigint, by: bigint) => ((word << by) | (word >> (32n - by))) & MASK
  const mix = (times: number) => {
    for (let k = 0; k < times; k++) {
      v[0] = (v[0] + v[1]) & MASK
      v[1] = rotated(v[1], 5n) ^ v[0]
      v[0] = rotated(v[0], 16n)
      v[2] = (v[2] + v[3]) & MASK
      v[3] = rotated(v[3], 8n) ^ v[2]
      v[0] = (v[0] + v[3]) & MASK
      v[3] = rotated(v[3], 7n) ^ v[0]
      v[2] = (v[2] + v[1]) & MASK
      v[1] = rotated(v[1], 13n) ^ v[2]
      v[2] = rotated(v[2], 16n)
    }
  }
  const padded = [...bytes, ...Array(3 - (bytes.length % 4)).fill(0), bytes.length % 256]
  for (let k = 0; k < padded.length; k += 4) {
    const block = padded.slice(k, k + 4).reduceRight((sum, byte) => (sum << 8n) | BigInt(byte), 0n)
    v[3] ^= block
    mix(rounds)
    v[0] ^= block
  }
  v[2] ^= 0xeen
  mix(finalRounds)
  const first = v[1] ^ v[3]
  v[1] ^= 0xddn
  mix(finalRounds)
  return [Number(first) | 0, Number(v[1] ^ v[3]) | 0]
}

const bytesOf = (text: string) => Array.from({ length: text.length * 2 }, (_, k) => (text.charCodeAt(k >> 1) >> (8 * (k & 1))) & 0xff)

describe('the fingerprint', () => {
  // Of the bytes 0, 1, 2, ..., so many of them, under the key 0 to 7: from the authors' reference,
  // HalfSipHash-2-4 with 64 bits.
  const PUBLISHED: Readonly<Record<number, string>> = {
    0: '218d1f59b9b83cc8',
    1: 'be552412f8387315',
    2: '064f39ef7c50eb57',
    3: 'ce0f1a45f7060679',
    4: 'd5e78a175be52ea1',
    5: 'cb9d7c3f2f3db580',
    6: 'ce3e91358aa2bc25',
    7: 'ff202728b07bc684',
    8: 'edfee820bce4858c',
    11: 'ae26333994ddcd48',
    14: '3bb1a870eae8e658',
    33: '248477681d28f89c',
  }

  test.each(Object.entries(PUBLISHED))('has a reference that gives what is published, for %s bytes', (length, expected) => {
    const bytes = Array.from({ length: Number(length) }, (_, k) => k)
    const halves = Int32Array.from(slowHalves(bytes, 0x03_02_01_00, 0x07_06_05_04, 2, 4))
    expect(Buffer.from(halves.buffer).toString('hex')).toBe(expected)
  })

  test('is that function with one round for a block and three at the end, for texts of all lengths', () => {
    const random = new Random(5)
    const word = () => random.whole(0, 0xff_ff_ff_ff) | 0
    const lengths = [...Array(70).keys(), 127, 128, 129, 1023, 1024]
    for (const length of lengths) {
      const text = String.fromCharCode(...Array.from({ length }, () => random.whole(0, 0xff_ff)))
      const [low, high] = [word(), word()]
      expect(halvesOf(text, low, high), `${length} units`).toEqual(slowHalves(bytesOf(text), low, high, 1, 3))
    }
  })

  /**
   * Differences that cancel out in a product with an odd number and a rotation, at every pair: 2^6
   * texts.
   */
  function variantsOf(text: string): string[] {
    const pairs = Math.floor((text.length - 1) / 2)
    return Array.from({ length: 2 ** pairs }, (_, chosen) => {
      const units = Array.from(text, (letter) => letter.charCodeAt(0))
      for (let k = 0; k < pairs; k++) {
        if (((chosen >> k) & 1) === 0) continue
        units[2 * k + 1] = (units[2 * k + 1] as number) ^ 0x80_00
        units[2 * k + 2] = (units[2 * k + 2] as number) ^ 0x10_00
      }
      return String.fromCharCode(...units)
    })
  }

  test('spreads variants of one key, chosen so that their differences would cancel out, over the heads', () => {
    const variants = variantsOf('user:victim-1')
    expect(new Set(variants).size).toBe(64)
    for (const seed of [0, 1, -1, 0x12_34_56_78]) {
      const fingerprints = variants.map((text) => halvesOf(text, seed, ~seed))
      for (const half of [0, 1] as const) {
        // Of a thousand heads 64 keys meet 62 on average.
        expect(new Set(fingerprints.map((halves) => (halves[half] as number) >>> 22)).size).toBeGreaterThan(50)
      }
    }
  })

  test.each(['deny', 'allow'] as const)('such variants neither limit the key nor let it through: onFull %s', (onFull) => {
    const limit = gcra({ rate: '1/h', burst: 1 })
    const store = sharedStore({ maxKeys: 1_000, limits: limit, onFull })
    const limiter = createLimiter(limit, { name: 'chosen', store })
    const [victim, ...others] = variantsOf('user:victim-1') as [string, ...string[]]
    for (const key of others) expect(limiter.tryAcquire(key)).toBe(true)
    expect([limiter.tryAcquire(victim), limiter.tryAcquire(victim)]).toEqual([true, false])
  })
})
