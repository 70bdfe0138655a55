/**
 * Waiters wake when permits become free: by refunds, resets, cancelled reservations and other
 * numbers; under every plan.
 */
import { describe, expect, test } from 'vitest'
import { fixedWindow, gcra, type Limit, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { noUnhandledRejections, setUp, told, type Watched, watched } from './support.ts'

noUnhandledRejections()

const LIMITS: readonly (readonly [name: string, limit: (n: number) => Limit])[] = [
  ['gcra', (n) => gcra({ rate: '1/s', burst: n })],
  ['tokenBucket', (n) => tokenBucket({ capacity: n, refill: '1/s' })],
  ['fixedWindow', (n) => fixedWindow({ limit: n, window: '1h' })],
  ['slidingWindow', (n) => slidingWindow({ limit: n, window: '1h' })],
  ['slidingLog', (n) => slidingLog({ limit: n, window: '1h' })],
]

const ends = (waits: readonly Watched[]) => waits.map(({ end }) => end)

describe.each(LIMITS)('at a %s', (_, limit) => {
  function full(n = 3, maxAheadMs = 60_000) {
    const all = setUp<Limit>(limit(n), { maxAheadMs })
    all.limiter.consume('k', n)
    return all
  }

  test.each([0, 60_000])('a refund serves as many as it is for, the first first (booked %i ms ahead)', async (maxAheadMs) => {
    const { limiter, clock } = full(3, maxAheadMs)
    const waits = [1, 1, 1].map((cost) => watched(limiter.acquire('k', { cost })))
    await told()
    expect(ends(waits)).toEqual(['waits', 'waits', 'waits'])
    limiter.refund('k', 2)
    await told()
    expect(ends(waits)).toEqual(['resolved', 'resolved', 'waits'])
    expect([clock.timers, limiter.peek('k').remaining]).toEqual([1, 0])
    limiter.close()
  })

  test('a call that is too old to be given back serves nobody', async () => {
    const { limiter, clock, moveTo } = setUp(limit(3))
    const old = limiter.consume('k', 3)
    clock.setMs(7_200_000)
    limiter.consume('k', 3)
    const wait = watched(limiter.acquire('k'))
    old.cancel()
    await moveTo(7_200_000_001)
    expect(wait.end).toBe('waits')
    limiter.close()
  })

  test('a reset serves as many as fit a fresh key, and the others wait for their turn', async () => {
    const { limiter, clock } = full(3)
    const waits = [2, 1, 1, 3].map((cost) => watched(limiter.acquire('k', { cost })))
    await told()
    limiter.reset('k')
    await told()
    expect(ends(waits)).toEqual(['resolved', 'resolved', 'waits', 'waits'])
    expect([limiter.waiting('k'), clock.timers]).toEqual([2, 1])
    limiter.close()
  })

  test('more room serves the waiters that fit, less ends the first if it never can', async () => {
    const { limiter } = full(3)
    const waits = [2, 3, 1].map((cost) => watched(limiter.acquire('k', { cost })))
    await told()
    limiter.update(limit(5))
    await told()
    expect(ends(waits)).toEqual(['resolved', 'waits', 'waits'])
    limiter.update(limit(2))
    await told()
    expect(ends(waits)).toEqual(['resolved', 'rejected', 'waits'])
    expect(waits[1]?.code).toBe('IMPOSSIBLE')
    limiter.close()
  })

  test('an update to slower numbers makes the first wait no longer: what is in use drains at its own pace', async () => {
    const { limiter, moveTo } = setUp(gcra({ rate: '10/s', burst: 1 }))
    limiter.consume('k')
    const waits = [watched(limiter.acquire('k', { timeoutMs: 500 })), watched(limiter.acquire('k', { timeoutMs: 500 }))]
    limiter.update(gcra({ rate: '1/s', burst: 1 }))
    await moveTo(99_999)
    expect(waits[0]?.end).toBe('waits')
    await moveTo(100_000)
    // The first was charged at the new pace: that is too slow for the second.
    expect([ends(waits), waits[1]?.code]).toEqual([['resolved', 'rejected'], 'TIMEOUT'])
  })

  test('an update to a faster pace is felt by all but one: what is in use drains at its own pace until it is charged', async () => {
    const { limiter, clock, moveTo } = setUp(gcra({ rate: '1/s', burst: 1 }))
    limiter.consume('k')
    limiter.consume('other')
    const waits = [watched(limiter.acquire('k')), watched(limiter.acquire('k'))]
    const alone = watched(limiter.acquire('other'))
    limiter.update(gcra({ rate: '10/s', burst: 1 }))
    await moveTo(199_999)
    expect(ends(waits)).toEqual(['waits', 'waits'])
    await moveTo(200_000)
    expect(ends(waits)).toEqual(['resolved', 'waits'])
    await moveTo(999_999)
    expect([ends(waits), alone.end]).toEqual([['resolved', 'waits'], 'waits'])
    await moveTo(1_000_000)
    expect([ends(waits), alone.end, clock.timers]).toEqual([['resolved', 'resolved'], 'resolved', 0])
  })

  test('other keys are left alone', async () => {
    const { limiter } = full()
    limiter.consume('other', 3)
    const waits = [watched(limiter.acquire('k')), watched(limiter.acquire('other'))]
    limiter.refund('k', 1)
    await told()
    expect(ends(waits)).toEqual(['resolved', 'waits'])
    limiter.reset('k')
    await told()
    expect(ends(waits)).toEqual(['resolved', 'waits'])
    limiter.close()
  })
})

test('a cancelled reservation moves up callers that are booked behind it: none that comes later is served before', async () => {
  const { limiter, moveTo } = setUp(gcra({ rate: '1/s', burst: 4 }))
  limiter.consume('k', 4)
  const reservation = limiter.reserve('k', 4)
  const order: string[] = []
  void limiter.acquire('k').then(({ waitedMs }) => order.push(`first after ${waitedMs}`))
  reservation.cancel()
  void limiter.acquire('k').then(({ waitedMs }) => order.push(`second after ${waitedMs}`))
  await moveTo(9_000_000)
  expect(order).toEqual(['first after 1000', 'second after 2000'])
})

test('the last reservation, cancelled, lets the first outside be booked at once', async () => {
  const { limiter, moveTo, clock } = setUp(gcra({ rate: '1/s', burst: 1 }), { maxAheadMs: 1_000 })
  limiter.consume('k')
  const reservation = limiter.reserve('k')
  const wait = watched(limiter.acquire('k'))
  await told()
  reservation.cancel()
  expect(limiter.waiting('k')).toBe(1)
  await moveTo(1_000_000)
  expect([wait.end, clock.timers]).toEqual(['resolved', 0])
})

test('waiters do not get the permits of a foreign reservation in between, and it keeps its time', async () => {
  const { limiter, moveTo } = setUp(gcra({ rate: '1/s', burst: 1 }))
  limiter.consume('k')
  const gone = new AbortController()
  const first = watched(limiter.acquire('k', { signal: gone.signal }))
  const reservation = limiter.reserve('k')
  const last = watched(limiter.acquire('k'))
  await told()
  expect(reservation.delayMs).toBe(2_000)
  gone.abort()
  await moveTo(999_999)
  expect(last.end).toBe('waits')
  await moveTo(1_000_000)
  expect([first.end, last.end]).toEqual(['rejected', 'resolved'])
  expect(limiter.peek('k').retryAfterMs).toBe(2_000)
})

describe('a key with two plans', () => {
  const plans = { pro: gcra({ rate: '10/s', burst: 1 }) }
  const begin = () => {
    const all = setUp(gcra({ rate: '1/s', burst: 1 }), { plans })
    all.limiter.consume('k')
    const waits = [watched(all.limiter.acquire('k')), watched(all.limiter.acquire('k', { plan: 'pro' }))] as const
    return { ...all, waits }
  }

  test('has a line for each, counted together, and all are served', async () => {
    const { limiter, waits, moveTo, clock } = begin()
    await told()
    expect([limiter.waiting('k'), limiter.waiting(), clock.timers]).toEqual([2, 2, 1])
    for (let us = 0; us <= 3_000_000; us += 10_000) await moveTo(us)
    expect(ends(waits)).toEqual(['resolved', 'resolved'])
    expect([limiter.waiting(), clock.timers]).toEqual([0, 0])
  })

  test('is reset for all', async () => {
    const { limiter, waits } = begin()
    await told()
    limiter.reset('k')
    await told()
    expect(ends(waits)).toContain('resolved')
    limiter.close()
  })

  test('is closed for all, and updated for all', async () => {
    const { limiter, waits, clock } = begin()
    await told()
    limiter.update(gcra({ rate: '1/min', burst: 1 }), { pro: gcra({ rate: '1/h', burst: 1 }) })
    await told()
    expect([ends(waits), clock.timers]).toEqual([['waits', 'waits'], 1])
    limiter.close()
    await told()
    expect(waits.map(({ code }) => code)).toEqual(['CLOSED', 'CLOSED'])
    expect(clock.timers).toBe(0)
  })

  test('keeps the order within a plan', async () => {
    const { limiter, moveTo } = setUp(gcra({ rate: '1/s', burst: 1 }), { plans: { pro: gcra({ rate: '2/s', burst: 1 }) } })
    limiter.consume('k')
    const order: string[] = []
    for (const k of [1, 2, 3]) {
      void limiter.acquire('k').then(() => order.push(`base ${k}`))
      void limiter.acquire('k', { plan: 'pro' }).then(() => order.push(`pro ${k}`))
    }
    for (let us = 0; us <= 20_000_000; us += 10_000) await moveTo(us)
    expect(order.filter((name) => name.startsWith('base'))).toEqual(['base 1', 'base 2', 'base 3'])
    expect(order.filter((name) => name.startsWith('pro'))).toEqual(['pro 1', 'pro 2', 'pro 3'])
  })
})

describe('a key for each limit', () => {
  const limits = { user: gcra({ rate: '1/s', burst: 1 }), tenant: gcra({ rate: '2/s', burst: 1 }) }

  test('stands in a line of its own, and everybody is served', async () => {
    const { limiter, moveTo, clock } = setUp(limits)
    limiter.consume({ user: 'a', tenant: 't' })
    const waits = ['a', 'b', 'a'].map((user) => watched(limiter.acquire({ user, tenant: 't' })))
    await told()
    expect([limiter.waiting({ user: 'a', tenant: 't' }), limiter.waiting({ user: 'b', tenant: 't' }), clock.timers]).toEqual([2, 1, 1])
    await moveTo(499_999)
    expect(ends(waits)).toEqual(['waits', 'waits', 'waits'])
    await moveTo(500_000)
    expect(ends(waits)).toEqual(['waits', 'resolved', 'waits'])
    for (let us = 500_000; us <= 4_000_000; us += 1_000) await moveTo(us)
    expect([ends(waits), clock.timers]).toEqual([['resolved', 'resolved', 'resolved'], 0])
  })

  test('a leaky bucket among them lets nobody act before its water has leaked', async () => {
    const { limiter, moveTo } = setUp({
      user: leakyBucket({ capacity: 3, leak: '1/s' }),
      tenant: leakyBucket({ capacity: 9, leak: '9/s' }),
    })
    const waits = ['a', 'a', 'b'].map((user) => watched(limiter.acquire({ user, tenant: 't' })))
    await moveTo(222_221)
    expect(ends(waits)).toEqual(['resolved', 'waits', 'waits'])
    await moveTo(222_223)
    expect(ends(waits)).toEqual(['resolved', 'waits', 'resolved'])
    await moveTo(1_000_000)
    expect(ends(waits)).toEqual(['resolved', 'resolved', 'resolved'])
  })
})
