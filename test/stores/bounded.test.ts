/**
 * Memory: all that the library keeps is bounded in bytes and freed. It is measured in processes of
 * their own, with the little memory of a small container.
 */
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, inject, test } from 'vitest'

const HEAP = ['--expose-gc', '--max-old-space-size=256']
const PROCESS = fileURLToPath(new URL('./bounded.process.mjs', import.meta.url))

/** Rejects if the process runs out of memory. */
async function story<Result>(name: string, argument: unknown): Promise<Result> {
  const { stdout } = await promisify(execFile)(process.execPath, [...HEAP, PROCESS, name, JSON.stringify(argument)])
  const result = JSON.parse(stdout)
  console.log(`${name} ${JSON.stringify(argument)}: ${stdout.trim()}`)
  return result
}

interface Kept {
  readonly bytesEach: number
}

describe('a limiter in memory with one key', () => {
  const algorithms = ['gcra', 'tokenBucket', 'leakyBucket', 'fixedWindow', 'slidingWindow', 'slidingLog']

  test.each(algorithms)('takes at most 6 kB with a %s', async (algorithm) => {
    const { bytesEach } = await story<Kept>('limiters', algorithm)
    expect(bytesEach).toBeLessThan(6_000)
  })
})

const onRedis = (isDropped: boolean) => ({ rounds: 100, port: inject('redisPort'), prefix: `test:${randomUUID()}`, isDropped })

describe('nothing is left behind by', () => {
  /**
   * A process keeps a little for itself. What would be left of a limiter, a name or a set of
   * numbers is 500 bytes at least.
   */
  const NOTHING = 100

  test('limiters that are made, used and closed on one memory store', async () => {
    const { bytesEach, size } = await story<Kept & { size: number }>('closed', 20_000)
    expect(bytesEach).toBeLessThan(NOTHING)
    expect(size).toBeLessThan(500)
  })

  test('limiters that are made, used and closed on one Redis store', async () => {
    expect((await story<Kept>('onRedis', onRedis(false))).bytesEach).toBeLessThan(NOTHING)
  })

  test('limiters that are made, used and dropped on one Redis store', async () => {
    // One that the store held on to would keep 5,900 bytes.
    expect((await story<Kept>('onRedis', onRedis(true))).bytesEach).toBeLessThan(500)
  })

  test('updates, also while keys in use were last seen under old numbers', async () => {
    expect((await story<Kept>('updates', 50_000)).bytesEach).toBeLessThan(NOTHING)
  })

  test('limiters of one name with numbers of their own', async () => {
    expect((await story<Kept>('overrides', 30_000)).bytesEach).toBeLessThan(NOTHING)
  })
})

describe('a process with a heap of 256 MB survives', () => {
  interface Flooded {
    readonly allowed: number
    readonly size: number
    readonly refused: string
    readonly held: string
    readonly retryAfterMs: number
  }

  test.each([
    ['the longest new keys', 'gcra', 150_000, 1_024, undefined, 31_250],
    ['as many new keys as a table holds', 'gcra', 1_010_000, 32, undefined, 1_000_000],
    ['new keys of logs, with the maxKeys that the reference names', 'slidingLog', 310_000, 32, 300_000, 300_000],
  ])('a flood of %s', async (_, algorithm, count, length, maxKeys, most) => {
    const flooded = await story<Flooded>('keys', { algorithm, count, length, maxKeys })
    expect(flooded).toMatchObject({ allowed: most, size: most, refused: 'limited', held: 'allowed' })
    expect(flooded.retryAfterMs).toBeGreaterThan(0)
    expect(flooded.retryAfterMs).toBeLessThanOrEqual(86_400_000)
  })

  test('a flood of waiters on one key: from the 10,001st on they are refused', async () => {
    const flooded = await story('waiters', { count: 120_000, keys: 1 })
    expect(flooded).toEqual({ waiting: 10_000, waitingForFirst: 10_000, ends: { QUEUE_FULL: 109_999 } })
  })

  test('a flood of waiters with a key and a signal each: from the 25,001st on they are refused', async () => {
    // The first of each key need not wait.
    const flooded = await story('waiters', { count: 80_000, keys: 40_000, withSignals: true })
    expect(flooded).toEqual({ waiting: 25_000, waitingForFirst: 1, ends: { QUEUE_FULL: 15_000 } })
  })
})
