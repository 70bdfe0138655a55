/**
 * `charge` and `settle` as callers meet them: what is answered, what does nothing, what is refused,
 * and who moves up.
 */
import { describe, expect, test } from 'vitest'
import {
  acquireSync,
  createLimiter,
  type DecisionEvent,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  systemClock,
  tokenBucket,
} from '../../src/index.ts'
import { fakeClock } from '../../src/testing/index.ts'

const ALL: readonly Limit[] = [
  gcra({ rate: '1/s', burst: 10 }),
  tokenBucket({ capacity: 10, refill: '1/s' }),
  leakyBucket({ capacity: 10, leak: '1/s' }),
  fixedWindow({ limit: 10, window: '10s' }),
  slidingWindow({ limit: 10, window: '10s', slots: 10 }),
  slidingLog({ limit: 10, window: '10s' }),
]
const bucket = tokenBucket({ capacity: 10, refill: '1/s' })
type OfBucket = ReturnType<typeof setUp>['limiter']

/** What it throws. */
function caught(act: () => unknown): Error {
  try {
    act()
  } catch (error) {
    return error as Error
  }
  throw new Error('it threw nothing')
}

function setUp(limit: Limit = bucket) {
  const clock = fakeClock()
  return { limiter: createLimiter(limit, { clock }), clock }
}

describe.each(ALL)('$type', (limit) => {
  test('a charge that fits answers as consume does', () => {
    const { limiter } = setUp(limit)
    const { limiter: other } = setUp(limit)
    const { delayMs: _delay, ...taken } = { ...other.consume('k', 4) }
    expect({ ...limiter.charge('k', 4) }).toMatchObject(taken)
  })

  test('debt limits until one permit is free, and a question says the same', () => {
    const { limiter, clock } = setUp(limit)
    const { outcome, allowed, remaining, retryAfterMs } = limiter.charge('k', 25)
    expect([outcome, allowed, remaining]).toEqual(['limited', false, 0])
    expect(limiter.peek('k').retryAfterMs).toBe(retryAfterMs)
    clock.setMs(retryAfterMs - 0.001)
    expect(limiter.tryAcquire('k')).toBe(false)
    clock.setMs(retryAfterMs)
    expect(limiter.tryAcquire('k')).toBe(true)
  })

  test('a charge of nothing creates no key and tells whether there is debt', () => {
    const clock = fakeClock()
    const store = memoryStore()
    const limiter = createLimiter(limit, { clock, store })
    expect([limiter.charge('k', 0).outcome, store.size]).toEqual(['allowed', 0])
    limiter.charge('k', 11)
    expect(limiter.charge('k', 0).outcome).toBe('limited')
  })

  test('as many charges as one likes stay within the bound, and the key is usable again', () => {
    const { limiter, clock } = setUp(limit)
    for (let k = 0; k < 3; k++) limiter.charge('k', 1_000_000_000_000)
    const { resetAfterMs } = limiter.charge('k', 1_000_000_000_000)
    expect(Number.isFinite(resetAfterMs)).toBe(true)
    // 2^52 microseconds.
    expect(resetAfterMs).toBeLessThanOrEqual(4_503_599_627_370.496)
    clock.setMs(resetAfterMs)
    expect(limiter.tryAcquire('k', 10)).toBe(true)
  })

  test('a settled decision does nothing a second time, nor with what it was charged', () => {
    const { limiter } = setUp(limit)
    const decision = limiter.consume('k', 6)
    decision.settle(6)
    decision.settle(1)
    expect(limiter.peek('k', 0).remaining).toBe(4)
    const other = limiter.consume('k', 3)
    other.settle(1)
    other.settle(0)
    expect(limiter.peek('k', 0).remaining).toBe(3)
  })

  test('a decision that asked for nothing is charged all of what was used', () => {
    const { limiter } = setUp(limit)
    const decision = limiter.consume('k', 0)
    decision.settle(12)
    expect(limiter.peek('k', 0).remaining).toBe(0)
    expect(limiter.charge('k', 0).outcome).toBe('limited')
  })

  test('what was used beyond the cost is charged now, however late', () => {
    const { limiter, clock } = setUp(limit)
    clock.setMs(9_000)
    const decision = limiter.consume('k', 1)
    clock.setMs(21_000)
    decision.settle(4)
    expect(limiter.peek('k', 0).remaining).toBe(7)
    clock.setMs(21_000 + 2_999)
    expect(limiter.peek('k', 0).resetAfterMs).toBeGreaterThan(0)
  })

  test('settling after reset takes at most the difference from what is in use then, and gives no debt back', () => {
    const { limiter } = setUp(limit)
    const less = limiter.consume('k', 5)
    const more = limiter.consume('k', 1)
    limiter.reset('k')
    less.settle(2)
    expect(limiter.peek('k', 0).remaining).toBe(10)
    more.settle(4)
    expect(limiter.peek('k', 0).remaining).toBe(7)
  })

  test('settling goes on after close', () => {
    const clock = fakeClock()
    const store = memoryStore()
    const limiter = createLimiter(limit, { clock, store, name: 'api' })
    const decision = limiter.consume('k', 5)
    limiter.close()
    decision.settle(2)
    expect(createLimiter(limit, { clock, store, name: 'api' }).peek('k', 0).remaining).toBe(8)
    expect(() => limiter.settle('k', 2, { of: decision })).toThrow('closed')
    expect(() => limiter.charge('k')).toThrow('closed')
  })
})

