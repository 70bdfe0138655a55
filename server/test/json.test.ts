/** JSON within bounds on its shape. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { jsonIn, MAX_LEVELS, MAX_VALUES } from '../src/json.ts'

const read = (text: string) => jsonIn(Buffer.from(text))

test('what is within the bounds is read as JSON.parse reads it', () => {
  const json = fc.jsonValue({ maxDepth: MAX_LEVELS - 1 })
  fc.assert(
    fc.property(json, (value) => {
      const text = JSON.stringify(value)
      expect(read(text)).toEqual(JSON.parse(text))
    }),
  )
})

test('brackets and commas within texts are not counted, whatever is escaped there', () => {
  const text = `${'[{,'.repeat(20_000)}"\\\\"\\`
  expect(read(JSON.stringify([text, { [text]: text }]))).toEqual([text, { [text]: text }])
})

test('there are so many levels and values, and no more', () => {
  const levels = (count: number) => '['.repeat(count) + ']'.repeat(count)
  expect(() => read(`[${levels(MAX_LEVELS - 1)},${levels(MAX_LEVELS - 1)}]`)).not.toThrow()
  expect(() => read(levels(MAX_LEVELS + 1))).toThrow('it must have at most 8 levels of lists and objects: byte 9 begins another')
  // The list is one of them.
  const values = (count: number) => `[${'1,'.repeat(count - 2)}1]`
  expect(read(values(MAX_VALUES))).toHaveLength(MAX_VALUES - 1)
  expect(() => read(values(MAX_VALUES + 1))).toThrow('it must have at most 32768 values: byte')
})
