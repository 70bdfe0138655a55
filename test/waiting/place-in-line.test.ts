/**
 * A wait whose place in line cannot be reached in time is refused at once, so no caller waits in
 * vain.
 */
import { expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, slidingLog, slidingWindow, WaitError } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { noUnhandledRejections, told } from './support.ts'

noUnhandledRejections()

test.each([
  ['fixedWindow', fixedWindow({ limit: 1, window: '20s' }), 3],
  ['slidingWindow', slidingWindow({ limit: 1, window: '20s' }), 3],
  ['slidingLog', slidingLog({ limit: 1, window: '20s' }), 3],
  ['gcra that is booked a second ahead', gcra({ rate: '1/20s', burst: 1 }), 3],
])('5,000 who would wait 30 s at a %s: few are held, the others are told at once', async (_, limit, most) => {
  const limiter = createLimiter(limit, { clock: fakeClock(), maxAheadMs: 1_000 })
  limiter.consume('k')
  const refused: unknown[] = []
  for (let k = 0; k < 5_000; k++) limiter.acquire('k', { timeoutMs: 30_000 }).catch((error) => refused.push(error))
  await told()
  expect(limiter.waiting('k')).toBeLessThanOrEqual(most)
  expect(refused.length).toBe(5_000 - limiter.waiting('k'))
  for (const error of refused) {
    if (!(error instanceof WaitError && error.code === 'TIMEOUT' && error.decision?.allowed === false)) expect(error).toBe('a refusal')
  }
  limiter.close()
  await told()
})

test('callers that can be served in time wait, however many they are', async () => {
  const clock = fakeClock()
  const limiter = createLimiter(fixedWindow({ limit: 100, window: '1s' }), { clock })
  limiter.consume('k', 100)
  let served = 0
  for (let k = 0; k < 1_000; k++) void limiter.acquire('k', { timeoutMs: 10_000 }).then(() => served++)
  await told()
  expect(limiter.waiting('k')).toBe(1_000)
  clock.setMs(10_000)
  await told()
  expect(served).toBe(1_000)
})
