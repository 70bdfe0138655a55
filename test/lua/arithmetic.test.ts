/**
 * The exact arithmetic, generated as Lua, in the real Redis: equal to BigInt on random and extreme
 * operands.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { generateLua, prelude } from '../../scripts/lua/generate.mjs'
import { Random } from '../model/random.ts'
import { all } from './fixtures/arithmetic.ts'
import { inRedis, joined, type LuaRedis, shown, startRedis } from './in-redis.ts'

const MAX = 2 ** 53 - 1

let redis: LuaRedis

beforeAll(async () => {
  redis = await startRedis()
})

afterAll(() => redis.close())

type Operands = [a: number, b: number, add: number, c: number]

/**
 * Where one wrong step shows: products just above 2^53 that a double rounds down to it, powers of
 * two, and a rest of half the divisor.
 */
const EDGES: readonly Operands[] = [
  [3, 3_002_399_751_580_331, 0, 2],
  [3, 3_002_399_751_580_331, 0, 7],
  [2 ** 27, 2 ** 27, 0, 3],
  [2 ** 27, 2 ** 27 + 1, 1, 2 ** 28],
  [2 ** 52, 2 ** 52, 0, 2 ** 52],
  [2 ** 52 + 1, MAX, 0, MAX],
  [2 ** 30, 2 ** 30 + 2 ** 29, 0, 2 ** 31],
  [0, 0, 0, 1],
]

function clampTo(least: number, value: number, most: number): number {
  return Math.max(least, Math.min(value, most))
}

function operand(random: Random): number {
  const shape = random.whole(0, 4)
  if (shape === 0) return random.magnitude(1, MAX)
  if (shape === 1) return clampTo(0, 2 ** random.whole(0, 53) + random.whole(-2, 2), MAX)
  if (shape === 2) return MAX - random.whole(0, 1_000)
  return shape === 3 ? random.whole(0, MAX) : random.whole(0, 12)
}

/** Drawn and bent into the domain: c + add and the quotient, rounded up, stay below 2^53. */
function operands(random: Random): Operands {
  const a = operand(random)
  const b = random.chance(0.3) ? clampTo(0, Math.floor(2 ** 53 / Math.max(a, 1)) + random.whole(-2, 2), MAX) : operand(random)
  const least = Number((BigInt(a) * BigInt(b)) >> 53n) + 1
  const c = clampTo(least, random.chance(0.5) ? least + random.whole(0, 3) : operand(random), MAX)
  const untilQuotient = BigInt(c) * BigInt(MAX) - BigInt(a) * BigInt(b)
  const most = untilQuotient < BigInt(MAX - c) ? Number(untilQuotient) : MAX - c
  return [a, b, clampTo(0, operand(random), Math.max(most, 0)), c]
}

function byBigInt([a, b, add, c]: Operands): string {
  const product = BigInt(a) * BigInt(b)
  const total = product + BigInt(add)
  const divisor = BigInt(c)
  return shown([product / divisor, product % divisor, total / divisor, total % divisor, (total + divisor - 1n) / divisor])
}

test('mulDiv, mulAddDiv and mulAddDivUp in Lua and in TypeScript equal BigInt', async () => {
  const random = new Random(21)
  const cases = [...EDGES, ...Array.from({ length: 30_000 }, () => operands(random))]
  const wide = cases.filter(([a, b]) => BigInt(a) * BigInt(b) > BigInt(MAX)).length
  expect(Math.min(wide, cases.length - wide)).toBeGreaterThan(cases.length / 5)
  const modules = generateLua({
    root: new URL('../../', import.meta.url),
    entries: [{ path: 'test/lua/fixtures/arithmetic.ts', roots: ['all'] }],
  })
  const answer = 'local function answer(case) return shown(all(unpack(case))) end'
  const lua = await inRedis(redis, `${prelude}\n${joined(modules)}`, answer, cases)
  const expected = cases.map(byBigInt)
  const differs = cases.findIndex((each, k) => lua[k] !== expected[k] || shown(all(...each)) !== expected[k])
  if (differs >= 0) {
    const operandsOf = cases[differs] as Operands
    expect({ operandsOf, lua: lua[differs], typescript: shown(all(...operandsOf)) }).toEqual({
      operandsOf,
      lua: expected[differs],
      typescript: expected[differs],
    })
  }
})
