/**
 * Settling: what was too little is charged now, and what was too much is given back while it
 * still counts.
 */
import { describe, expect } from 'vitest'
import { fixedWindow, gcra, slidingWindow, tokenBucket } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { ALL, BOOKED, LEVELS, onEveryStore } from '../support/stories.ts'

describe('R4: upwards a settlement is charged now, on every algorithm', () => {
  onEveryStore((story) => {
    story(
      "a window that began with its first call keeps its end and its count, whatever an older call's cost was",
      async ({ limiter, at }) => {
        const window = limiter(fixedWindow({ limit: 100, window: '1s', anchor: 'first' }))
        await window.consume('k')
        at(950)
        const decision = await window.consume('k')
        at(1_900)
        expect(await window.consume('k', 98)).toMatchObject({ allowed: true, resetAfterMs: 1_000 })
        at(1_940)
        await decision.settle(2)
        expect(await window.peek('k')).toMatchObject({ remaining: 1, resetAfterMs: 960 })
        at(1_950)
        expect(await window.consume('k', 100)).toMatchObject({ outcome: 'limited', remaining: 1, retryAfterMs: 950 })
        at(2_899.999)
        expect(await admitted(window, 'k', 100)).toBe(false)
        at(2_900)
        expect(await admitted(window, 'k', 100)).toBe(true)
      },
    )

    story('where no window is running, the rest of an older call begins one', async ({ limiter, at }) => {
      const window = limiter(fixedWindow({ limit: 100, window: '1s', anchor: 'first' }))
      const decision = await window.consume('k')
      at(1_500)
      await decision.settle(3)
      expect(await window.peek('k')).toMatchObject({ remaining: 98, resetAfterMs: 1_000 })
    })

    story('a call each 250 ms that lasts 55 s, estimated at 20 and really 25: no minute of 1,000 admits more than 50', async (stage) => {
      const window = stage.limiter(fixedWindow({ limit: 1_000, window: '1min', anchor: 'first' }))
      /** Calls admitted in each window, and what was counted in it. */
      const windows: { startMs: number; calls: number; counted: number }[] = []
      const under: { endMs: number; settle: () => Promise<void> }[] = []
      const running = (ms: number) => {
        const last = windows.at(-1)
        if (last !== undefined && ms < last.startMs + 60_000) return last
        windows.push({ startMs: ms, calls: 0, counted: 0 })
        return windows.at(-1) as (typeof windows)[number]
      }
      for (let ms = 0; ms < 180_000; ms += 250) {
        stage.at(ms)
        while ((under[0]?.endMs ?? Number.POSITIVE_INFINITY) <= ms) {
          await under.shift()?.settle()
          running(ms).counted += 5
        }
        const decision = await window.consume('k', 20)
        const present = running(ms)
        // Every unit is counted in the window of its time, and none in the past.
        expect(decision.allowed, `at ${ms} ms`).toBe(present.counted + 20 <= 1_000)
        if (!decision.allowed) continue
        present.calls += 1
        present.counted += 20
        expect([decision.remaining, decision.resetAfterMs]).toEqual([1_000 - present.counted, present.startMs + 60_000 - ms])
        under.push({ endMs: ms + 55_000, settle: () => decision.settle(25) })
      }
      expect(windows.length).toBe(3)
      for (const { calls, counted } of windows) {
        expect(calls).toBeGreaterThan(30)
        expect(calls).toBeLessThanOrEqual(50)
        expect(counted).toBeLessThanOrEqual(1_250)
      }
    })

    for (const [type, of] of ALL) {
      story(`${type}: a settlement upwards answers as a charge of now does, from then on`, async ({ limiter, at }) => {
        const ten = limiter(of(10, 10))
        /** When it is settled, after a charge of so much: within its window, after it, and of nothing. */
        const cases = [
          [5_000, 2],
          [31_000, 2],
          [5_000, 0],
        ] as const
        for (const [k, [settledMs, cost]] of cases.entries()) {
          const startMs = k * 100_000
          const [settled, twin] = [`settled-${k}`, `charged-${k}`]
          at(startMs)
          const decision = await ten.consume(settled, cost)
          await ten.consume(twin, cost)
          at(startMs + settledMs)
          await decision.settle(cost + 7)
          await ten.charge(twin, 7)
          for (const ms of [0, 2_000, 4_999.999, 5_000, 7_000, 9_999.999, 10_000, 10_500, 11_000]) {
            at(startMs + settledMs + ms)
            expect({ ...(await ten.peek(settled, 6)) }, `${ms} ms later`).toEqual({ ...(await ten.peek(twin, 6)) })
          }
        }
      })
    }
  })
})