test('debt is kept by other numbers, there and back', () => {
  const { limiter } = setUp(gcra({ rate: '1/s', burst: 10 }))
  limiter.charge('k', 30)
  limiter.update(gcra({ rate: '100/s', burst: 10 }))
  limiter.charge('k', 0)
  limiter.charge('k', 1)
  // 31 in use at 100/s.
  expect(limiter.peek('k').retryAfterMs).toBe(220)
  limiter.update(gcra({ rate: '1/s', burst: 10 }))
  limiter.charge('k', 1)
  expect(limiter.peek('k').retryAfterMs).toBe(23_000)
})

test('a decision made before an update gives back no more than was in use of it at its own pace', () => {
  const { limiter, clock } = setUp(gcra({ rate: '1/s', burst: 10 }))
  const decision = limiter.consume('k', 10)
  clock.setMs(4_000)
  limiter.update(gcra({ rate: '2/s', burst: 20 }))
  limiter.charge('k', 5)
  // 6 were left of the ten, and then 5 more: 11 in use, at 2/s from now on.
  clock.setMs(5_000)
  decision.settle(0)
  // Had nobody come, 5 would be left of the ten. In use: 11 - 2 - 5.
  expect(limiter.peek('k', 0).remaining).toBe(16)
})

test('late: what has drained is not given back although others are using the key', () => {
  const { limiter, clock } = setUp()
  const early = limiter.consume('k', 4)
  clock.setMs(3_000)
  limiter.consume('k', 9)
  early.settle(0)
  expect(limiter.peek('k', 0).remaining).toBe(1)
  clock.setMs(60_000)
  const late = limiter.consume('k', 4)
  clock.setMs(64_000)
  limiter.consume('k', 9)
  late.settle(0)
  expect(limiter.peek('k', 0).remaining).toBe(1)
})

describe('a decision', () => {
  test('shows its figures only, also as JSON, in a copy and to another thread', () => {
    const { limiter } = setUp()
    const decision = limiter.consume('k', 2)
    const figures = [
      'outcome',
      'allowed',
      'limit',
      'remaining',
      'retryAfterMs',
      'resetAfterMs',
      'delayMs',
      'atMs',
      'policy',
      'parts',
      'degraded',
    ]
    expect(Object.keys(decision)).toEqual(figures)
    expect(Object.keys(JSON.parse(JSON.stringify(decision)))).toEqual(figures)
    expect(structuredClone(decision)).toEqual({ ...decision })
    expect(decision.settle).toBe(limiter.consume('k').settle)
  })

  test('that was refused has nothing to settle', () => {
    const { limiter } = setUp()
    limiter.consume('k', 8)
    const refused = limiter.consume('k', 5)
    refused.settle(0)
    refused.settle(7)
    expect(limiter.peek('k', 0).remaining).toBe(2)
  })

  test('keeps the costs and keys that it was made with', () => {
    const limiter = createLimiter({ a: bucket, b: bucket }, { clock: fakeClock() })
    const keys = { a: 'x', b: 'y' }
    const costs = { a: 4, b: 4 }
    const decision = limiter.consume(keys, costs)
    keys.a = 'z'
    costs.a = 0
    decision.settle({ a: 1, b: 4 })
    expect([limiter.peek({ a: 'x', b: 'y' }, 0).parts.a.remaining, limiter.peek('z', 0).parts.a.remaining]).toEqual([9, 10])
  })

  test('of several limits is settled each by its own cost, or all by one', () => {
    const limiter = createLimiter({ a: bucket, b: fixedWindow({ limit: 10, window: '1min' }) }, { clock: fakeClock() })
    limiter.consume('k', { a: 5, b: 1 }).settle({ a: 2, b: 3 })
    expect(remainingOf(limiter)).toEqual([8, 7])
    limiter.consume('k', 2).settle(1)
    expect(remainingOf(limiter)).toEqual([7, 6])
  })

  function remainingOf(limiter: { peek(key: string, cost: number): { parts: { a: { remaining: number }; b: { remaining: number } } } }) {
    const { parts } = limiter.peek('k', 0)
    return [parts.a.remaining, parts.b.remaining]
  }

  test('entered later than it was made, because the clock had stepped back, is settled by when it was entered', () => {
    for (const limit of ALL) {
      const { limiter, clock } = setUp(limit)
      clock.setMs(30_000)
      limiter.consume('k', 1)
      clock.setMs(29_999)
      const decision = limiter.consume('k', 5)
      clock.setMs(30_000)
      decision.settle(1)
      expect(limiter.peek('k', 0).remaining, limit.type).toBe(8)
    }
  })

  test('of a plan is settled by the plan', () => {
    const pro = tokenBucket({ capacity: 100, refill: '1/s' })
    const limiter = createLimiter(bucket, { clock: fakeClock(), plans: { pro } })
    limiter.consume('k', 50, { plan: 'pro' }).settle(90)
    expect(limiter.peek('k', 0, { plan: 'pro' }).remaining).toBe(10)
    expect(limiter.charge('k', 20, { plan: 'pro' }).outcome).toBe('limited')
  })
})

