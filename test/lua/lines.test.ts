/**
 * `npm run lua`: the line that an error of a real Redis names is found in the script that it ran,
 * and in the file where it was written.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ComposedScript, composedScript, placeOf } from '../../scripts/lua.mjs'
import { script as sent } from '../../src/stores/redis/script.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

let redis: TestRedis
let script: ComposedScript

beforeAll(async () => {
  redis = await connectRedis()
  script = await composedScript()
})

afterAll(() => redis.close())

test('the script is the one that the store sends', () => {
  expect(script.text).toBe(sent().text)
})

test('every place in the script has been filled', () => {
  for (const place of ['--', 'const.', '_k']) expect(script.text).not.toContain(place)
})

test('an error of Redis leads to its line', async () => {
  // Two arguments are a label and a cost, and this label is none.
  const error = await redis.send(['EVAL', script.text, '1', 'lines:test', '', '1']).catch((thrown: Error) => thrown)
  const place = placeOf(script, (error as Error).message)
  expect(place?.text).toBe(script.text.split('\n')[(place?.line ?? 0) - 1])
  const [, path = '', line] = /^(.+):(\d+)$/.exec(place?.source ?? '') ?? []
  const source = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8').split('\n')
  expect(source[Number(line) - 1]?.trim()).toBe(place?.text)
})

test('a script of another version is not taken for this one', () => {
  expect(placeOf(script, `ERR user_script:3: x script: ${'0'.repeat(40)}, on @user_script:3.`)).toBeUndefined()
  expect(placeOf(script, `ERR x script: ${script.sha1}`)).toBeUndefined()
})
