/** A limit of 0: nothing is admitted, what was used is written down, and other numbers lead out. */
import { describe, expect, test } from 'vitest'
import { rateLimit } from '../../src/adapters/fetch.ts'
import { limitFrom } from '../../src/config/index.ts'
import { createLimiter, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { asyncStore } from '../../src/stores/index.ts'
import { admitted } from '../../src/testing/admitted.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { ALL, onEveryStore } from '../support/stories.ts'

const NEVER = { outcome: 'impossible', allowed: false, limit: 0, remaining: 0, retryAfterMs: Number.POSITIVE_INFINITY }
const IMPOSSIBLE = { code: 'IMPOSSIBLE' }

describe('R8: a limit of 0 is a capacity of 0', () => {
  onEveryStore((story) => {
    for (const [type, of] of ALL) {
      story(`${type}: every cost above 0 is impossible, with every verb`, async ({ limiter }) => {
        const none = limiter(of(0, 100))
        expect(await admitted(none, 'k')).toBe(false)
        for (const verb of ['consume', 'peek', 'reserve'] as const) expect(await none[verb]('k'), verb).toMatchObject(NEVER)
        await expect(none.acquire('k')).rejects.toMatchObject(IMPOSSIBLE)
        await expect(none.acquire('k', { timeoutMs: 1_000 })).rejects.toMatchObject(IMPOSSIBLE)
        expect(await none.consume('k', 0)).toMatchObject({ outcome: 'allowed', limit: 0, remaining: 0, retryAfterMs: 0, resetAfterMs: 0 })
        expect(await none.charge('k', 0)).toMatchObject({ outcome: 'allowed', remaining: 0 })
      })

      story(`${type}: a charge lands, and update leads out of it and back`, async ({ limiter }) => {
        const changing = limiter(of(0, 100))
        const { resetAfterMs, ...charged } = await changing.charge('k', 2)
        expect(charged).toMatchObject(NEVER)
        expect(resetAfterMs).toBeGreaterThan(0)
        expect(await changing.charge('k', 0)).toMatchObject(NEVER)
        changing.update(of(5, 100))
        expect(await changing.peek('k')).toMatchObject({ outcome: 'allowed', limit: 5, remaining: 3 })
        expect((await changing.consume('k', 3)).remaining).toBe(0)
        expect((await changing.consume('k')).outcome).toBe('limited')
        changing.update(of(0, 100))
        expect(await changing.consume('k')).toMatchObject(NEVER)
        expect(await changing.consume('other')).toMatchObject(NEVER)
        changing.update(of(6, 100))
        expect(await admitted(changing, 'k')).toBe(true)
      })

      story(`${type}: a customer whose plan is 0 is refused, and what was used before is kept`, async ({ limiter }) => {
        const customers = limiter(of(5, 100), { plans: { suspended: of(0, 100) as never } })
        await customers.consume('k')
        expect(await customers.consume('k', 1, { plan: 'suspended' })).toMatchObject(NEVER)
        expect((await customers.peek('k', 0)).remaining).toBe(4)
        // The rest of a call that was under way.
        expect(await customers.charge('k', 1, { plan: 'suspended' })).toMatchObject(NEVER)
        expect((await customers.peek('k', 0)).remaining).toBe(3)
      })

      story(`${type}: callers who wait when the limit becomes 0 are told that it is impossible`, async ({ limiter, reach }) => {
        const closing = limiter(of(1, 100))
        await closing.consume('k')
        const waits = expect(closing.acquire('k')).rejects.toMatchObject(IMPOSSIBLE)
        await reach(10)
        closing.update(of(0, 100))
        await waits
        expect(closing.waiting()).toBe(0)
      })

      story(`${type}: middleware answers 429 and names no time`, async ({ limiter }) => {
        const none = limiter(of(0, 100), { onStoreError: 'throw' })
        // A leaky bucket makes requests wait, if only so long.
        const handle = rateLimit({ limiter: none as never, key: () => 'all', maxWaitMs: type === 'leakyBucket' ? 0.001 : 0 })(
          () => new Response('hello'),
        )
        const refused = await handle(new Request('http://localhost/'))
        expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, null])
        expect(JSON.stringify([...refused.headers])).not.toMatch(/Infinity|NaN/)
        none.update(of(5, 100))
        expect((await handle(new Request('http://localhost/'))).status).toBe(200)
      })
    }

    story('beside other limits it refuses all of them, and nothing is charged', async ({ limiter }) => {
      const both = limiter({ paused: gcra({ rate: '1/s', burst: 0 }), daily: fixedWindow({ limit: 10, window: '1d' }) })
      expect(await both.consume('k')).toMatchObject({ outcome: 'impossible', policy: 'paused', parts: { daily: { remaining: 10 } } })
      expect(await admitted(both, 'k', { paused: 0, daily: 1 })).toBe(true)
    })
  })

  test.each(ALL)('%s: it stays 0 while a remote store is away and the memory of the process decides', async (_, of) => {
    const away = asyncStore({ shared: true, apply: () => Promise.reject(new Error('no connection')) })
    for (const localShare of [1, 0.1]) {
      const none = createLimiter(of(0, 100), { name: 'api', store: away, onStoreError: 'local', localShare, clock: fakeClock() })
      expect(await none.consume('k')).toMatchObject({ outcome: 'impossible', degraded: true })
    }
  })

  test('it is written as limit: 0, burst: 0 or capacity: 0, in code and in JSON', () => {
    const limits = [
      gcra({ rate: '1/s', burst: 0 }),
      tokenBucket({ refill: '1/s', capacity: 0 }),
      leakyBucket({ leak: '1/s', capacity: 0 }),
      fixedWindow({ limit: 0, window: '1s' }),
      slidingWindow({ limit: 0, window: '1s' }),
      slidingLog({ limit: 0, window: '1s' }),
    ]
    for (const limit of limits) {
      const again = limitFrom(JSON.parse(JSON.stringify(limit)))
      expect(createLimiter(again).consume('k'), limit.type).toMatchObject(NEVER)
    }
  })

  test("a rate of '0/s' is refused, and the message says what to write", () => {
    expect(() => gcra({ rate: '0/s', burst: 5 })).toThrow(
      expect.objectContaining({ code: 'CONFIG', message: expect.stringContaining('write burst: 0') }),
    )
    for (const make of [() => tokenBucket({ refill: '0/s', capacity: 5 }), () => leakyBucket({ leak: '0/min', capacity: 5 })]) {
      expect(make).toThrow(expect.objectContaining({ code: 'CONFIG', message: expect.stringMatching(/write (burst|capacity): 0/) }))
    }
  })
})
