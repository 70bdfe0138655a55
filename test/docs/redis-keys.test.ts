/** The bytes on the page of keys are states, and there is one of each algorithm. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { readState, writeState } from '../../src/algorithms/codec.ts'
import { FORMATS } from '../../src/algorithms/list.ts'
import { fromHex, toHex } from '../support/state-bytes.ts'

const page = readFileSync(fileURLToPath(new URL('../../docs/reference/redis-keys.md', import.meta.url)), 'utf8')
const RECORDS = [...page.matchAll(/^[0-9a-f]{14} {2}[0-9a-f ]+$/gm)].map(([line]) => line)

test.each(RECORDS)('%s', (line) => {
  const bytes = fromHex(line)
  const { rule, words, idleAtUs, name, end } = readState(bytes, 0)
  expect(end).toBe(bytes.length)
  expect(toHex(writeState(rule, words, 0, idleAtUs, name))).toBe(toHex(bytes))
})

test('every format is on the page, with an example', () => {
  const shown = new Set(RECORDS.map((line) => readState(fromHex(line), 0).rule.algorithm))
  for (const { format, algorithm } of FORMATS) {
    expect(page).toMatch(new RegExp(`^\\| ${format} +\\| \`${algorithm.type}\``, 'm'))
    expect(shown, algorithm.type).toContain(algorithm)
  }
})
