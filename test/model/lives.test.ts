/** The short forms in Lua set a time to live only where they must: a key that expires when it was told to, beside one that never does. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { LIBRARY } from '../../src/stores/redis/script.ts'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'
import { STEPS_OF_A_LIFE, WIRED } from './short-form.ts'

/** A rule's numbers, how much time passes between two takes at most, and what times are a multiple of. */
const LIVES: readonly (readonly [name: string, type: string, numbers: string, mostUs: number, unitUs: number])[] = [
  ['on the lines of the grid', 'gcra', '1000 1 1048576', 10 * 2 ** 20, 2 ** 20],
  ['a hundred a minute', 'gcra', '100 1 600000', 1_000_000, 1],
  ['seven a second, with parts', 'gcra', '50 7 1000000', 200_000, 1],
  ['too quick for a grid', 'gcra', '10 1 1000', 20_000, 1],
  ['ten a day', 'gcra', '1000 1 8640000000', 30_000_000_000, 1],
  ['many at once', 'gcra', '10000000 1 6000000', 5_000_000, 1],
  ['windows of the clock', 'fixedWindow', '1000 10000000 0 0', 1_000_000, 1],
  ['windows of the first call', 'fixedWindow', '40 1000000 1 0', 60_000, 1],
]

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

test.each(LIVES)(
  '%s (%s): expiry changes no answer, and no key lives longer than a quarter more',
  async (_, type, numbers, mostUs, unitUs) => {
    const args = [type, numbers, `${mostUs}`, `${unitUs}`, '20000']
    const answer = await redis.send(['EVAL', `${LIBRARY}\n${STEPS_OF_A_LIFE}`, '0', ...args])
    const [failure, kept, set] = answer as [string, number, number]
    expect(failure).toBe('')
    expect(set).toBeGreaterThan(100)
    // The ones that never reach four times the finest grid have nothing to keep.
    expect(kept > 1_000).toBe(numbers !== '10 1 1000')
  },
)

test('gcra in Lua lives until the coarsest grid that is no more than a quarter of the time until idle', async () => {
  // Each permit is 2^22 µs, and it is 0 o'clock: what remains of the TAT is on the lines of all grids.
  const script = `${LIBRARY}
${WIRED}
    local lives = {}
    for k, cost in ipairs(ARGV) do
      local _, _, _, livesUs = algorithms.gcra.shortForm(wired('10000000 1 4194304'), tonumber(cost), 2 ^ 50)(false)
      lives[k] = string.format('%.0f', livesUs)
    end
    return lives`
  const grids = [
    [1, 2 ** 22 + 2 ** 20],
    [31, 31 * 2 ** 22 + 2 ** 20],
    [32, 2 ** 27 + 2 ** 25],
    [1_024, 2 ** 32 + 2 ** 30],
    [32_768, 2 ** 37 + 2 ** 35],
    [1_048_576, 2 ** 42 + 2 ** 35],
  ] as const
  const lives = await redis.send(['EVAL', script, '0', ...grids.map(([cost]) => `${cost}`)])
  expect(lives).toEqual(grids.map(([, livesUs]) => `${livesUs}`))
})

test.each([
  [0, 'taken'],
  [1, 'left'],
  [2, 'left'],
  [3, 'left'],
  [4, 'taken'],
  [7, 'taken'],
])('gcra in Lua: bytes with %i in the bits above the TAT are %s', async (grid, answer) => {
  const script = `${LIBRARY}
${WIRED}
    local bytes = string.char(32 * ARGV[1] + 6) .. '\\0\\0\\0\\0\\0\\0' .. packedNumbers('100 1 600000')
    return algorithms.gcra.shortForm(wired('100 1 600000'), 1, 6 * 2 ^ 48)(bytes, 1, #bytes) and 'taken' or 'left'`
  expect(await redis.send(['EVAL', script, '0', `${grid}`])).toBe(answer)
})
