/**
 * Numbers: which of them fit, how much may be in use beyond a limit, and products that no double
 * holds.
 */
import { describe, expect, test } from 'vitest'
import { limitFrom } from '../../src/config/index.ts'
import { createLimiter, fixedWindow, type Limit, slidingLog, slidingWindow } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { BOOKED, LEVELS, onEveryStore } from '../support/stories.ts'

const DAY_MS = 86_400_000
const DAY_US = 86_400_000_000n
/** What a pace may be kept slower by: less than this part of it. */
const SLOWER_BY = 1_000_000_000n

const dividedUp = (a: bigint, b: bigint) => (a + b - 1n) / b
/** A whole number of microseconds as verdicts tell it. */
const inMs = (us: bigint) => Number(us) / 1000

describe('R1: a pace is kept as asked, or slower by less than one in 10^9, or refused', () => {
  onEveryStore((story) => {
    for (const [type, level] of LEVELS) {
      story(`${type}: 99,991 a day with all of it as burst is full again a day later, within 87 us`, async ({ limiter, at }) => {
        const daily = limiter(level(99_991, '99991/d'))
        const { allowed, remaining, resetAfterMs } = await daily.consume('k', 99_991)
        expect([allowed, remaining]).toEqual([true, 0])
        expect(resetAfterMs).toBeGreaterThanOrEqual(DAY_MS)
        expect(resetAfterMs).toBeLessThanOrEqual(DAY_MS + 0.087)
        at(DAY_MS - 0.001)
        expect(await admitted(daily, 'k', 99_991)).toBe(false)
        at(resetAfterMs)
        expect(await admitted(daily, 'k', 99_991)).toBe(true)
      })
    }

    story("34,567 in 30 days, from a customer's row, are taken and told as asked", async ({ limiter }) => {
      const limit = limitFrom(JSON.parse('{ "type": "gcra", "rate": "34567/30d", "burst": 34567 }'))
      expect(JSON.parse(JSON.stringify(limit))).toEqual({ type: 'gcra', rate: '34567/30d', burst: 34_567 })
      const monthly = limiter(limit)
      const { allowed, limit: told, resetAfterMs } = await monthly.consume('k', 34_567)
      expect([allowed, told]).toEqual([true, 34_567])
      expect(resetAfterMs).toBeGreaterThanOrEqual(30 * DAY_MS)
      expect(resetAfterMs).toBeLessThanOrEqual(30 * DAY_MS * (1 + 1e-9) + 0.001)
      const { retryAfterMs } = await monthly.consume('k')
      const least = inMs(dividedUp(30n * DAY_US, 34_567n))
      expect(retryAfterMs).toBeGreaterThanOrEqual(least)
      expect(retryAfterMs).toBeLessThanOrEqual(least + 0.002)
    })
  })

  test.each(LEVELS)(
    '%s: one in 30 days with a burst of 1,000, 82 years, is refused, and the error names the nearest that works',
    (_, of) => {
      const made = (burst: number) => () => createLimiter(of(burst, '1/30d'))
      expect(made(1_000)).toThrow(expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(/\b868\b/) }))
      expect(made(869)).toThrow(expect.objectContaining({ code: 'CONFIG' }))
      expect(made(868)).not.toThrow()
    },
  )
})

