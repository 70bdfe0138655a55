/**
 * 64 bits that stand for a limiter and a key: two 32-bit hashes (the last mixing steps are MurmurHash3's), seeded at random for each memory. With a
 * million keys that nobody chose to collide, two of them share a fingerprint with a probability of about 3 in 100 million.
 */
export class Fingerprint {
  low = 0
  high = 0
  readonly #seedLow: number
  readonly #seedHigh: number

  constructor(seedLow: number, seedHigh: number, limiter: string) {
    this.#seedLow = seedLow
    this.#seedHigh = seedHigh
    this.of(`${limiter}\n`)
    this.#seedLow = this.low
    this.#seedHigh = this.high
  }

  /** Leaves the fingerprint of a key in `low` and `high`. */
  of(key: string): void {
    let low = this.#seedLow
    let high = this.#seedHigh
    for (let k = 0; k < key.length; k++) {
      const unit = key.charCodeAt(k)
      low = Math.imul(low ^ unit, 0x9e_37_79_b1)
      high = Math.imul(high ^ unit, 0x85_eb_ca_6b)
      low = (low << 13) | (low >>> 19)
      high = (high << 11) | (high >>> 21)
    }
    this.low = mixed(low ^ key.length)
    this.high = mixed(high ^ (low >>> 3))
  }
}

function mixed(hash: number): number {
  let h = hash
  h = Math.imul(h ^ (h >>> 16), 0x85_eb_ca_6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2_b2_ae_35)
  return h ^ (h >>> 16)
}
