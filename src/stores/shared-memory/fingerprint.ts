/**
 * 64 bits that stand for a limiter and a key: HalfSipHash-1-3 of the key's UTF-16 units, two at a
 * time, under 64 random bits of each memory. An attacker that chooses keys cannot make them collide
 * without knowing these. With a million keys two of them share a fingerprint with a probability of
 * about 3 in 100 million.
 */

/** Rounds after the last block for each half of the answer. */
const FINAL_ROUNDS = 3

/**
 * Writes the low half to `out[0]` and the high half to `out[1]`: an object for each would be
 * garbage. A round is spelt out four times: one loop for the last block and the end takes a quarter
 * longer, one for all of them half as long again.
 */
export function fingerprint(text: string, keyLow: number, keyHigh: number, out: Int32Array): void {
  const { length } = text
  const even = length & ~1
  let v0 = keyLow
  let v1 = keyHigh ^ 0xee
  let v2 = keyLow ^ 0x6c_79_67_65
  let v3 = keyHigh ^ 0x74_65_64_62
  for (let at = 0; at < even; at += 2) {
    const block = text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16)
    v3 ^= block
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
    v0 ^= block
  }
  // The length, in bytes, shares the last block with the last unit of an odd text.
  const last = (length << 25) | (even < length ? text.charCodeAt(even) : 0)
  v3 ^= last
  v0 = (v0 + v1) | 0
  v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
  v0 = (v0 << 16) | (v0 >>> 16)
  v2 = (v2 + v3) | 0
  v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
  v0 = (v0 + v3) | 0
  v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
  v2 = (v2 + v1) | 0
  v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
  v2 = (v2 << 16) | (v2 >>> 16)
  v0 ^= last
  v2 ^= 0xee
  for (let round = 0; round < FINAL_ROUNDS; round++) {
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
  }
  out[0] = v1 ^ v3
  v1 ^= 0xdd
  for (let round = 0; round < FINAL_ROUNDS; round++) {
    v0 = (v0 + v1) | 0
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
    v0 = (v0 << 16) | (v0 >>> 16)
    v2 = (v2 + v3) | 0
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
    v0 = (v0 + v3) | 0
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
    v2 = (v2 + v1) | 0
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
    v2 = (v2 << 16) | (v2 >>> 16)
  }
  out[1] = v1 ^ v3
}
