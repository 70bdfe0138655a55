import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { digested, sha256 } from './digest.ts'

function byNode(text: string): string {
  return createHash('sha256').update(Buffer.from(text, 'utf16le')).digest('hex')
}

/** Any code units, halves of pairs too. */
const strings = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 300 }).map((units) => String.fromCharCode(...units))

describe('SHA-256', () => {
  test('is what node:crypto computes, for every length up to some blocks', () => {
    for (let length = 0; length < 200; length++)
      expect(sha256('a\ud800'.repeat(length).slice(0, length))).toBe(byNode('a\ud800'.repeat(length).slice(0, length)))
  })

  test('is what node:crypto computes, for random strings', () => {
    fc.assert(
      fc.property(strings, (text) => sha256(text) === byNode(text)),
      { seed: 20260101, numRuns: 3_000 },
    )
    const long = 'x'.repeat(3_000_000)
    expect(sha256(long)).toBe(byNode(long))
  })
})

describe('a digested key', () => {
  test('is the key itself if that is short enough', () => {
    for (const key of ['', 'a', 'x'.repeat(128)]) expect(digested(key)).toBe(key)
    expect(digested('abcd', 4)).toBe('abcd')
  })

  test('begins like the key and ends with its digest', () => {
    const key = 'session:'.repeat(100)
    expect(digested(key)).toBe(`${key.slice(0, 32)}~${byNode(key)}`)
    expect(digested(key, 799)).toBe(digested(key))
  })

  test('differs where keys differ in one half of a pair, and is well-formed all the same', () => {
    const keys = ['\ud83d\ude00'.repeat(80), `${'\ud83d\ude00'.repeat(79)}\ud83d`, `x${'\ud83d\ude00'.repeat(79)}\ude00`]
    const short = keys.map((key) => digested(key))
    expect(new Set(short).size).toBe(keys.length)
    for (const key of short) {
      expect(/\p{Surrogate}/u.test(key)).toBe(false)
      expect(key.length).toBeLessThanOrEqual(97)
    }
  })
})
