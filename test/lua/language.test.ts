/** Everything that the generator takes, run on both sides; and everything that it refuses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateLua, prelude } from '../../scripts/lua/generate.mjs'
import * as language from './fixtures/language.ts'
import { inRedis, joined, type LuaRedis, shown, startRedis } from './in-redis.ts'

const FUNCTIONS = Object.entries(language).filter(([, value]) => typeof value === 'function') as [
  string,
  (...values: unknown[]) => unknown,
][]
const VALUES = [0, 1, 2, 3, 5, 8, 13]

let redis: LuaRedis
let modules: ReturnType<typeof generateLua>

beforeAll(async () => {
  redis = await startRedis()
  const roots = ['face', ...FUNCTIONS.map(([name]) => name)]
  modules = generateLua({ root: new URL('./fixtures/', import.meta.url), entries: [{ path: 'language.ts', roots }] })
})

afterAll(() => redis.close())

describe('what becomes Lua', () => {
  /** A list is a Float64Array; what it holds afterwards is compared too. */
  const CALL = `
    local function answer(case)
      local values, shownValues = {}, {}
      for k = 1, #case do
        values[k] = type(case[k]) == 'table' and arrayOf(case[k]) or case[k]
      end
      local result = shown(fn(unpack(values)))
      for k = 1, #case do
        shownValues[k] = shown(values[k])
      end
      return result .. ' ' .. table.concat(shownValues, ' ')
    end`

  function callsOf(fn: (...values: unknown[]) => unknown): unknown[][] {
    const takesState = /^function \w+\(s,/.test(fn.toString())
    let calls: unknown[][] = [[]]
    for (let k = 0; k < fn.length; k++) {
      const values = takesState && k < 2 ? (k === 0 ? [[7, 2, 9, 1, 4, 4]] : [0, 1, 2]) : VALUES
      calls = calls.flatMap((call) => values.map((value) => [...call, value]))
    }
    return calls.filter((_, k) => calls.length <= 400 || k % 7 === 0)
  }

  test.each(FUNCTIONS)('%s', async (name, fn) => {
    const calls = callsOf(fn).filter((call) => !hasZeroDivisor(name, call))
    const lua = await inRedis(redis, `${prelude}\n${joined(modules)}\nlocal fn = ${name}`, CALL, calls)
    const typescript = calls.map((call) => {
      const values = call.map((value) => (Array.isArray(value) ? Float64Array.from(value) : value))
      return [fn(...values), ...values].map(shown).join(' ')
    })
    expect(lua).toEqual(typescript)
    expect(new Set(typescript).size).toBeGreaterThan(1)
  })

  /** What is not a number has a sign in Lua's text. */
  function hasZeroDivisor(name: string, call: readonly unknown[]): boolean {
    return ['precedence', 'seconds'].includes(name) && call.slice(1).includes(0)
  }

  test('the modules stand in order, and say what they need', () => {
    expect(modules.map(({ name, needs }) => [name, needs])).toEqual([
      ['shared', []],
      ['language', ['shared']],
    ])
  })

  test('only what is reachable is written', () => {
    expect(joined(modules)).not.toContain('unreachable')
  })
})

describe('what does not become Lua is refused with its place', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-lua-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  function generating(text: string, roots = ['f']): () => unknown {
    writeFileSync(join(folder, 'given.ts'), text)
    return () => generateLua({ root: pathToFileURL(`${folder}/`), entries: [{ path: 'given.ts', roots }] })
  }

  const inFunction = (body: string, parameters = 'a: number, s: Float64Array') => `export function f(${parameters}) {\n  ${body}\n}\n`

  test.each([
    ['a number as a condition', 'if (a) return 1', '2:7', 'a condition has to be a boolean, and this is number'],
    ['a text as a condition', "while ('x') return 1", '2:10', 'this is string'],
    ['a number that is negated', 'return !a', '2:11', 'a condition has to be a boolean'],
    ['a number beside &&', 'return a && a > 1', '2:10', 'a condition has to be a boolean'],
    ['a condition of unknown type', 'const x = missing(a)', '2:13', "'missing' is not known in Lua"],
    ['false in the middle of an inner choice', 'return [a > 1 ? false : a]', '2:19', 'write an if'],
    ['undefined in the middle of an inner choice', 'return [a > 1 ? undefined : a]', '2:19', 'write an if'],
    ['++ in an expression', 'return s[a++]', '2:12', 'UpdateExpression'],
    ['an assignment in an expression', 'return (a = 2)', '2:11', 'AssignmentExpression'],
    ['a text that is added to', "return 'x' + a", '2:10', 'arithmetic needs a number'],
    ['==', 'return a == 1', '2:10', "'=='"],
    ['null', 'return null', '2:10', 'null'],
    ['a template', 'return `a`', '2:10', 'TemplateLiteral'],
    ['for of', 'for (const x of s) a += x', '2:3', 'ForOfStatement'],
    ['continue', 'while (a > 1) { a -= 1; continue }', '2:27', 'ContinueStatement'],
    ['switch', 'switch (a) {}', '2:3', 'SwitchStatement'],
    ['taking apart', 'const { x } = s', '2:9', 'taking apart'],
    ['a closure', 'const g = () => a', '2:13', 'ArrowFunctionExpression'],
    ['?.', 'return s?.length', '2:10', undefined],
    ['a spread', 'return f(...s)', undefined, "'...'"],
    ['a function of Math that Lua has not', 'return Math.round(a)', '2:10', 'Math.round'],
    ['a method of arrays that Lua has not', 'return s.map(a)', '2:10', "'map' of an array"],
    ['a power that is not constant', 'return a ** 2', '2:10', "'**'"],
    ['code behind a return', 'return 1\n  a = 2', '3:3', 'never reached'],
    ['a bare expression', 'a > 1', '2:3', 'a statement assigns or calls'],
    ['recursion', 'return f(a, s)', undefined, 'calls itself'],
    ['a global', 'return Date.now()', '2:10', "'Date' is not known"],
    ['a place that is computed twice', 's[g(a)] += 1', '2:3', 'computed twice'],
  ])('%s', (_, body, place, message) => {
    const call = generating(`${inFunction(body)}function g(a: number): number {\n  a += 1\n  return a\n}`)
    expect(call).toThrow(`given.ts:${place ?? ''}`)
    if (message !== undefined) expect(call).toThrow(message)
  })

  test.each([
    ['a parameter with a default', 'a = 1', 'a parameter is a name'],
    ['a rest parameter', '...a: number[]', 'a parameter is a name'],
  ])('%s', (_, parameters, message) => {
    expect(generating(inFunction('return 1', parameters))).toThrow(message)
  })

  test('an object at the top that is no algorithm', () => {
    expect(generating(`const seen = { slot: 0 }\n${inFunction('return seen.slot')}`)).toThrow("given.ts:3:10: 'seen' is neither")
  })

  test('an element that an array does not have', () => {
    expect(generating(`const x = new Float64Array(2)\n${inFunction('return x[2]')}`)).toThrow("'x' has 2 elements")
  })

  test('an algorithm that is spread from another', () => {
    const text = "const other = {}\nexport const f = { type: 'f', ...other }"
    expect(generating(text)).toThrow('given.ts:2:31: an algorithm is made of names and values')
  })

  test('a syntax error', () => {
    expect(generating('export function f( {')).toThrow('given.ts: ')
  })
})
