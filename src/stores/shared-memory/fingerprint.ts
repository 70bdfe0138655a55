/**
 * 64 bits that stand for a key: two 32-bit hashes (the last mixing steps are MurmurHash3's), seeded per table. With a million keys that
 * nobody chose to collide, two of them share a fingerprint with a probability of about 3 in 100 million. Never 0n, which marks a free slot.
 */
export function fingerprintOf(limiter: string, key: string, seed: number): bigint {
  let low = seed | 0
  let high = ~seed | 0
  for (const text of [limiter, '\n', key]) {
    for (let k = 0; k < text.length; k++) {
      const unit = text.charCodeAt(k)
      low = Math.imul(low ^ unit, 0x9e_37_79_b1)
      high = Math.imul(high ^ unit, 0x85_eb_ca_6b)
      low = (low << 13) | (low >>> 19)
      high = (high << 11) | (high >>> 21)
    }
  }
  const bits = (BigInt(mixed(high ^ (low >>> 3)) >>> 0) << 32n) | BigInt(mixed(low) >>> 0)
  return bits === 0n ? 1n : BigInt.asIntN(64, bits)
}

function mixed(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85_eb_ca_6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2_b2_ae_35)
  return h ^ (h >>> 16)
}
