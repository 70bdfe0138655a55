/** `npm run lua`: the line that an error of a real Redis names is found in the script that it ran, and in the file where it was written. */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type ComposedScript, composedScripts, placeOf } from '../../scripts/lua.mjs'
import { scriptFor } from '../../src/stores/redis/script.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

let redis: TestRedis
let scripts: readonly ComposedScript[]

beforeAll(async () => {
  redis = await connectRedis()
  scripts = await composedScripts()
})

afterAll(() => redis.close())

test('the scripts are those that the store sends: one for each algorithm, one for each two, and one with all', () => {
  const count = (scripts.at(-1) as ComposedScript).types.length
  expect(scripts.length).toBe(count + (count * (count - 1)) / 2 + 1)
  expect(scripts.map(({ types }) => scriptFor(types).text)).toEqual(scripts.map(({ text }) => text))
})

test('an error of Redis leads to its line', async () => {
  // Two arguments are a label and a cost, and this cost is none.
  const { text } = scripts.find(({ types }) => types.join() === 'gcra') as ComposedScript
  const error = await redis.send(['EVAL', text, '1', 'lines:test', '', 'no cost']).catch((thrown: Error) => thrown)
  const place = placeOf(scripts, (error as Error).message)
  expect(place?.types).toEqual(['gcra'])
  expect(place?.text).toContain('cost')
  const [, path = '', line] = /^(.+):(\d+)$/.exec(place?.source ?? '') ?? []
  const source = readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8').split('\n')
  expect(source[Number(line) - 1]?.trim()).toBe(place?.text)
})

test('a script of another version is not taken for one of this', () => {
  expect(placeOf(scripts, `ERR user_script:3: x script: ${'0'.repeat(40)}, on @user_script:3.`)).toBeUndefined()
  expect(placeOf(scripts, `ERR x script: ${scripts[0]?.sha1}`)).toBeUndefined()
})
