/**
 * SHA-256 (FIPS 180-4) of a text, in hex: synchronous, and for runtimes that have no other. The
 * bytes are those of its UTF-16 units, low byte first.
 */

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
const ROUND_CONSTANTS = fractions(64, Math.cbrt)
/** And of the square roots of the first 8. */
const FIRST_STATE = fractions(8, Math.sqrt)

const BLOCK_WORDS = 16
const schedule = new Int32Array(64)
const state = new Int32Array(8)

export function sha256(text: string): string {
  const { length } = text
  state.set(FIRST_STATE)
  let at = 0
  for (; at + 32 <= length; at += 32) {
    for (let word = 0; word < BLOCK_WORDS; word++) schedule[word] = wordAt(text, at + 2 * word)
    compress()
  }
  for (let word = 0; word < BLOCK_WORDS; word++) schedule[word] = lastWordAt(text, at + 2 * word)
  // The length, in bits, takes the last two words of the last block.
  if (length - at > 27) {
    compress()
    schedule.fill(0, 0, BLOCK_WORDS)
  }
  schedule[14] = Math.floor((length * 16) / 2 ** 32)
  schedule[15] = length * 16
  compress()
  let hex = ''
  for (const word of state) hex += (word >>> 0).toString(16).padStart(8, '0')
  return hex
}

/** Two units as four bytes, each unit low byte first, the bytes high one first. */
function wordAt(text: string, at: number): number {
  const first = text.charCodeAt(at)
  const second = text.charCodeAt(at + 1)
  return (first << 24) | ((first >>> 8) << 16) | ((second & 0xff) << 8) | (second >>> 8)
}

/** The same where the text may have ended: behind it there is one bit, and then nothing. */
function lastWordAt(text: string, at: number): number {
  const left = text.length - at
  if (left >= 2) return wordAt(text, at)
  if (left < 0) return 0
  if (left === 0) return 0x80 << 24
  const last = text.charCodeAt(at)
  return (last << 24) | ((last >>> 8) << 16) | (0x80 << 8)
}

function compress(): void {
  for (let k = BLOCK_WORDS; k < 64; k++) {
    const early = schedule[k - 15] as number
    const late = schedule[k - 2] as number
    const sigma0 = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)
    const sigma1 = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10)
    schedule[k] = (schedule[k - 16] as number) + sigma0 + (schedule[k - 7] as number) + sigma1
  }
  // Read one by one: taking the array apart takes longer than a block does.
  let a = state[0] as number
  let b = state[1] as number
  let c = state[2] as number
  let d = state[3] as number
  let e = state[4] as number
  let f = state[5] as number
  let g = state[6] as number
  let h = state[7] as number
  for (let k = 0; k < 64; k++) {
    const sum1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
    const next1 = (h + sum1 + ((e & f) ^ (~e & g)) + (ROUND_CONSTANTS[k] as number) + (schedule[k] as number)) | 0
    const sum0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)
    const next2 = (sum0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + next1) | 0
    d = c
    c = b
    b = a
    a = (next1 + next2) | 0
  }
  add(0, a)
  add(1, b)
  add(2, c)
  add(3, d)
  add(4, e)
  add(5, f)
  add(6, g)
  add(7, h)
}

function add(place: number, word: number): void {
  state[place] = (state[place] as number) + word
}

function turned(word: number, bits: number): number {
  return (word >>> bits) | (word << (32 - bits))
}

function fractions(count: number, root: (n: number) => number): Int32Array {
  const words = new Int32Array(count)
  for (let n = 2, found = 0; found < count; n++) {
    if (!isPrime(n)) continue
    const fraction = root(n) % 1
    words[found++] = Math.floor(fraction * 2 ** 32)
  }
  return words
}

function isPrime(n: number): boolean {
  for (let d = 2; d * d <= n; d++) if (n % d === 0) return false
  return true
}
