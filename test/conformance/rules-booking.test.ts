/** Booking ahead: under other numbers, and when a booking is given back. */
import { describe, expect, test } from 'vitest'
import { createLimiter, gcra } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { ALL, BOOKED, LEVELS, onEveryStore, START_MS } from '../support/stories.ts'
import { told } from '../waiting/support.ts'

const [, leaky] = LEVELS[2] as (typeof LEVELS)[number]

describe('R9: a booking is dated at the pace of the state, whatever the numbers of its caller', () => {
  onEveryStore((story) => {
    for (const [type, of] of BOOKED) {
      const plans = { pro: of(1, '100/s') as never }

      story(
        `${type}: one a minute, behind a call at 100/s, is served after 10 ms and not after 30 s`,
        async ({ limiter, clock, reach }) => {
          const api = limiter(of(1, '1/min'), { plans })
          for (const key of ['asked', 'booked', 'waits', 'waits in time']) await api.consume(key, 1, { plan: 'pro' })
          await reach(5)
          expect((await api.peek('asked')).retryAfterMs).toBe(5)
          expect((await api.reserve('booked')).delayMs).toBe(5)
          const served: Record<string, number> = {}
          const note = (key: string) => () => {
            served[key] = clock.nowUs() / 1000 - START_MS
          }
          const waits = [
            api.acquire('waits').then(note('waits')),
            api.acquire('waits in time', { timeoutMs: 20_000 }).then(note('waits in time')),
          ]
          await reach(5)
          await reach(9.999)
          expect(served).toEqual({})
          await reach(10)
          expect(served).toEqual({ waits: 10, 'waits in time': 10 })
          await Promise.all(waits)
          expect(await admitted(api, 'asked')).toBe(true)
        },
      )

      for (const slower of ['1/h', '1/min', '1/10s'] as const) {
        story(
          `${type}: a caller who waits for 1.0 s when the rate becomes ${slower} is served at 1.0 s`,
          async ({ limiter, clock, reach }) => {
            const api = limiter(of(1, '1/s'))
            const served: Record<string, number> = {}
            for (const [key, options] of Object.entries({ waits: {}, 'waits in time': { timeoutMs: 5_000 } })) {
              await api.consume(key)
              api.acquire(key, options).then(
                () => {
                  served[key] = clock.nowUs() / 1000 - START_MS
                },
                (error) => {
                  served[key] = error.code
                },
              )
            }
            await reach(0)
            await reach(500)
            api.update(of(1, slower))
            await reach(999.999)
            expect(served).toEqual({})
            await reach(1_000)
            expect(served).toEqual({ waits: 1_000, 'waits in time': 1_000 })
          },
        )
      }

      story(`${type}: faster numbers are served no sooner than consume says`, async ({ limiter, at }) => {
        const api = limiter(of(1, '1/min'), { plans })
        await api.consume('k')
        at(1)
        expect((await api.consume('k', 1, { plan: 'pro' })).retryAfterMs).toBe(59_999)
        expect((await api.reserve('k', 1, { plan: 'pro' })).delayMs).toBe(59_999)
      })
    }

    story('leakyBucket: the water before a caller leaves at the pace that it has', async ({ limiter }) => {
      const bucket = limiter(leaky(10, '1/s'), { plans: { fast: leaky(10, '10/s') as never } })
      await bucket.consume('k', 5)
      expect((await bucket.consume('k', 1, { plan: 'fast' })).delayMs).toBe(5_000)
    })
  })

  test('a caller who waits alone is served when one who polls would be, under any two sets of numbers', async () => {
    const random = new Random(9)
    const numbers = () => [random.whole(1, 5), `${random.whole(1, 9)}/${random.magnitude(1, 90)}${random.pick(['ms', 's'])}`] as const
    for (let pair = 0; pair < 300; pair++) {
      const [[, of], first, second] = [random.pick(BOOKED), numbers(), numbers()]
      const clock = fakeClock(START_MS)
      const api = createLimiter(of(first[0], first[1] as '1/s'), { clock, plans: { other: of(second[0], second[1] as '1/s') as never } })
      const cost = random.whole(1, second[0])
      const charged = random.whole(1, 2 * first[0])
      for (const key of ['polls', 'waits']) api.charge(key, charged)
      clock.advanceMs(random.whole(0, 3_000) / 1000)
      let servedUs = Number.POSITIVE_INFINITY
      const waits = api.acquire('waits', { cost, plan: 'other' }).then(() => {
        servedUs = clock.nowUs()
      })
      await told()
      for (;;) {
        const { allowed, retryAfterMs } = api.consume('polls', cost, { plan: 'other' })
        if (allowed) break
        clock.advanceMs(retryAfterMs)
        await told()
      }
      expect(servedUs, `${charged} at ${first}, then ${cost} at ${second}`).toBe(clock.nowUs())
      await waits
    }
  })
})

