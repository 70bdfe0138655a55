/** Logs, whose permits have a time each, and the slots of a sliding window. */
import { describe, expect, test } from 'vitest'
import { type Duration, type Limiter, slidingLog, slidingWindow } from '../../src/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { onEveryStore, type Stage } from '../support/stories.ts'

/** What is left at some times, in milliseconds since the story began. */
async function leftAt(times: readonly number[], limiter: unknown, { at }: Pick<Stage, 'at'>, plan?: string): Promise<number[]> {
  const left: number[] = []
  for (const ms of times) {
    at(ms)
    const options = plan === undefined ? undefined : { plan: plan as never }
    left.push((await (limiter as Limiter).peek('k', 0, options)).remaining)
  }
  return left
}

describe('R6: a log gives each permit its own time, debt too', () => {
  onEveryStore((story) => {
    story('15 charged over a log of 10 leave a second later, and not with 1 that was charged 500 ms after them', async (stage) => {
      const log = stage.limiter(slidingLog({ limit: 10, window: '1s' }))
      expect(await log.charge('k', 15)).toMatchObject({ outcome: 'limited', retryAfterMs: 1_000 })
      stage.at(500)
      expect(await log.charge('k')).toMatchObject({ outcome: 'limited', remaining: 0, retryAfterMs: 500, resetAfterMs: 1_000 })
      stage.at(1_001)
      expect(await log.peek('k')).toMatchObject({ outcome: 'allowed', remaining: 9, resetAfterMs: 499 })
      expect(await leftAt([1_499.999, 1_500], log, stage)).toEqual([9, 10])
    })

    story('a charge under a smaller limit keeps the time of each', async (stage) => {
      const small = slidingLog({ limit: 3, window: '1s' })
      const log = stage.limiter(slidingLog({ limit: 5, window: '1s' }), { plans: { small: small as never } })
      for (const ms of [0, 100, 200, 300, 400]) {
        stage.at(ms)
        await log.consume('k')
      }
      stage.at(450)
      expect(await log.charge('k', 1, { plan: 'small' })).toMatchObject({ outcome: 'limited', retryAfterMs: 850, resetAfterMs: 1_000 })
      expect(await leftAt([999.999, 1_000, 1_100, 1_299.999, 1_300, 1_400], log, stage)).toEqual([0, 0, 1, 2, 3, 4])
      expect(await leftAt([1_449.999, 1_450], log, stage, 'small')).toEqual([2, 3])
    })

    story('a charge under a longer window keeps the time of each that counted until then', async (stage) => {
      const long = slidingLog({ limit: 10, window: '2s' })
      const log = stage.limiter(slidingLog({ limit: 10, window: '1s' }), { plans: { long: long as never } })
      for (const ms of [0, 300, 600]) {
        stage.at(ms)
        await log.consume('k')
      }
      // Until a charge, the window of the state counts for every caller.
      expect(await leftAt([700, 1_000, 1_200], log, stage, 'long')).toEqual([7, 8, 8])
      await log.charge('k', 1, { plan: 'long' })
      expect(await leftAt([1_200, 2_299.999, 2_300, 2_600, 3_200], log, stage)).toEqual([7, 7, 8, 9, 10])
    })

    story('a charge under a shorter window drops what counts no longer by it, and keeps the time of each other', async (stage) => {
      const short = slidingLog({ limit: 10, window: '500ms' })
      const log = stage.limiter(slidingLog({ limit: 10, window: '1s' }), { plans: { short: short as never } })
      for (const ms of [0, 300, 600]) {
        stage.at(ms)
        await log.consume('k')
      }
      expect(await leftAt([700], log, stage, 'short')).toEqual([7])
      await log.charge('k', 1, { plan: 'short' })
      expect(await leftAt([700, 799.999, 800, 1_100, 1_200], log, stage)).toEqual([7, 7, 8, 9, 10])
    })

    story('what is given back leaves from the newest on, and of a decision from its own time', async (stage) => {
      const log = stage.limiter(slidingLog({ limit: 10, window: '1s' }))
      const first = await log.consume('k', 4)
      stage.at(400)
      await log.charge('k', 9)
      await log.refund('k', 2)
      // 4 of 0 ms and 7 of 400 ms.
      await first.settle(1)
      expect(await leftAt([400, 999.999, 1_000, 1_399.999, 1_400], log, stage)).toEqual([2, 2, 3, 3, 10])
    })
  })
})

describe('R7: a slot takes whole microseconds, and a window has 1 to 100 of them', () => {
  const sliding = (window: Duration, slots?: number) => slidingWindow({ limit: 10, window, ...(slots === undefined ? {} : { slots }) })

  test('60 slots of 1 s are refused, and the message names 50 and 64', () => {
    const refused = { code: 'CONFIG', message: expect.stringMatching(/\b50\b.*\b64\b/) }
    expect(() => sliding('1s', 60)).toThrow(expect.objectContaining(refused))
    expect([sliding('1s', 50).slots, sliding('1s', 64).slots, sliding('1min', 60).slots]).toEqual([50, 64, 60])
  })

  test('100 slots are the most', () => {
    expect(sliding('1s', 100).slots).toBe(100)
    for (const slots of [0, -1, 2.5, 101, 125, 1_000]) {
      expect(() => sliding('1s', slots), `${slots}`).toThrow(expect.objectContaining({ code: 'CONFIG' }))
    }
  })

  /** Windows in microseconds that 10 does not divide, or that are shorter than 10. */
  const DEFAULTS: readonly (readonly [windowUs: number, slots: number])[] = [
    [1, 1],
    [7, 7],
    [9, 9],
    [10, 10],
    [11, 1],
    [12, 6],
    [13, 1],
    [14, 7],
    [333_334, 2],
    [333_333, 9],
    [1_000_008, 9],
    [1_000_000, 10],
  ]

  test.each(DEFAULTS)('a window of %i us has %i slots where none are asked for', (windowUs, slots) => {
    expect(sliding(`${windowUs}us`).slots).toBe(slots)
  })

  onEveryStore((story) => {
    story('such windows admit their limit, and again at the exact microsecond', async ({ limiter, clock }) => {
      for (const [windowUs, slots] of DEFAULTS) {
        const name = `of-${windowUs}`
        const window = limiter(sliding(`${windowUs}us`), { name })
        clock.setUs(Math.ceil(clock.nowUs() / windowUs) * windowUs)
        expect((await window.consume('k', 10)).remaining, name).toBe(0)
        const { retryAfterMs, resetAfterMs } = await window.consume('k', 10)
        // All of them count until their slot has left the window.
        expect([retryAfterMs, resetAfterMs], name).toEqual(Array(2).fill((windowUs + windowUs / slots) / 1000))
        clock.setUs(clock.nowUs() + Math.round(retryAfterMs * 1000) - 1)
        expect(await admitted(window, 'k', 10), name).toBe(false)
        clock.setUs(clock.nowUs() + 1)
        expect(await admitted(window, 'k', 10), name).toBe(true)
      }
    })

    story('a window of 100 slots counts each by itself', async (stage) => {
      const window = stage.limiter(slidingWindow({ limit: 100, window: '1s', slots: 100 }))
      for (let ms = 0; ms < 1_000; ms += 10) {
        stage.at(ms)
        expect(await admitted(window, 'k')).toBe(true)
      }
      expect(await leftAt([1_009.999, 1_010, 1_500, 1_999.999, 2_000], window, stage)).toEqual([0, 1, 50, 99, 100])
    })
  })
})
