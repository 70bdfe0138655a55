/**
 * 64 bits that stand for a limiter and a key: two 32-bit hashes, two characters at a time, seeded at random for each memory. With a
 * million keys that nobody chose to collide, two of them share a fingerprint with a probability of about 3 in 100 million.
 */
export interface Fingerprint {
  readonly low: number
  readonly high: number
}

/** `find` in table.ts has the same steps once more, because it is called for every decision. */
export function fingerprintOf(text: string, seedLow: number, seedHigh: number): Fingerprint {
  const { length } = text
  let low = seedLow ^ length
  let high = seedHigh
  for (let k = 0; k < length; k += 2) {
    const pair = k + 1 < length ? text.charCodeAt(k) | (text.charCodeAt(k + 1) << 16) : text.charCodeAt(k)
    low = Math.imul(low ^ pair, LOW_FACTOR)
    high = Math.imul(high ^ pair, HIGH_FACTOR)
    low = (low << 13) | (low >>> 19)
    high = (high << 11) | (high >>> 21)
  }
  return { low: mixed(low), high: high ^ (low >>> 3) }
}

export const LOW_FACTOR = 0x9e_37_79_b1
export const HIGH_FACTOR = 0x85_eb_ca_6b

/** Every bit has its share in every other (the last steps of MurmurHash3): the low half chooses where a key lies. */
export function mixed(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85_eb_ca_6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2_b2_ae_35)
  return h ^ (h >>> 16)
}
