/**
 * The scripts that the Redis bench holds Sluice against: they limit, and what they write expires.
 */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connectRedis, type TestRedis } from '../support/redis-client.ts'

let redis: TestRedis
beforeAll(async () => {
  redis = await connectRedis()
})
afterAll(() => redis.close())

const LIMIT = '3'
const HOUR_MS = 3_600_000
const HOUR_US = `${HOUR_MS}000`

/** Three at once, and none back within the next minutes. */
const SCRIPTS = [
  { file: 'minimal.lua', args: [HOUR_US, LIMIT] },
  { file: 'redis/plain/fixed-window.lua', args: [LIMIT, `${HOUR_MS}`] },
  { file: 'redis/plain/token-bucket.lua', args: [LIMIT, HOUR_US] },
  { file: 'redis/plain/leaky-bucket.lua', args: [LIMIT, HOUR_US] },
  { file: 'redis/plain/sliding-window.lua', args: [LIMIT, HOUR_US, '10'] },
  { file: 'redis/plain/sliding-log.lua', args: [LIMIT, HOUR_US] },
]

test.each(SCRIPTS)('$file admits its limit, says what remains, then refuses and says for how long', async ({ file, args }) => {
  const text = readFileSync(new URL(`../../bench/${file}`, import.meta.url), 'utf8')
  const key = randomUUID()
  const answers: number[][] = []
  for (let k = 0; k < 5; k++) answers.push((await redis.send(['EVAL', text, '1', key, ...args])) as number[])
  expect(answers.map(([allowed, remaining]) => [allowed, remaining])).toEqual([
    [1, 2],
    [1, 1],
    [1, 0],
    [0, 0],
    [0, 0],
  ])
  for (const [allowed, , retryUs, resetUs] of answers as [number, number, number, number][]) {
    expect(retryUs > 0).toBe(allowed === 0)
    expect(resetUs).toBeGreaterThan(0)
  }
  const livesMs = Number(await redis.send(['PTTL', key]))
  expect(livesMs).toBeGreaterThan(0)
  expect(livesMs).toBeLessThanOrEqual(4 * HOUR_MS)
})

test('the sliding window of the bench forgets slots that have left', async () => {
  const text = readFileSync(new URL('../../bench/redis/plain/sliding-window.lua', import.meta.url), 'utf8')
  const key = randomUUID()
  const [seconds] = (await redis.send(['TIME'])) as [string, string]
  // Ten slots of a thousand days: which one it is now changes once in three years.
  const slotSeconds = 86_400_000
  const slot = Math.floor(Number(seconds) / slotSeconds)
  for (const [age, count] of [
    [11, 100],
    [9, 1],
  ] as const)
    await redis.send(['HSET', key, `${slot - age}`, `${count}`])
  const take = () => redis.send(['EVAL', text, '1', key, '3', `${slotSeconds * 10}000000`, '10'])
  expect([(await take()) as number[], (await take()) as number[], (await take()) as number[]].map(([allowed]) => allowed)).toEqual([
    1, 1, 0,
  ])
  expect(await redis.send(['HLEN', key])).toBe(2)
})