describe('a reservation', () => {
  test('is settled like any decision, and not cancelled afterwards', () => {
    const { limiter } = setUp()
    limiter.consume('k', 10)
    const reserved = limiter.reserve('k', 5)
    reserved.settle(2)
    reserved.cancel()
    expect(limiter.peek('k').retryAfterMs).toBe(3_000)
  })

  test.each([
    ['cancel', (_limiter, reserved) => reserved.cancel()],
    ['settle', (_limiter, reserved) => reserved.settle(0)],
    ['settle by its figures', (limiter, reserved) => limiter.settle('k', 0, { of: JSON.parse(JSON.stringify(reserved)), cost: 5 })],
  ] satisfies [string, (limiter: OfBucket, reserved: ReturnType<OfBucket['reserve']>) => void][])(
    'before its time gives back its cost less what was reserved after it: %s',
    (_, giveBack) => {
      const { limiter } = setUp()
      limiter.consume('k', 10)
      const reserved = limiter.reserve('k', 5)
      expect(limiter.reserve('k', 2).delayMs).toBe(7_000)
      giveBack(limiter, reserved)
      // 17 - (5 - 2) in use.
      expect(limiter.reserve('k', 1).delayMs).toBe(5_000)
    },
  )

  test('that was cancelled has nothing to settle', () => {
    const { limiter } = setUp()
    limiter.consume('k', 10)
    const reserved = limiter.reserve('k', 5)
    reserved.cancel()
    reserved.settle(9)
    reserved.settle(0)
    expect(limiter.peek('k').retryAfterMs).toBe(1_000)
  })
})

describe('waiting', () => {
  test('acquired permits are settled: at once, or after a wait', async () => {
    const { limiter, clock } = setUp()
    const atOnce = await limiter.acquire('k', { cost: 10 })
    const waits = limiter.acquire('k', { cost: 5 })
    clock.advanceMs(5_000)
    const waited = await waits
    expect([atOnce.waitedMs, waited.waitedMs]).toEqual([0, 5_000])
    waited.settle(1)
    expect(limiter.peek('k', 0).remaining).toBe(4)
    // 5 of the ten would still be in use, had nobody come.
    atOnce.settle(0)
    expect(limiter.peek('k', 0).remaining).toBe(9)
  })

  test('permits acquired by a blocked thread are settled', () => {
    const limiter = createLimiter(tokenBucket({ capacity: 2, refill: '1/h' }), { clock: systemClock })
    const acquired = acquireSync(limiter, 'k', { cost: 2 })
    acquired.settle(0)
    expect(limiter.tryAcquire('k', 2)).toBe(true)
  })

  test('waiters move up by the permits given back', async () => {
    const { limiter, clock } = setUp()
    const decision = limiter.consume('k', 10)
    const waits = limiter.acquire('k', { cost: 4 })
    await Promise.resolve()
    clock.advanceMs(1_000)
    decision.settle(4)
    clock.advanceMs(0)
    expect((await waits).waitedMs).toBe(1_000)
    expect(limiter.waiting('k')).toBe(0)
  })

  test('a waiter for a window tries again', async () => {
    const { limiter, clock } = setUp(fixedWindow({ limit: 10, window: '10s' }))
    const decision = limiter.consume('k', 10)
    const waits = limiter.acquire('k', { cost: 4 })
    await Promise.resolve()
    clock.advanceMs(1_000)
    decision.settle(6)
    expect((await waits).waitedMs).toBe(1_000)
  })

  test('a booked waiter keeps its time when permits are charged', async () => {
    const { limiter, clock } = setUp()
    limiter.consume('k', 10)
    const waits = limiter.acquire('k', { cost: 2 })
    await Promise.resolve()
    limiter.charge('k', 50)
    clock.advanceMs(2_000)
    expect((await waits).waitedMs).toBe(2_000)
    expect(limiter.peek('k').retryAfterMs).toBe(51_000)
  })
})

