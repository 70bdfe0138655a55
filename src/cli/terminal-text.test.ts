/** Text for terminals: times, and lines broken between words. */
import { describe, expect, test } from 'vitest'
import { inWords, wrapped } from './terminal-text.ts'

describe('times', () => {
  test.each([
    [0, '0 ms'],
    [0.25, '0.25 ms'],
    [156.25, '156 ms'],
    [999, '999 ms'],
    [1_000, '1 s'],
    [3_139.292, '3.14 s'],
    [59_999, '60 s'],
    [60_000, '1 min'],
    [90_000, '1 min 30 s'],
    [3_139_292.586, '52 min'],
    [3_600_000, '1 h'],
    [9_000_000, '2 h 30 min'],
    [86_400_000, '1 d'],
    [100_000_000, '1 d 3 h'],
    [31_622_400_000, '366 d'],
  ])('%f ms is %s', (ms, text) => expect(inWords(ms)).toBe(text))
})

test('lines are broken between words, and words are kept whole', () => {
  expect(wrapped('one two three four', 9)).toEqual(['one two', 'three', 'four'])
  expect(wrapped('one two three', 9, '  ')).toEqual(['one two', '  three'])
  expect(wrapped('incomprehensible', 5)).toEqual(['incomprehensible'])
})
