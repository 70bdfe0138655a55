/** A refund moves waiters up, by no more than one call can have taken. */
import { describe, expect, test } from 'vitest'
import { createLimiter, gcra, type Limit, leakyBucket, tokenBucket } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { storeCases } from '../support/stores.ts'
import { noUnhandledRejections, PATIENT, told } from './support.ts'

noUnhandledRejections()

const LIMITS: readonly (readonly [name: string, limitOf: (capacity: number) => Limit])[] = [
  ['gcra', (burst) => gcra({ rate: '1/s', burst })],
  ['token bucket', (capacity) => tokenBucket({ refill: '1/s', capacity })],
  ['leaky bucket', (capacity) => leakyBucket({ leak: '1/s', capacity })],
]

describe.each(storeCases)('on $name', ({ open }) => {
  async function setUp(limit: Limit) {
    const { store, close } = await open()
    const clock = fakeClock(1_000)
    const limiter = createLimiter(limit, { name: 'api', store, clock, ...PATIENT })
    const served: string[] = []
    const closed = () => undefined
    const wait = (who: string) => void limiter.acquire('k').then(() => served.push(who), closed)
    /** Steps are answered in their order: when a question is, all before it are. */
    const answered = async () => {
      await limiter.peek('k', 0)
      await told()
    }
    return { clock, limiter, served, wait, answered, close }
  }

  test.each(LIMITS)('a refund of more than a %s admits at once lets no more go than that', async (_, limitOf) => {
    const { clock, limiter, served, wait, answered, close } = await setUp(limitOf(1))
    await limiter.consume('k')
    for (const who of 'ABCD') wait(who)
    await answered()
    await limiter.refund('k', 10)
    await answered()
    expect(served).toEqual(['A'])
    for (const all of ['AB', 'ABC', 'ABCD']) {
      clock.advanceMs(999.999)
      await answered()
      expect(served.join('')).toBe(all.slice(0, -1))
      clock.advanceMs(0.001)
      await answered()
      expect(served.join('')).toBe(all)
    }
    limiter.close()
    close()
  })

  // A leaky bucket lets callers go one by one, whatever was given back.
  test.each(LIMITS.slice(0, 2))('a refund of all that a %s admits at once lets as many go', async (_, limitOf) => {
    const { limiter, served, wait, answered, close } = await setUp(limitOf(3))
    await limiter.consume('k', 3)
    for (const who of 'ABCDE') wait(who)
    await answered()
    await limiter.refund('k', 3)
    await answered()
    expect(served.join('')).toBe('ABC')
    limiter.close()
    close()
  })

  test.each(LIMITS)('permits taken under a larger %s are given back whole by a caller of a smaller one', async (_, limitOf) => {
    const { store, close } = await open()
    const limiter = createLimiter(limitOf(10), { name: 'api', store, clock: fakeClock(1_000), plans: { small: limitOf(4) } as never })
    const remaining = async () => (await limiter.peek('k', 0)).remaining
    const small = { plan: 'small' as never }
    await limiter.consume('k', 10)
    await limiter.refund('k', 7, small)
    expect(await remaining()).toBe(7)
    await limiter.refund('k', 10, small)
    expect(await remaining()).toBe(10)
    // Once it is written under the smaller numbers, nothing says that a call took more.
    await limiter.reserve('k', 4, small)
    await limiter.reserve('k', 4, small)
    await limiter.refund('k', 1_000, small)
    expect(await remaining()).toBe(6)
    limiter.close()
    close()
  })

  test('each limit is given back within its own capacity', async () => {
    const { store, close } = await open()
    const clock = fakeClock(1_000)
    const limits = { small: gcra({ rate: '1/s', burst: 1 }), large: gcra({ rate: '1/s', burst: 5 }) }
    const limiter = createLimiter(limits, { name: 'api', store, clock, ...PATIENT })
    await limiter.consume('k', { small: 1, large: 5 })
    await limiter.refund('k', { small: 9, large: 3 })
    const { parts } = await limiter.peek('k', 0)
    expect([parts.small.remaining, parts.large.remaining]).toEqual([1, 3])
    limiter.close()
    close()
  })
})