describe('R2: one more capacity always lands, and what is in use has a bound', () => {
  onEveryStore((story) => {
    for (const [type, level] of LEVELS) {
      story(`${type}: 25,000 charged to a full 25,000 at 999,983 a day wait 2,160,123.123 ms`, async ({ limiter, at }) => {
        const daily = limiter(level(25_000, '999983/d'))
        await daily.consume('k', 25_000)
        expect(await daily.charge('k', 25_000)).toMatchObject({ outcome: 'limited', remaining: 0, retryAfterMs: 2_160_123.123 })
        expect(await daily.consume('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 2_160_123.123 })
        at(2_160_123.122)
        expect(await admitted(daily, 'k')).toBe(false)
        at(2_160_123.123)
        expect(await admitted(daily, 'k')).toBe(true)
      })

      story(`${type}: a full 52,124 at the same rate has room for as much debt, and waits 4,503,677 ms`, async ({ limiter }) => {
        const daily = limiter(level(52_124, '999983/d'))
        await daily.consume('k', 52_124)
        const { outcome, retryAfterMs } = await daily.charge('k', 52_124)
        const least = dividedUp(52_125n * DAY_US, 999_983n)
        expect([outcome, Math.round(retryAfterMs)]).toEqual(['limited', 4_503_677])
        expect(retryAfterMs).toBeGreaterThanOrEqual(inMs(least))
        expect(retryAfterMs).toBeLessThanOrEqual(inMs(least + dividedUp(least, SLOWER_BY) + 1n))
      })

      // 2^52 microseconds are 52,124 days and a half.
      story(`${type}: 1e9 charged at one a day are 52,124 in use, and nothing is free`, async ({ limiter }) => {
        const daily = limiter(level(1_000, '1/d'))
        const debt = { outcome: 'limited', remaining: 0, retryAfterMs: 51_125 * DAY_MS, resetAfterMs: 52_124 * DAY_MS }
        expect(await daily.charge('charged', 1_000_000_000)).toMatchObject(debt)
        expect(await daily.charge('charged', 1_000_000_000)).toMatchObject(debt)
        const decision = await daily.consume('settled')
        await decision.settle(1_000_000_000)
        expect(await daily.peek('settled')).toMatchObject(debt)
      })
    }

    story('a log of 10 holds 20 at most, however much is charged', async ({ limiter, at }) => {
      const log = limiter(slidingLog({ limit: 10, window: '1s' }))
      expect(await log.charge('k', 15)).toMatchObject({ outcome: 'limited', remaining: 0, retryAfterMs: 1_000 })
      at(100)
      await log.charge('k', 1_000_000_000)
      at(999.999)
      expect(await log.peek('k')).toMatchObject({ outcome: 'limited', retryAfterMs: 0.001 })
      at(1_000)
      expect(await log.peek('k', 0)).toMatchObject({ remaining: 5, resetAfterMs: 100 })
    })

    const windows = [fixedWindow({ limit: 1_000_000_000, window: '1h' }), slidingWindow({ limit: 1_000_000_000, window: '1h' })]
    for (const limit of windows) {
      story(`a ${limit.type} has 4,294,967,295 in use at most`, async ({ limiter }) => {
        const window = limiter(limit as Limit)
        for (let k = 0; k < 6; k++) await window.charge('k', 1_000_000_000)
        for (let k = 0; k < 3; k++) await window.refund('k', 1_000_000_000)
        expect((await window.peek('k', 0)).remaining).toBe(0)
        await window.refund('k', 1_000_000_000)
        expect((await window.peek('k', 0)).remaining).toBe(5_000_000_000 - 4_294_967_295)
      })
    }
  })
})

describe('R3: no answer is rounded, however large the products', () => {
  /** Of a count in the oldest slot, at an offset into the slot of now. */
  interface Fading {
    readonly limit: number
    readonly window: '1min' | '30d'
    readonly slotUs: number
    readonly count: number
    readonly offsetUs: number
    readonly cost: number
  }
  const FADING: readonly Fading[] = [
    { limit: 7, window: '1min', slotUs: 6_000_000, count: 7, offsetUs: 1_234_567, cost: 2 },
    { limit: 999_999_937, window: '30d', slotUs: 259_200_000_000, count: 999_999_937, offsetUs: 100_000_000_019, cost: 777_777_777 },
    { limit: 1_000_000_000, window: '1min', slotUs: 6_000_000, count: 4_294_967_295, offsetUs: 5_000_003, cost: 999_999_999 },
  ]

  /** Computed by fractions: what is in use, and how long until `cost` fits beside it. */
  function exactly({ limit, slotUs, count, offsetUs, cost }: Fading) {
    const [all, slot, offset] = [BigInt(count), BigInt(slotUs), BigInt(offsetUs)]
    const used = dividedUp(all * (slot - offset), slot)
    const fitsUs = slot - (BigInt(limit - cost) * slot) / all
    return { remaining: Math.max(0, limit - Number(used)), retryAfterMs: inMs(fitsUs - offset) }
  }

  test('a slot of 6 s: 2 of 7 come after 479,719 us', () => {
    expect(exactly(FADING[0] as Fading)).toEqual({ remaining: 1, retryAfterMs: 479.719 })
  })

  onEveryStore((story) => {
    for (const fading of FADING) {
      const { limit, window, slotUs, count, offsetUs, cost } = fading
      story(`${count} in a slot of ${slotUs} us fade to room for ${cost} at the exact microsecond`, async ({ limiter, clock }) => {
        const sliding = limiter(slidingWindow({ limit, window, slots: 10 }))
        const startUs = Math.ceil(clock.nowUs() / slotUs) * slotUs
        clock.setUs(startUs)
        for (let left = count; left > 0; left -= 1_000_000_000) await sliding.charge('k', Math.min(left, 1_000_000_000))
        const askedUs = startUs + 10 * slotUs + offsetUs
        clock.setUs(askedUs)
        const { remaining, retryAfterMs } = exactly(fading)
        expect(await sliding.consume('k', cost)).toMatchObject({ outcome: 'limited', remaining, retryAfterMs })
        clock.setUs(askedUs + Math.round(retryAfterMs * 1000) - 1)
        expect(await admitted(sliding, 'k', cost)).toBe(false)
        clock.setUs(askedUs + Math.round(retryAfterMs * 1000))
        expect(await admitted(sliding, 'k', cost)).toBe(true)
      })
    }

    /** Permits in microseconds, in lowest terms. */
    const SLOW = { rate: '999983/d', permits: 999_983n, us: DAY_US } as const
    const FAST = { rate: '7/13s', permits: 7n, us: 13_000_000n } as const
    for (const [type, level] of BOOKED) {
      for (const [from, to] of [[SLOW, FAST] as const, [FAST, SLOW] as const]) {
        story(
          `${type}: what ${from.rate} has in use is the same at ${to.rate}, rounded up by less than a microsecond`,
          async ({ limiter, clock }) => {
            const moved = limiter(level(25_000, from.rate), { plans: { other: level(25_000, to.rate) as never } })
            await moved.consume('k', 24_990)
            clock.setUs(clock.nowUs() + 123_457)
            const before = 24_990n * from.us - 123_457n * from.permits
            const after = dividedUp(before * to.us, from.us) + to.us
            const { resetAfterMs } = await moved.consume('k', 1, { plan: 'other' })
            expect(resetAfterMs).toBe(inMs(dividedUp(after, to.permits)))
          },
        )
      }
    }
  })
})
