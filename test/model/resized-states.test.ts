/** States whose size depends on the numbers: changing them moves nothing of anybody else's. */
import { describe, expect, test } from 'vitest'
import type { AsyncStore } from '../../src/index.ts'
import { createLimiter, gcra, slidingLog, slidingWindow } from '../../src/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'
import { storeCases } from '../support/stores.ts'

const KEYS = ['a', 'b', 'c', 'd']
const SIZES = [2, 60, 1, 100, 9]

describe.each(storeCases)('on $name', ({ open }) => {
  test('a window that is cut into other slots leaves the other keys and the other limits alone', async () => {
    const { store, close } = await open()
    const limits = (slots: number) => ({
      first: slidingWindow({ limit: 1_000, window: '1d', slots }),
      middle: gcra({ rate: '1/d', burst: 1_000 }),
      last: slidingLog({ limit: Math.min(slots, 20), window: '1d' }),
    })
    const clock = fakeClock(1_700_000_000_000)
    const limiter = createLimiter(limits(3), { name: 'resized', store: store as AsyncStore, clock, maxAheadMs: 0 })
    for (const [k, key] of KEYS.entries()) await limiter.consume(key, { first: 10 * (k + 1), middle: k + 1, last: 1 })
    for (const slots of SIZES) {
      limiter.update(limits(slots))
      for (const [k, key] of KEYS.entries()) {
        const { parts } = await limiter.peek(key, 0)
        expect([parts.first.remaining, parts.middle.remaining, parts.last.remaining], `${key} with ${slots}`).toEqual([
          1_000 - 10 * (k + 1),
          1_000 - (k + 1),
          Math.min(slots, 20) - 1,
        ])
      }
    }
    close()
  })

  test('a window of one limit that is cut into more slots leaves the other keys alone', async () => {
    const { store, close } = await open()
    const limit = (slots: number) => slidingWindow({ limit: 1_000, window: '1d', slots })
    const clock = fakeClock(1_700_000_000_000)
    const limiter = createLimiter(limit(2), { name: 'one', store: store as AsyncStore, clock })
    for (const [k, key] of KEYS.entries()) await limiter.consume(key, 10 * (k + 1))
    for (const slots of SIZES) {
      limiter.update(limit(slots))
      for (const [k, key] of KEYS.entries())
        expect((await limiter.peek(key, 0)).remaining, `${key} with ${slots}`).toBe(1_000 - 10 * (k + 1))
    }
    close()
  })

  test('a limit that took no part when the numbers changed is still read under its old ones', async () => {
    const { store, close } = await open()
    const limits = (slots: number) => ({
      window: slidingWindow({ limit: 1_000, window: '1d', slots }),
      pace: gcra({ rate: '1/min', burst: 1 }),
    })
    const clock = fakeClock(1_700_000_000_000)
    const limiter = createLimiter(limits(50), { name: 'part', store: store as AsyncStore, clock })
    await limiter.consume('k', { window: 10, pace: 1 })
    // A reservation of the pace alone: cancelling it is a step without the window.
    const reserved = await limiter.reserve('k', { window: 0, pace: 1 })
    expect(reserved.delayMs).toBe(60_000)
    limiter.update(limits(3))
    await reserved.cancel()
    const { parts } = await limiter.peek('k', 0)
    expect([parts.window.remaining, parts.pace.resetAfterMs]).toEqual([990, 60_000])
    close()
  })

  test('a window and a log answer a reservation like a take, and cancelling it gives it back', async () => {
    const { store, close } = await open()
    const limits = { window: slidingWindow({ limit: 5, window: '1d' }), log: slidingLog({ limit: 5, window: '1d' }) }
    const limiter = createLimiter(limits, { name: 'reserve', store: store as AsyncStore, clock: fakeClock(1_700_000_000_000) })
    const reserved = await limiter.reserve('k', 2)
    expect([reserved.outcome, reserved.delayMs]).toEqual(['allowed', 0])
    expect((await limiter.reserve('k', 4)).outcome).toBe('limited')
    await reserved.cancel()
    expect((await limiter.peek('k', 0)).remaining).toBe(5)
    close()
  })
})
