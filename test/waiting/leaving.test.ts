/**
 * A waiter that leaves at every step of its life, on a store that answers at once and on one that
 * answers when told to.
 */
import { describe, expect, test } from 'vitest'
import { createLimiter, fixedWindow, gcra, type Limit, type Limiter, leakyBucket, slidingLog, tokenBucket } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { noUnhandledRejections, PATIENT, type SlowStore, setUp, slowStore, told, type Watched, watched } from './support.ts'

noUnhandledRejections()

const LIMITS: readonly (readonly [name: string, limit: Limit, maxAheadMs: number])[] = [
  ['gcra', gcra({ rate: '3/s', burst: 3 }), 60_000],
  ['tokenBucket', tokenBucket({ capacity: 3, refill: '3/s' }), 60_000],
  ['leakyBucket', leakyBucket({ capacity: 3, leak: '3/s' }), 60_000],
  ['gcra, booked 1 s ahead', gcra({ rate: '3/s', burst: 3 }), 1_000],
  ['leakyBucket, booked 1 s ahead', leakyBucket({ capacity: 3, leak: '3/s' }), 1_000],
  ['gcra, not booked ahead', gcra({ rate: '3/s', burst: 3 }), 0],
  ['fixedWindow', fixedWindow({ limit: 3, window: '1s' }), 0],
  ['slidingLog', slidingLog({ limit: 3, window: '1s' }), 0],
]

describe.each(LIMITS)('%s', (_, limit, maxAheadMs) => {
  /** Who waits, and when each is told, if one of them leaves at `atUs` or nobody does. */
  async function served(leaver: number | undefined, atUs: number) {
    const { limiter, clock, held } = setUp<Limit>(limit, { maxAheadMs })
    limiter.consume('k', 3)
    const gone = new AbortController()
    const times: (number | string)[] = []
    for (const [k, cost] of [1, 3, 2, 1, 2].entries()) {
      const options = k === leaver ? { cost, signal: gone.signal } : { cost }
      limiter.acquire('k', options).then(
        ({ waitedMs }) => {
          times[k] = Math.round(waitedMs * 1000)
        },
        () => {
          times[k] = 'left'
        },
      )
    }
    clock.setUs(atUs)
    await told()
    gone.abort()
    await told()
    clock.setUs(60_000_000)
    await told()
    expect([limiter.waiting(), clock.timers]).toEqual([0, 0])
    return { times, held: held() }
  }

  test('whichever caller leaves, and whenever: no other is served later than if it had stayed, and the order is kept', async () => {
    const all = await served(undefined, 0)
    expect(all.times.every((us) => typeof us === 'number')).toBe(true)
    expect(all.times).toEqual([...all.times].sort((a, b) => (a as number) - (b as number)))
    const moments = new Set(all.times.flatMap((us) => [(us as number) - 1, us as number, (us as number) + 1]).concat(0, 1, 500_000))
    for (const leaver of [0, 1, 2, 3, 4])
      for (const atUs of moments) checkOthers(leaver, atUs, all.times, (await served(leaver, atUs)).times)
  })

  function checkOthers(leaver: number, atUs: number, before: readonly (number | string)[], after: readonly (number | string)[]): void {
    const what = `${leaver} leaves at ${atUs}: ${after} instead of ${before}`
    const isServedBefore = (before[leaver] as number) <= atUs
    expect(after[leaver], what).toBe(isServedBefore ? before[leaver] : 'left')
    const others = after.filter((us) => us !== 'left') as number[]
    expect(others, what).toEqual([...others].sort((a, b) => a - b))
    after.forEach((us, k) => {
      if (us !== 'left') expect(us, what).toBeLessThanOrEqual(before[k] as number)
    })
  }
})

/**
 * The steps of a life on a slow store: who holds what when the waiter leaves. Each begins with a
 * key that is used up.
 */
interface Life {
  readonly limiter: Limiter<Limit, SlowStore>
  readonly store: SlowStore
  readonly clock: FakeClock
}
type Steps = Readonly<Record<string, (life: Life) => Promise<void>>>

const BOOKED_LIFE: Steps = {
  'the question is on its way': async () => {},
  'the store has answered': async ({ store }) => {
    store.pending[0]?.run()
  },
  'the answer is there, not told yet': async ({ store }) => {
    store.pending[0]?.answer()
  },
  'it is booked': async ({ store }) => {
    await store.settle()
  },
  'its time is a microsecond away': async ({ store, clock }) => {
    await store.settle()
    clock.setUs(999_999)
  },
}

const OUTSIDE_LIFE: Steps = {
  'the question is on its way': async () => {},
  'the store has answered': async ({ store }) => {
    store.pending[0]?.run()
  },
  'it waits outside': async ({ store }) => {
    await store.settle()
  },
  'it asks again': async ({ store, clock }) => {
    await store.settle()
    clock.setUs(1_000_000)
  },
  'the store has answered again': async ({ store, clock }) => {
    await store.settle()
    clock.setUs(1_000_000)
    store.pending[0]?.run()
  },
}

