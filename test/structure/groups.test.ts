/**
 * The groups of tests: each file is in the group that has what it needs, and the list of long files
 * names existing files.
 */
import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { groupOf, LONG } from '../support/groups.ts'

test.each([
  ['src/algorithms/gcra/gcra.test.ts', 'unit'],
  ['test/http/gate.test.ts', 'unit'],
  ['server/test/http.test.ts', 'unit'],
  ['test/model/laws.test.ts', 'model'],
  ['test/waiting/booked-ahead.test.ts', 'model'],
  ['test/waiting/crowds.test.ts', 'model'],
  ['test/model/stores-agree.test.ts', 'redis'],
  ['test/redis/order.test.ts', 'redis'],
  ['test/faults/cuts.test.ts', 'redis'],
  ['test/docs/snippets.test.ts', 'package'],
  ['test/cli/simulate.test.ts', 'package'],
  ['test/waiting/timers.test.ts', 'package'],
  ['test/concurrency/races.test.ts', 'threads'],
  ['playground/test/page.test.ts', 'browser'],
])('%s is of the group %s', (path, group) => {
  expect(groupOf(path)).toBe(group)
})

test('every long file is there', () => {
  expect(LONG.filter((name) => !existsSync(new URL(`../../${name}.test.ts`, import.meta.url)))).toEqual([])
})