describe('R15: a booking that is given back before its time gives its cost, less what was booked after it', () => {
  onEveryStore((story) => {
    for (const [type, of] of BOOKED) {
      for (const verb of ['settle', 'cancel'] as const) {
        const leave = (decision: { settle(actual: number): unknown; cancel(): unknown }) =>
          verb === 'cancel' ? decision.cancel() : decision.settle(0)

        story(
          `${type}: of four that are booked for 0, 1, 2 and 3 s the third leaves by ${verb}, and the next is told 4 s`,
          async (stage) => {
            const one = stage.limiter(of(1, '1/s'))
            const booked = []
            for (let k = 0; k < 4; k++) booked.push(await one.reserve('k'))
            expect(booked.map(({ delayMs }) => delayMs)).toEqual([0, 1_000, 2_000, 3_000])
            await leave(booked[2] as never)
            const next = await one.reserve('k')
            expect(next.delayMs).toBe(4_000)
            // No booking is behind the last one.
            await leave(next)
            expect((await one.reserve('k')).delayMs).toBe(4_000)
          },
        )

        story(`${type}: of 5 that are booked 2 behind it stay, and 3 come back by ${verb}`, async ({ limiter, at }) => {
          const five = limiter(of(5, '1/s'))
          await five.consume('k', 5)
          const booked = await five.reserve('k', 5)
          expect((await five.reserve('k', 2)).delayMs).toBe(7_000)
          at(4_999.999)
          await leave(booked)
          expect(await five.peek('k', 5)).toMatchObject({ outcome: 'limited', retryAfterMs: 4_000.001 })
        })

        story(`${type}: at its time ${verb} gives back what of it still counts`, async ({ limiter, at }) => {
          const one = limiter(of(1, '1/s'))
          await one.consume('k')
          const booked = await one.reserve('k')
          await one.reserve('k')
          at(1_000)
          await leave(booked)
          expect(await one.peek('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000 })
        })
      }

      story(`${type}: after another pace a booking gives back nothing before its time`, async ({ limiter, at }) => {
        const one = limiter(of(1, '1/s'), { plans: { fast: of(20, '10/s') as never } })
        await one.consume('k')
        const booked = await one.reserve('k')
        at(500)
        await one.consume('k', 1, { plan: 'fast' })
        const before = (await one.peek('k', 0)).resetAfterMs
        await booked.cancel()
        expect((await one.peek('k', 0)).resetAfterMs).toBe(before)
      })

      story(`${type}: a caller who has waited and cancels gives back all of its call`, async ({ limiter, reach }) => {
        const one = limiter(of(1, '1/s'))
        await one.consume('k')
        const waits = one.acquire('k')
        await reach(0)
        await reach(1_000)
        const acquired = await waits
        await acquired.cancel()
        expect(await one.peek('k', 0)).toMatchObject({ remaining: 1, resetAfterMs: 0 })
        await acquired.cancel()
        expect(await admitted(one, 'k')).toBe(true)
        await acquired.settle(0)
        expect(await admitted(one, 'k')).toBe(false)
      })
    }

    story('gcra: driven for 40 s at 10/s while many leave, no second has more than 11 acts', async ({ limiter, at }) => {
      const ten = limiter(gcra({ rate: '10/s', burst: 1 }))
      const random = new Random(15)
      const acts: number[] = []
      let held: { dueMs: number; leavesMs: number; leave: () => unknown }[] = []
      for (let ms = 0; ms < 40_000; ms += 80) {
        at(ms)
        for (const each of held.filter(({ leavesMs, dueMs }) => leavesMs <= ms && ms < dueMs)) await each.leave()
        acts.push(...held.filter(({ leavesMs, dueMs }) => dueMs <= ms && dueMs <= leavesMs).map(({ dueMs }) => dueMs))
        held = held.filter(({ leavesMs, dueMs }) => ms < leavesMs && ms < dueMs)
        const decision = await ten.reserve('k', 1, { maxWaitMs: 2_000 })
        if (!decision.allowed) continue
        const dueMs = ms + decision.delayMs
        // It leaves on a step of the clock before its time, or never.
        const leavesMs = random.chance(0.6) ? ms + 80 * random.whole(1, 25) : Number.POSITIVE_INFINITY
        held.push({ dueMs, leavesMs: leavesMs < dueMs ? leavesMs : Number.POSITIVE_INFINITY, leave: () => decision.settle(0) })
      }
      acts.sort((a, b) => a - b)
      const most = Math.max(...acts.map((from, k) => acts.slice(k).filter((act) => act <= from + 1_000).length))
      expect(acts.length).toBeGreaterThan(100)
      expect(most).toBeLessThanOrEqual(11)
    })

    story('leakyBucket: of four that act after 0, 1, 2 and 3 s the third leaves, and the next is told 4 s', async ({ limiter }) => {
      const bucket = limiter(leaky(10, '1/s'))
      const taken = []
      for (let k = 0; k < 4; k++) taken.push(await bucket.consume('k'))
      expect(taken.map(({ delayMs }) => delayMs)).toEqual([0, 1_000, 2_000, 3_000])
      await taken[2]?.cancel()
      const next = await bucket.consume('k')
      expect(next.delayMs).toBe(4_000)
      await next.cancel()
      expect((await bucket.consume('k')).delayMs).toBe(4_000)
    })

    for (const [type, of] of ALL) {
      for (const verb of ['consume', 'reserve', 'acquire'] as const) {
        story(`${type}: cancel() of ${verb} is settle(0), and each of them works once`, async ({ limiter, at }) => {
          const ten = limiter(of(10, 10))
          const take = (key: string) => (verb === 'acquire' ? ten.acquire(key, { cost: 3 }) : ten[verb](key, 3))
          const keys = { cancelled: await take('cancelled'), settled: await take('settled') }
          at(1)
          for (const key of Object.keys(keys)) await ten.charge(key, 4)
          await keys.cancelled.cancel()
          await keys.settled.settle(0)
          for (const decision of Object.values(keys)) {
            await decision.cancel()
            await decision.settle(0)
            await decision.settle(9)
          }
          const [cancelled, settled] = [await ten.peek('cancelled', 7), await ten.peek('settled', 7)]
          expect({ ...cancelled }).toEqual({ ...settled })
          expect(cancelled.remaining).toBe(6)
        })
      }

      story(`${type}: a refused decision has nothing to give back`, async ({ limiter }) => {
        const ten = limiter(of(10, 10), { maxAheadMs: 0 })
        await ten.consume('k', 9)
        for (const refused of [await ten.consume('k', 2), await ten.reserve('k', 2), await ten.consume('k', 11)]) {
          await refused.cancel()
          await refused.settle(0)
          await refused.settle(5)
        }
        expect((await ten.peek('k', 0)).remaining).toBe(1)
      })

      story(`${type}: a refund is of now, never above idle, and takes no time`, async ({ limiter, at }) => {
        const ten = limiter(of(10, 10))
        await ten.refund('k', 5)
        await ten.consume('k', 4)
        at(1)
        await expect((async () => ten.refund('k', 1, { atMs: START_MS } as never))()).rejects.toMatchObject({ code: 'CONFIG' })
        await ten.refund('k', 1)
        expect((await ten.peek('k', 0)).remaining).toBe(7)
        await ten.refund('k', 10)
        expect((await ten.peek('k', 0)).remaining).toBe(10)
        expect(await admitted(ten, 'k', 10)).toBe(true)
        expect(await admitted(ten, 'k')).toBe(false)
      })
    }
  })
})
