/**
 * 64 bits that stand for a limiter and a key: two 32-bit hashes (the last mixing steps are MurmurHash3's), seeded at random for each memory. With a
 * million keys that nobody chose to collide, two of them share a fingerprint with a probability of about 3 in 100 million.
 */
export interface Fingerprint {
  readonly low: number
  readonly high: number
}

/** `find` in table.ts has the same steps once more, because it is called for every decision. */
export function fingerprintOf(text: string, seedLow: number, seedHigh: number): Fingerprint {
  let low = seedLow
  let high = seedHigh
  for (let k = 0; k < text.length; k++) {
    const unit = text.charCodeAt(k)
    low = Math.imul(low ^ unit, 0x9e_37_79_b1)
    high = Math.imul(high ^ unit, 0x85_eb_ca_6b)
    low = (low << 13) | (low >>> 19)
    high = (high << 11) | (high >>> 21)
  }
  return { low: mixed(low ^ text.length), high: mixed(high ^ (low >>> 3)) }
}

export function mixed(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85_eb_ca_6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2_b2_ae_35)
  return h ^ (h >>> 16)
}