describe('R4: downwards a settlement gives back what of that charge still counts', () => {
  onEveryStore((story) => {
    story('gcra: 10 at 1/s, 5 s later 5 more at 10/s, the first settled to 0: 5 stay in use', async ({ limiter, at }) => {
      const fast = gcra({ rate: '10/s', burst: 10 })
      const changing = limiter(gcra({ rate: '1/s', burst: 10 }), { plans: { fast: fast as never } })
      const first = await changing.consume('k', 10)
      at(5_000)
      expect((await changing.consume('k', 5, { plan: 'fast' })).remaining).toBe(0)
      await first.settle(0)
      expect(await changing.peek('k', 0, { plan: 'fast' })).toMatchObject({ remaining: 5, resetAfterMs: 500 })
    })

    for (const [type, of] of BOOKED) {
      story(`${type}: after another pace it is its share of the time that was left, in whole permits`, async ({ limiter, at }) => {
        const plans = { fast: of(10, '10/s') as never }
        for (const [ms, given] of [
          [0, 3],
          [1, 2],
          [1_000, 2],
          [1_001, 1],
          [2_000, 1],
          [2_001, 0],
          [3_000, 0],
        ] as const) {
          const changing = limiter(of(10, '1/s'), { name: `after-${ms}`, plans })
          at(0)
          const first = await changing.consume('k', 3)
          at(ms)
          await changing.charge('k', 9, { plan: 'fast' })
          const before = (await changing.peek('k', 0)).resetAfterMs
          await first.settle(0)
          const after = (await changing.peek('k', 0)).resetAfterMs
          expect([ms, Math.round((before - after) * 1000)]).toEqual([ms, given * 100_000])
        }
      })

      story(`${type}: a call that is given back at once leaves no part of a permit behind`, async ({ limiter }) => {
        const thirds = limiter(of(10, '3/7s'), { plans: { whole: of(10, '1/s') as never } })
        const first = await thirds.consume('k')
        await thirds.consume('k')
        await first.settle(0)
        expect(await thirds.peek('k', 0)).toMatchObject({ remaining: 9, resetAfterMs: 2_333.334 })
        const before = await thirds.consume('changed')
        await thirds.consume('changed', 1, { plan: 'whole' })
        await before.settle(0)
        expect(await thirds.peek('changed', 0)).toMatchObject({ remaining: 9, resetAfterMs: 1_000 })
        const alone = await thirds.consume('alone')
        await alone.settle(0)
        expect((await thirds.peek('alone', 0)).resetAfterMs).toBe(0)
      })
    }

    for (const [type, of] of LEVELS) {
      story(`${type}: a charge from before a step back of many windows gives back what it left`, async ({ limiter, at }) => {
        const ten = limiter(of(10, '1/s'))
        const decision = await ten.consume('k', 10)
        at(-100_000)
        await ten.charge('k', 1)
        await decision.settle(3)
        expect((await ten.peek('k', 0)).remaining).toBe(6)
      })
    }

    story('tokenBucket: no more than would still be in use of it, had no call come after it', async ({ limiter, at }) => {
      const bucket = limiter(tokenBucket({ capacity: 10, refill: '1/s' }))
      const [first, second] = [await bucket.consume('k', 5), await bucket.consume('k', 5)]
      at(6_000)
      await bucket.consume('k', 6)
      await second.settle(1)
      expect((await bucket.peek('k', 0)).remaining).toBe(4)
      await first.settle(1)
      expect((await bucket.peek('k', 0)).remaining).toBe(4)
    })

    story('slidingWindow: it comes out of the slot that it was counted in', async ({ limiter, at }) => {
      const window = limiter(slidingWindow({ limit: 10, window: '1s', slots: 10 }))
      const first = await window.consume('k', 4)
      at(100)
      await window.consume('k', 3)
      at(500)
      await first.settle(1)
      // The rest of its slot fades from 1,000 to 1,100 ms, the other's a slot later.
      for (const [ms, left] of [
        [500, 6],
        [1_099.999, 6],
        [1_100, 7],
        [1_200, 10],
      ] as const) {
        at(ms)
        expect([ms, (await window.peek('k', 0)).remaining]).toEqual([ms, left])
      }
    })

    for (const [type, of] of ALL) {
      story(`${type}: a clock that has stepped back gives back what the charge left, and no more`, async ({ limiter, at }) => {
        const ten = limiter(of(10, 10))
        await ten.consume('k', 3)
        at(1)
        const decision = await ten.consume('k', 4)
        at(-5_000)
        await decision.settle(1)
        expect((await ten.peek('k', 0)).remaining).toBe(6)
        await decision.settle(0)
        expect((await ten.peek('k', 0)).remaining).toBe(6)
      })

      story(`${type}: late, twice and after reset it gives back nothing`, async ({ limiter, at }) => {
        const ten = limiter(of(10, 10))
        const left = async () => (await ten.peek('k', 0)).remaining
        const late = await ten.consume('k', 4)
        at(late.resetAfterMs)
        const twice = await ten.consume('k', 4)
        await late.settle(0)
        expect(await left(), 'late').toBe(6)
        await twice.settle(1)
        for (const cost of [0, 1, 4, 9]) await twice.settle(cost)
        expect(await left(), 'twice').toBe(9)
        const [less, more] = [await ten.consume('k', 3), await ten.consume('k')]
        await ten.reset('k')
        await less.settle(0)
        expect(await ten.peek('k', 0), 'after reset').toMatchObject({ remaining: 10, resetAfterMs: 0 })
        await more.settle(3)
        expect(await left(), 'after reset, upwards').toBe(8)
      })
    }
  })
})