describe('elsewhere', () => {
  test('a decision that went through JSON is settled by its figures', () => {
    for (const limit of ALL) {
      const { limiter, clock } = setUp(limit)
      const decision = JSON.parse(JSON.stringify(limiter.consume('k', 8)))
      clock.setMs(1_000)
      limiter.settle('k', 3, { of: decision, cost: 8 })
      const { limiter: other, clock: time } = setUp(limit)
      other.consume('k', 3)
      time.setMs(1_000)
      expect(limiter.peek('k', 0).remaining, limit.type).toBe(other.peek('k', 0).remaining)
    }
  })

  test('a refused decision, or one not made by the store, is not settled', () => {
    const { limiter } = setUp()
    const { atMs, parts } = limiter.consume('k', 5)
    limiter.settle('k', 0, { of: { atMs, parts, allowed: false }, cost: 5 })
    limiter.settle('k', 0, { of: { atMs, parts, degraded: true }, cost: 5 })
    expect(limiter.peek('k', 0).remaining).toBe(5)
    limiter.settle('k', 0, { of: { atMs, parts }, cost: 5 })
    expect(limiter.peek('k', 0).remaining).toBe(10)
  })

  test.each([
    [undefined, 'settle needs the decision that it settles, { of: decision }, not { of: undefined }'],
    [3, 'not { of: 3 }'],
    [{ parts: { default: { resetAfterMs: 1 } } }, 'atMs undefined must be milliseconds'],
    [{ atMs: 0 }, "resetAfterMs of limit 'default' undefined must be milliseconds"],
    [{ atMs: -1, parts: { default: { resetAfterMs: 1 } } }, 'atMs -1 must be milliseconds'],
  ])('of %j is refused: %s', (of, message) => {
    const { limiter } = setUp()
    expect(caught(() => limiter.settle('k', 0, { of: of as never })).message).toContain(message)
  })

  test('a call without options is told what it lacks', () => {
    const { limiter } = setUp()
    const error = caught(() => (limiter.settle as (key: string, actual: number) => void)('k', 0))
    expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining('{ of: decision }') })
  })
})

describe('wrong input is refused before anything is touched', () => {
  test.each([1.5, -1, Number.NaN, 1_000_000_000_001, '1', null, undefined])('%s', (bad) => {
    const { limiter } = setUp()
    const decision = limiter.consume('k', 5)
    const error = caught(() => decision.settle(bad as number))
    expect(error).toMatchObject({ code: 'COST' })
    expect(error.message).toContain('must be a whole number from 0 to 1,000,000,000,000')
    if (bad !== undefined) expect(caught(() => limiter.charge('k', bad as number))).toMatchObject({ code: 'COST' })
    expect(limiter.peek('k', 0).remaining).toBe(5)
    decision.settle(2)
    expect(limiter.peek('k', 0).remaining).toBe(8)
  })

  test('a misspelt name, and a name without a cost', () => {
    const limiter = createLimiter({ a: bucket, b: bucket }, { clock: fakeClock() })
    const decision = limiter.consume('k', 5)
    expect(caught(() => decision.settle({ a: 1, c: 1 } as never)).message).toContain('there is no such limit, there is a, b')
    expect(caught(() => decision.settle({ a: 1 } as never)).message).toContain("actual undefined of limit 'b'")
    expect(caught(() => decision.settle({ a: 1, b: 1, c: 1 } as never)).message).toContain('actual for "c": there is no such limit')
    expect(caught(() => limiter.charge('k', { a: 1.5, b: 1 })).message).toContain("cost 1.5 of limit 'a'")
    expect(caught(() => limiter.settle('k', 1, { of: decision, costs: 1 } as never)).message).toContain('costs')
  })
})

test('listeners hear of charges, by name, and not of settling', () => {
  const heard: DecisionEvent[] = []
  const limiter = createLimiter(bucket, { clock: fakeClock(), onDecision: (event) => heard.push(event) })
  limiter.consume('k', 2).settle(1)
  limiter.charge('k', 20)
  expect(heard.map(({ verb, cost, decision }) => [verb, cost, decision.allowed])).toEqual([
    ['consume', 2, true],
    ['charge', 20, false],
  ])
})

test('a charge may cost more than any limit: a download of five gigabytes', () => {
  const { limiter } = setUp(tokenBucket({ capacity: 1_000_000_000, refill: '10000000/s' }))
  expect(limiter.charge('k', 5_000_000_000)).toMatchObject({ outcome: 'limited', resetAfterMs: 500_000 })
})
