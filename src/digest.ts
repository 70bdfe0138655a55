/**
 * Long strings made short: a key of any length that stands for one user. SHA-256, because nobody can find two strings with the same digest; written
 * out here, because `node:crypto` is not everywhere and Web Crypto answers later.
 */

const SHOWN = 32

/**
 * `key` itself if it has at most `longest` characters. Otherwise its first characters, for people, a `~`, and the digest of all of it in 64 hexadecimal
 * digits: at most 97 characters, that share no memory with `key`.
 */
export function digested(key: string, longest = 128): string {
  if (key.length <= longest) return key
  return `${copied(key.slice(0, SHOWN))}~${sha256(key)}`
}

/** Half a pair at the cut, as anywhere else, is no character: some stores refuse it. */
function copied(text: string): string {
  return Array.from(text, (character) => (/\p{Surrogate}/u.test(character) ? '\ufffd' : character)).join('')
}

/** The first 32 bits behind the point, of the square roots of the first 8 primes and the cube roots of the first 64. */
const START = new Int32Array(8)
const ROUNDS = new Int32Array(64)
for (let n = 2, found = 0; found < 64; n++) {
  let divisor = 2
  while (n % divisor !== 0) divisor++
  if (divisor < n) continue
  if (found < 8) START[found] = (Math.sqrt(n) % 1) * 2 ** 32
  ROUNDS[found++] = (Math.cbrt(n) % 1) * 2 ** 32
}

const words = new Int32Array(64)

/** Of the code units of a string as UTF-16LE, so that halves of pairs count too, in hexadecimal digits. */
export function sha256(text: string): string {
  const state = START.slice()
  const bytes = 2 * text.length
  const blocks = ((bytes + 8) >> 6) + 1
  for (let block = 0; block < blocks; block++) {
    for (let k = 0; k < 16; k++) words[k] = wordAt(text, block * 32 + 2 * k)
    // The length in bits ends the last block. No string is so long that it needs more than 34 of them.
    if (block === blocks - 1) {
      words[14] = bytes / 2 ** 29
      words[15] = bytes << 3
    }
    addBlock(state)
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('')
}

/** Two code units as 32 bits. Behind the end a 1 and zeros. */
function wordAt(text: string, at: number): number {
  return (unitAt(text, at) << 16) | unitAt(text, at + 1)
}

function unitAt(text: string, at: number): number {
  if (at >= text.length) return at === text.length ? 0x8000 : 0
  const unit = text.charCodeAt(at)
  return ((unit & 0xff) << 8) | (unit >> 8)
}

function addBlock(state: Int32Array): void {
  for (let k = 16; k < 64; k++) {
    const [early, late] = [words[k - 15] as number, words[k - 2] as number]
    const small = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)
    const large = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10)
    words[k] = (words[k - 16] as number) + small + (words[k - 7] as number) + large
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let k = 0; k < 64; k++) {
    const choice = (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g))
    const first = (h + choice + (ROUNDS[k] as number) + (words[k] as number)) | 0
    const second = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
    ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0]
  }
  for (const [k, value] of [a, b, c, d, e, f, g, h].entries()) state[k] = (state[k] as number) + value
}

function turned(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}
