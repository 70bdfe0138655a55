/** Clocks that step back, and clocks that read a time before 1970. */
import { describe, expect } from 'vitest'
import { gcra, slidingWindow, tokenBucket } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { Random } from '../model/random.ts'
import { ALL, BOOKED, LEVELS, onEveryStore } from '../support/stories.ts'

/** How far back a step is waited out, at 5 in 100 s: a sliding window counts a slot longer. */
const windowMs = (type: string) => (type === 'slidingWindow' ? 110_000 : 100_000)

describe('R5: an earlier reading counts as the time of writing, while the step is at most one window', () => {
  onEveryStore((story) => {
    for (const [type, of] of ALL) {
      for (const backMs of [0.001, 1, 7_000, 99_999.999, 100_000]) {
        story(`${type}: a step back of ${backMs} ms changes nothing but that it is waited for`, async ({ limiter, at }) => {
          const five = limiter(of(5, 100), { maxAheadMs: 0 })
          at(0)
          const { resetAfterMs } = await five.consume('k', 3)
          const { retryAfterMs } = await five.peek('k', 3)
          at(-backMs)
          const told = {
            outcome: 'limited',
            remaining: 2,
            retryAfterMs: later(retryAfterMs, backMs),
            resetAfterMs: later(resetAfterMs, backMs),
          }
          for (const verb of ['peek', 'consume'] as const) expect(await five[verb]('k', 3), verb).toMatchObject(told)
          at(later(retryAfterMs, -0.001))
          expect(await admitted(five, 'k', 3)).toBe(false)
          at(retryAfterMs)
          expect(await admitted(five, 'k', 3)).toBe(true)
        })
      }

      for (const beyondMs of [0.001, 1, 3_600_000]) {
        story(
          `${type}: a step of a window and ${beyondMs} ms more dates the state anew, with all that is in use`,
          async ({ limiter, at }) => {
            const five = limiter(of(5, 100), { maxAheadMs: 0 })
            await five.consume('k', 3)
            const backMs = -windowMs(type) - beyondMs
            at(backMs)
            const { outcome, remaining, retryAfterMs } = await five.consume('k', 3)
            expect([outcome, remaining]).toEqual(['limited', 2])
            expect(retryAfterMs).toBeLessThanOrEqual(windowMs(type))
            at(later(backMs, retryAfterMs - 0.001))
            expect(await admitted(five, 'k', 3)).toBe(false)
            at(later(backMs, retryAfterMs))
            expect(await admitted(five, 'k', 3)).toBe(true)
          },
        )
      }

      story(`${type}: debt is kept by both`, async ({ limiter, at }) => {
        const five = limiter(of(5, 100))
        await five.charge('k', 8)
        const { retryAfterMs } = await five.peek('k')
        at(-60_000)
        expect((await five.peek('k')).retryAfterMs).toBe(later(retryAfterMs, 60_000))
        at(-3_600_000)
        expect(await five.charge('k', 0)).toMatchObject({ outcome: 'limited', remaining: 0 })
        await five.refund('k', 3)
        expect((await five.peek('k', 0)).remaining).toBe(0)
        await five.refund('k', 1)
        expect((await five.peek('k', 0)).remaining).toBe(1)
      })
    }

    for (const [type, of] of LEVELS) {
      story(`${type}: the level is the one that was written, to the microsecond`, async ({ limiter, at }) => {
        const five = limiter(of(5, '5/100s'))
        await five.consume('k', 3)
        for (const [ms, retryAfterMs] of [
          [-100_000, 120_000],
          [-40_000, 60_000],
          [10_000, 10_000],
          // One microsecond more than a window.
          [-100_000.001, 20_000],
        ] as const) {
          at(ms)
          expect([ms, (await five.peek('k', 3)).retryAfterMs]).toEqual([ms, retryAfterMs])
        }
      })
    }

    for (const [type, of] of BOOKED) {
      story(`${type}: bookings made by a clock that is behind are dated from the time of writing`, async ({ limiter, at }) => {
        const five = limiter(of(5, '5/100s'), { maxAheadMs: 200_000 })
        await five.consume('k', 5)
        at(-10_000)
        expect((await five.reserve('k')).delayMs).toBe(30_000)
        at(-200_000)
        expect((await five.reserve('k')).delayMs).toBe(40_000)
      })
    }

    story('gcra answers as a token bucket does, however the clock steps', async ({ limiter, at }) => {
      const random = new Random(5)
      const faces = [
        limiter(gcra({ rate: '7/s', burst: 5 }), { name: 'one' }),
        limiter(tokenBucket({ refill: '7/s', capacity: 5 })),
      ] as const
      for (let step = 0, ms = 0; step < 80; step++) {
        ms += random.pick([0, 0, 40, 143, 900, -0.001, -40, -300, -714.286, -714.287, -5_000])
        at(ms)
        const verb = random.pick(['consume', 'consume', 'peek', 'reserve', 'charge'] as const)
        const cost = random.whole(0, 3)
        const [one, other] = [await faces[0][verb]('k', cost), await faces[1][verb]('k', cost)]
        expect(JSON.stringify(one), `step ${step}: ${verb} ${cost} at ${ms} ms`).toBe(JSON.stringify(other))
      }
    })

    story('of two limits the one that is in use keeps its count; the one that was idle may be fresh', async ({ limiter, at }) => {
      const limits = { burst: gcra({ rate: '30/s', burst: 8 }), minute: slidingWindow({ limit: 29, window: '1min' }) }
      const both = limiter(limits)
      await both.consume('k', { burst: 8, minute: 20 })
      // After 267 ms nothing of the burst is in use, and a store may forget it with this write.
      at(500)
      await both.refund('k', { burst: 0, minute: 1 })
      at(-200)
      const { parts } = await both.peek('k', { burst: 1, minute: 1 })
      expect(parts.minute).toMatchObject({ outcome: 'allowed', remaining: 10 })
      expect([
        ['limited', 0],
        ['allowed', 8],
      ]).toContainEqual([parts.burst.outcome, parts.burst.remaining])
      const { retryAfterMs } = await both.peek('k', { burst: 0, minute: 11 })
      expect(retryAfterMs).toBeGreaterThan(60_000)
    })
  })
})

