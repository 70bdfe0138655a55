/** Rates that are kept a little slower than asked, in a limiter; and bookings far ahead. */
import { describe, expect, test } from 'vitest'
import { gcra, leakyBucket, tokenBucket } from '../../src/algorithms/all.ts'
import { SluiceError } from '../../src/errors.ts'
import { Gate } from '../../src/http/gate.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { fakeClock } from '../../src/testing/index.ts'

const YEAR_MS = 366 * 86_400_000

function refusal(make: () => unknown): SluiceError {
  try {
    make()
  } catch (error) {
    expect(error).toBeInstanceOf(SluiceError)
    return error as SluiceError
  }
  throw new Error('was accepted')
}

const limited = { rate: '99991/d', burst: 99_991 } as const

describe('99991/d with all of it as burst', () => {
  test('is kept, and the limit itself says what was written', () => {
    expect(gcra(limited)).toEqual({ type: 'gcra', ...limited })
  })

  test('is free again no sooner than after a day, and no later than 87 microseconds after', () => {
    const clock = fakeClock(0)
    const limiter = createLimiter(gcra(limited), { clock })
    const { resetAfterMs } = limiter.consume('key', 99_991)
    expect(resetAfterMs).toBeGreaterThanOrEqual(86_400_000)
    expect(resetAfterMs).toBeLessThanOrEqual(86_400_000.087)
    clock.advanceMs(86_400_000 - 0.001)
    expect(limiter.peek('key', 99_991).allowed).toBe(false)
    clock.advanceMs(0.088)
    expect(limiter.consume('key', 99_991).allowed).toBe(true)
  })

  test.each([
    ['draft-11', /^"default";q=99991;w=86400$/],
    ['draft-7', /^99991;w=86400$/],
  ] as const)('is told as it was asked for in headers of %s', (headers, policy) => {
    const limiter = createLimiter(gcra(limited), { clock: fakeClock(0) })
    const gate = new Gate({ limiter, headers }, () => undefined)
    const entry = gate.enter(undefined, { address: '203.0.113.9', header: () => undefined }, undefined) as { headers: readonly string[] }
    expect(entry.headers[0]).toBe('ratelimit-policy')
    expect(entry.headers[1]).toMatch(policy)
  })
})

describe('maxAheadMs', () => {
  const fits = gcra({ rate: '10/s', burst: 20 })
  const tooMuch = gcra({ rate: '1/30d', burst: 868 })
  const message = 'gcra burst 868 must be at most 862 at this rate with maxAheadMs 31622400000, to be counted exactly'

  test('of more than a minute finds the paces anew, of the limits and of plans', () => {
    const limiter = createLimiter(tokenBucket({ refill: '999983/d', capacity: 25_000 }), {
      maxAheadMs: 86_400_000,
      plans: { pro: tokenBucket({ refill: '999983/d', capacity: 99_991 }) },
    })
    const numbers = (plan?: 'pro') => limiter.scope(plan).limits.map(({ rule }) => rule.numbers)
    expect([numbers(), numbers('pro')]).toEqual([['25000 39599 3421411764'], ['99991 39599 3421411764']])
    limiter.update(tokenBucket({ refill: '99991/d', capacity: 25_000 }))
    expect(numbers()).toEqual(['25000 14442 12479011111'])
    expect(limiter.scope().limits[0]?.rule.asked).toMatchObject({ permits: 99_991, periodUs: 86_400_000_000 })
  })

  test('of a year is refused where there is no room for it, with the nearest burst', () => {
    const error = refusal(() => createLimiter(tooMuch, { maxAheadMs: YEAR_MS }))
    expect(error).toMatchObject({ code: 'CONFIG', message: `limit 'default': ${message}`, nearest: 862 })
    createLimiter(gcra({ rate: '1/30d', burst: 862 }), { maxAheadMs: YEAR_MS }).close()
    const ofPlan = refusal(() => createLimiter({ a: fits }, { maxAheadMs: YEAR_MS, plans: { pro: { a: tooMuch } } }))
    expect(ofPlan).toMatchObject({ message: `plan 'pro': limit 'a': ${message}`, nearest: 862 })
  })

  test('of a year refuses an update in the same way, and the limits stay', () => {
    const limiter = createLimiter(fits, { maxAheadMs: YEAR_MS })
    const scope = limiter.scope()
    expect(refusal(() => limiter.update(tooMuch))).toMatchObject({ message: `limit 'default': ${message}` })
    expect(limiter.scope()).toBe(scope)
  })

  test('is named where no burst works', () => {
    const limit = leakyBucket({ leak: '999983/d', capacity: 25_000 })
    const error = refusal(() => createLimiter(limit, { maxAheadMs: YEAR_MS }))
    const nearest = 21_544_003_502.49
    expect(error.message).toBe(
      `limit 'default': leakyBucket capacity 25000 at this rate allows a maxAheadMs of at most ${nearest}, to be counted exactly`,
    )
    expect(error.nearest).toBe(nearest)
    createLimiter(limit, { maxAheadMs: nearest }).close()
  })
})
