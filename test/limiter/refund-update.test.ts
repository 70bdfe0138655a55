/**
 * Permits that remain after a refund leave when they would have left anyway, also if the numbers
 * change in between.
 */
import { expect, test } from 'vitest'
import { createLimiter, fixedWindow, type Limit, slidingLog, slidingWindow } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const MINUTE_MS = 60_000

const CASES: readonly (readonly [name: string, before: Limit, after: Limit, idleInMs: number])[] = [
  ['slidingLog', slidingLog({ limit: 5, window: '15min' }), slidingLog({ limit: 9, window: '15min' }), MINUTE_MS],
  [
    'fixedWindow from the first call',
    fixedWindow({ limit: 5, window: '15min', anchor: 'first' }),
    fixedWindow({ limit: 9, window: '15min', anchor: 'first' }),
    MINUTE_MS,
  ],
  // Felt until its slot of a minute and a half has left: one slot longer.
  [
    'slidingWindow',
    slidingWindow({ limit: 5, window: '15min', slots: 10 }),
    slidingWindow({ limit: 9, window: '15min', slots: 10 }),
    2.5 * MINUTE_MS,
  ],
]

test.each(CASES)('%s', (_, before, after, idleInMs) => {
  const clock = fakeClock()
  const limiter = createLimiter(before as ReturnType<typeof slidingLog>, { clock })
  limiter.consume('k', 2)
  clock.setMs(14 * MINUTE_MS)
  limiter.refund('k', 1)
  expect(limiter.peek('k').resetAfterMs).toBe(idleInMs)
  limiter.update(after as ReturnType<typeof slidingLog>)
  expect(limiter.peek('k').resetAfterMs).toBe(idleInMs)
  clock.setMs(14 * MINUTE_MS + idleInMs)
  expect(limiter.peek('k')).toMatchObject({ remaining: 9, resetAfterMs: 0 })
})