describe('R10: times are 0 to 2^52 us, and a clock that reads less is read as 0', () => {
  onEveryStore((story) => {
    for (const [type, of] of ALL) {
      story(`${type}: until 1970 time stands still at 0`, async ({ limiter, clock }) => {
        const five = limiter(of(5, 10))
        clock.setMs(-5_000)
        const { atMs, resetAfterMs } = await five.consume('k', 3)
        const { retryAfterMs } = await five.peek('k', 3)
        expect(atMs).toBe(0)
        for (const ms of [-5_000, -1, -0.001, 0]) {
          clock.setMs(ms)
          expect(await five.peek('k', 3), `${ms}`).toMatchObject({ outcome: 'limited', remaining: 2, retryAfterMs, resetAfterMs, atMs: 0 })
        }
        clock.setMs(later(retryAfterMs, -0.001))
        expect(await admitted(five, 'k', 3)).toBe(false)
        clock.setMs(retryAfterMs)
        expect(await admitted(five, 'k', 3)).toBe(true)
      })

      story(`${type}: what was written in this century is read before 1970 with all that is in use`, async ({ limiter, clock }) => {
        const five = limiter(of(5, 10))
        await five.consume('k', 5)
        clock.setMs(-5_000)
        const { outcome, remaining, retryAfterMs, atMs } = await five.consume('k')
        expect([outcome, remaining, atMs]).toEqual(['limited', 0, 0])
        expect(retryAfterMs).toBeLessThanOrEqual(11_000)
        clock.setMs(retryAfterMs)
        expect(await admitted(five, 'k')).toBe(true)
      })
    }
  })
})

/** Adding milliseconds would leave a rest behind the microseconds. */
function later(ms: number, byMs: number): number {
  return (Math.round(ms * 1000) + Math.round(byMs * 1000)) / 1000
}
