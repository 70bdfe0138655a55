/** What a call gives back before its time serves the callers that wait behind it. */
import { describe, expect, test } from 'vitest'
import { createLimiter, gcra, leakyBucket } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { noUnhandledRejections, told, watched } from './support.ts'

noUnhandledRejections()

const bucket = leakyBucket({ leak: '1/s', capacity: 5 })

describe('of two calls before a caller that waits the second is given back', () => {
  const ways = ['consume', 'reserve'] as const
  test.each(ways.flatMap((verb) => [[verb, 'itself'] as const, [verb, 'JSON'] as const]))('%s, by %s', async (verb, by) => {
    const clock = fakeClock()
    const limiter = createLimiter(bucket, { clock })
    limiter[verb]('k')
    const second = limiter[verb]('k')
    const waits = watched(limiter.acquire('k'))
    await told()
    if (by === 'itself') second.cancel()
    else limiter.settle('k', 0, { of: JSON.parse(JSON.stringify(second)) })
    clock.setUs(999_999)
    await told()
    expect([waits.end, limiter.peek('k', 0).remaining]).toEqual(['waits', 3])
    clock.setUs(1_000_000)
    await told()
    expect(waits.end).toBe('resolved')
  })
})

test('a reservation from before an update serves no caller that waits under other numbers', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 5 }), { clock })
  limiter.consume('k', 5)
  const reserved = limiter.reserve('k')
  limiter.update(gcra({ rate: '1/s', burst: 1 }))
  const waits = watched(limiter.acquire('k'))
  await told()
  reserved.cancel()
  clock.setMs(5_999.999)
  await told()
  expect(waits.end).toBe('waits')
  clock.setMs(6_000)
  await told()
  expect(waits.end).toBe('resolved')
})

test('callers are served when they were told, however late in history and however many came behind', async () => {
  const clock = fakeClock(1_790_000_000_000.009)
  const limiter = createLimiter(gcra({ rate: '9/s', burst: 1 }), { clock })
  limiter.consume('k')
  const startUs = clock.nowUs()
  const servedUs: number[] = []
  for (let k = 0; k < 9; k++) void limiter.acquire('k').then(() => servedUs.push(clock.nowUs() - startUs))
  await told()
  for (let k = 1; k <= 9; k++) {
    clock.setUs(startUs + Math.ceil((k * 1_000_000) / 9))
    await told()
  }
  expect(servedUs).toEqual(Array.from({ length: 9 }, (_, k) => Math.ceil(((k + 1) * 1_000_000) / 9)))
})
