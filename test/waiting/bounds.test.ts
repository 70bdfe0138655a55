/** How many may wait: at one key, and at a limiter. */
import { describe, expect, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { noUnhandledRejections, setUp, told, watched } from './support.ts'

noUnhandledRejections()

const limit = gcra({ rate: '1/s', burst: 1 })

describe('maxWaiting', () => {
  test('counts the waiters of all keys, and a place that becomes free can be had', async () => {
    const { limiter, moveTo } = setUp(limit, { maxWaiting: 2 })
    for (const key of ['a', 'b', 'c']) limiter.consume(key)
    const [a, b] = [watched(limiter.acquire('a')), watched(limiter.acquire('b'))]
    const [c, again] = [watched(limiter.acquire('c')), watched(limiter.acquire('a'))]
    await told()
    expect([a.end, b.end, c.code, again.code, limiter.waiting()]).toEqual(['waits', 'waits', 'QUEUE_FULL', 'QUEUE_FULL', 2])
    expect((c.error as Error).message).toContain('maxWaiting')
    await moveTo(1_000_000)
    expect([a.end, b.end]).toEqual(['resolved', 'resolved'])
    limiter.consume('c')
    const late = watched(limiter.acquire('c'))
    await told()
    expect(late.end).toBe('waits')
    limiter.close()
    await told()
  })

  test('refuses nobody who need not wait', async () => {
    const { limiter } = setUp(limit, { maxWaiting: 0 })
    await expect(limiter.acquire('a')).resolves.toMatchObject({ waitedMs: 0 })
    await expect(limiter.acquire('a')).rejects.toMatchObject({ code: 'QUEUE_FULL' })
    await expect(limiter.acquire('b', { timeoutMs: 10 })).resolves.toMatchObject({ waitedMs: 0 })
  })

  test.each([
    ['maxQueue', -1],
    ['maxWaiting', 1.5],
    ['maxWaiting', '5'],
  ])('%s %j is refused', (name, value) => {
    const make = () => createLimiter(limit, { [name]: value })
    expect(make).toThrow(`${name} ${JSON.stringify(value)} must be a whole number, 0 or more, or Infinity`)
  })
})

test('a maxQueue above the usual maxWaiting raises that too', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(limit, { clock, maxQueue: 26_000 })
  limiter.consume('k')
  const waits = Array.from({ length: 26_001 }, () => watched(limiter.acquire('k')))
  await told()
  expect([limiter.waiting(), waits.at(-2)?.end, waits.at(-1)?.code]).toEqual([26_000, 'waits', 'QUEUE_FULL'])
  limiter.close()
  await told()
})