const LIVES: readonly (readonly [string, Limit, number, Steps])[] = [
  ['gcra', gcra({ rate: '1/s', burst: 1 }), 60_000, BOOKED_LIFE],
  ['tokenBucket', tokenBucket({ capacity: 1, refill: '1/s' }), 60_000, BOOKED_LIFE],
  ['leakyBucket', leakyBucket({ capacity: 1, leak: '1/s' }), 60_000, BOOKED_LIFE],
  ['gcra, not booked ahead', gcra({ rate: '1/s', burst: 1 }), 0, OUTSIDE_LIFE],
  ['leakyBucket, not booked ahead', leakyBucket({ capacity: 1, leak: '1/s' }), 0, OUTSIDE_LIFE],
  ['fixedWindow', fixedWindow({ limit: 1, window: '1s' }), 0, OUTSIDE_LIFE],
  ['slidingLog', slidingLog({ limit: 1, window: '1s' }), 0, OUTSIDE_LIFE],
]

const CASES = LIVES.flatMap(([name, limit, maxAheadMs, steps]) =>
  Object.entries(steps).map(([step, live]) => [name, step, limit, maxAheadMs, live] as const),
)

describe.each(CASES)('on a slow store, %s, %s:', (_, __, limit, maxAheadMs, live) => {
  async function begun() {
    const clock = fakeClock()
    const store = slowStore()
    const limiter = createLimiter<Limit, SlowStore>(limit, { name: 'api', store, clock, maxAheadMs, ...PATIENT })
    const used = limiter.consume('k')
    await told()
    await store.settle()
    await used
    return { clock, store, limiter }
  }

  /** Nothing of the wait is left: a permit comes when it would have come without it. */
  async function expectNothingLeft(life: Awaited<ReturnType<typeof begun>>, wait: Watched, reason: unknown) {
    const { store, limiter, clock } = life
    await told()
    await store.settle()
    expect(wait).toMatchObject({ end: 'rejected', error: reason })
    expect({ waiting: limiter.waiting(), timers: clock.timers }).toEqual({ waiting: 0, timers: 0 })
    clock.setUs(Math.max(clock.nowUs(), 999_999))
    const asked = limiter.peek('k')
    await told()
    await store.settle()
    expect(await asked).toMatchObject(clock.nowUs() < 1_000_000 ? { allowed: false, retryAfterMs: 0.001 } : { allowed: true, remaining: 1 })
  }

  test('it is aborted', async () => {
    const life = await begun()
    const gone = new AbortController()
    const wait = watched(life.limiter.acquire('k', { signal: gone.signal }))
    await told()
    await live(life)
    const reason = new Error('gone')
    gone.abort(reason)
    await expectNothingLeft(life, wait, reason)
  })

  test('the limiter is closed', async () => {
    const life = await begun()
    const wait = watched(life.limiter.acquire('k'))
    await told()
    await live(life)
    life.limiter.close()
    await told()
    await life.store.settle()
    expect(wait).toMatchObject({ end: 'rejected', code: 'CLOSED' })
    const { memory } = life.store
    const after = createLimiter<Limit>(limit, { name: 'api', store: memory, clock: life.clock, maxAheadMs })
    life.clock.setUs(Math.max(life.clock.nowUs(), 999_999))
    const { allowed } = after.peek('k')
    expect(allowed).toBe(life.clock.nowUs() >= 1_000_000)
    expect(life.clock.timers).toBe(0)
  })

  test('the store fails: the wait fails, and the next one can wait', async () => {
    const life = await begun()
    const wait = watched(life.limiter.acquire('k'))
    await told()
    await live(life)
    const failed = life.store.pending.length > 0
    for (const pending of [...life.store.pending]) pending.fail()
    await told()
    await life.store.settle()
    if (failed) expect(wait).toMatchObject({ end: 'rejected', code: 'STORE' })
    const next = watched(life.limiter.acquire('k'))
    for (let us = 1_000_000; us <= 5_000_000; us += 500_000) {
      life.clock.setUs(Math.max(life.clock.nowUs(), us))
      await told()
      await life.store.settle()
    }
    expect([next.end, wait.end]).toEqual(['resolved', failed ? 'rejected' : 'resolved'])
    expect([life.limiter.waiting(), life.clock.timers]).toEqual([0, 0])
  })

  test('its deadline passes: it is told then, and nothing is left', async () => {
    const life = await begun()
    const wait = watched(life.limiter.acquire('k', { timeoutMs: 999.999 }))
    await told()
    life.clock.setUs(999_999)
    await told()
    await life.store.settle()
    expect(wait).toMatchObject({ end: 'rejected', code: 'TIMEOUT' })
    life.clock.setUs(1_000_000)
    const asked = life.limiter.peek('k')
    await told()
    await life.store.settle()
    expect(await asked).toMatchObject({ allowed: true })
    expect([life.limiter.waiting(), life.clock.timers]).toEqual([0, 0])
  })
})

test('permits that were held for so long that they have drained are not given back', async () => {
  const { limiter, moveTo } = setUp(
    { slow: gcra({ rate: '1/h', burst: 1 }), fast: gcra({ rate: '10/s', burst: 10 }) },
    { maxAheadMs: 86_400_000 },
  )
  const gone = new AbortController()
  limiter.consume('k')
  // They wait for the slow limit, and hold permits of the fast one.
  const waits = Array.from({ length: 5 }, () => watched(limiter.acquire('k', { signal: gone.signal })))
  await moveTo(10_000_000)
  limiter.consume('k', { slow: 0, fast: 10 })
  waits.push(watched(limiter.acquire('k', { signal: gone.signal })))
  gone.abort()
  await moveTo(10_000_000)
  expect(waits.map(({ end }) => end)).toEqual(waits.map(() => 'rejected'))
  expect(limiter.peek('k', { slow: 0, fast: 0 }).parts).toMatchObject({ fast: { remaining: 0 } })
})
