/**
 * A clock of the caller's own that throws while a call begins to wait: caller and listeners are
 * told, and nobody who comes later waits for one who is not there.
 */
import { describe, expect, test } from 'vitest'
import { type Clock, concurrency, createLimiter, fixedWindow, gcra, memoryStore, slidingLog, tokenBucket } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { noUnhandledRejections, PATIENT, slowStore, told, watched } from './support.ts'

noUnhandledRejections()

const BROKEN = new Error('the clock is broken')

/** A clock whose reading or timer fails, once, after so many that did not. */
function breaking(clock: Clock) {
  let leftUntilIt = Number.POSITIVE_INFINITY
  let stalledUs = 0
  const look = () => {
    if (leftUntilIt-- === 0) throw BROKEN
  }
  return {
    breakAfter(calls: number): void {
      leftUntilIt = calls
    },
    /** Time passes, and no timer fires. */
    stall(us: number): void {
      stalledUs += us
    },
    /** Whether it has thrown since. */
    get hasBroken(): boolean {
      return leftUntilIt < 0
    },
    clock: {
      nowUs() {
        look()
        return clock.nowUs() + stalledUs
      },
      setTimer(fn, us, keepAlive) {
        look()
        return clock.setTimer(fn, us, keepAlive)
      },
    } satisfies Clock,
  }
}

const LIMITS = {
  gcra: gcra({ rate: '1/s', burst: 2 }),
  tokenBucket: tokenBucket({ capacity: 2, refill: '1/s' }),
  fixedWindow: fixedWindow({ limit: 2, window: '1s' }),
  slidingLog: slidingLog({ limit: 2, window: '1s' }),
  concurrency: concurrency({ max: 2, lease: '1s' }),
}

const STORES = {
  'that answers at once': () => ({ store: memoryStore(), settle: told }),
  'that answers later': () => {
    const store = slowStore()
    return { store, settle: () => store.settle() }
  },
}

/** A limiter whose key is full, with such a clock. */
async function full(limits: keyof typeof LIMITS, stores: keyof typeof STORES, options = {}) {
  const fake = fakeClock()
  const broken = breaking(fake)
  const { store, settle } = STORES[stores]()
  const limiter = createLimiter(LIMITS[limits], { name: 'api', store, clock: broken.clock, ...PATIENT, ...options })
  const failures: unknown[] = []
  limiter.listen({ onFailure: ({ error }) => failures.push(error) })
  const taken = [limiter.consume('k'), limiter.consume('k')]
  await settle()
  const held = await Promise.all(taken)
  expect(held.map(({ allowed }) => allowed)).toEqual([true, true])
  const release = (all: readonly unknown[]) => {
    for (const each of all) void (each as { release?: () => unknown }).release?.()
  }
  /** Those who hold something give it back, and time passes. */
  const pass = async () => {
    release(held)
    await passing(fake, settle)
  }
  return { limiter, failures, broken, settle, release, pass, fake }
}

/** Ten seconds, a tenth at a time. */
async function passing(fake: FakeClock, settle: () => Promise<void>): Promise<void> {
  for (let step = 0; step < 100; step++) {
    await settle()
    fake.advanceMs(100)
  }
  await settle()
  await told()
}

describe.each(Object.keys(LIMITS) as (keyof typeof LIMITS)[])('a %s', (limits) => {
  describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('on a store %s', (stores) => {
    test.each([
      ['a call that waits as long as it takes', {}],
      ['a call that waits for a time', { timeoutMs: 60_000 }],
    ])('whatever reading of the clock fails, it ends %s, is told once, and others are served', async (_, options) => {
      let readings = 0
      for (; ; readings++) {
        const { limiter, failures, broken, settle, release, pass, fake } = await full(limits, stores)
        broken.breakAfter(readings)
        const wait = watched(limiter.acquire('k', options))
        const { hasBroken } = broken
        broken.breakAfter(Number.POSITIVE_INFINITY)
        await settle()
        await told()
        if (hasBroken) {
          expect({ end: wait.end, error: wait.error, failures, waiting: limiter.waiting() }, `reading ${readings}`).toEqual({
            end: 'rejected',
            error: BROKEN,
            failures: [BROKEN],
            waiting: 0,
          })
        }
        const later = ['k', 'other'].map((key) => watched(limiter.acquire(key, { timeoutMs: 9_000 })))
        await pass()
        expect([later.map(({ end }) => end), limiter.waiting()], `after reading ${readings}`).toEqual([['resolved', 'resolved'], 0])
        release([...later, wait].map(({ value }) => value ?? {}))
        limiter.close()
        // A timer of leases may rest, to be used again, until it fires.
        await passing(fake, settle)
        expect(fake.timers, `timers after reading ${readings}`).toBe(0)
        if (!hasBroken) break
      }
      // Nothing is survived that did not happen.
      expect(readings).toBeGreaterThan(1)
    })
  })
})

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('one who waits already, on a store %s', (stores) => {
  test.each(['gcra', 'fixedWindow', 'slidingLog'] as const)(
    'of a %s has an end, whatever reading fails for one who comes as it is due',
    async (limits) => {
      for (let readings = 0, hasBroken = true; hasBroken; readings++) {
        const { limiter, broken, settle, fake } = await full(limits, stores, { maxAheadMs: 0 })
        const first = watched(limiter.acquire('k'))
        await settle()
        // Its turn has come, and its timer is late.
        broken.stall(1_000_000)
        broken.breakAfter(readings)
        const second = watched(limiter.acquire('k'))
        hasBroken = broken.hasBroken
        broken.breakAfter(Number.POSITIVE_INFINITY)
        await passing(fake, settle)
        expect(
          [first, second].map(({ end }) => end),
          `reading ${readings}`,
        ).not.toContain('pending')
        expect(limiter.waiting()).toBe(0)
        limiter.close()
      }
    },
  )
})

describe.each(Object.keys(STORES) as (keyof typeof STORES)[])('waits that are aborted, on a store %s', (stores) => {
  test.each(Object.keys(LIMITS) as (keyof typeof LIMITS)[])('of a %s all end, whatever reading fails meanwhile', async (limits) => {
    for (let readings = 0, hasBroken = true; hasBroken; readings++) {
      const { limiter, broken, settle, fake } = await full(limits, stores)
      const reason = new Error('the user left')
      const listeners: (() => void)[] = []
      const signal = {
        aborted: false,
        reason,
        addEventListener: (_: 'abort', listener: () => void) => void listeners.push(listener),
        removeEventListener: () => {},
      }
      const waits = [1, 2, 3].map(() => watched(limiter.acquire('k', { signal })))
      await settle()
      broken.breakAfter(readings)
      try {
        for (const abort of listeners) abort()
      } catch (error) {
        // Those who are left are told when the clock goes on.
        expect(error).toBe(BROKEN)
      }
      hasBroken = broken.hasBroken
      broken.breakAfter(Number.POSITIVE_INFINITY)
      await told()
      const ends = waits.map(({ end, error }) => [end, error])
      expect([ends, limiter.waiting()], `reading ${readings}`).toEqual([waits.map(() => ['rejected', reason]), 0])
      limiter.close()
      await passing(fake, settle)
    }
  })
})

test('a timer that could not be set leaves the one that was set before', async () => {
  const fake = fakeClock()
  const broken = breaking(fake)
  const limiter = createLimiter(gcra({ rate: '1/s', burst: 1 }), { clock: broken.clock, ...PATIENT })
  for (let k = 0; k < 10; k++) limiter.reserve('late')
  limiter.consume('soon')
  const late = watched(limiter.acquire('late'))
  let readings = 0
  for (let hasBroken = true; hasBroken; readings++) {
    broken.breakAfter(readings)
    const soon = watched(limiter.acquire('soon'))
    hasBroken = broken.hasBroken
    broken.breakAfter(Number.POSITIVE_INFINITY)
    await told()
    if (!hasBroken) break
    expect([soon.end, fake.timers]).toEqual(['rejected', 1])
  }
  expect(readings).toBeGreaterThan(1)
  fake.advanceMs(60_000)
  await told()
  expect([late.end, limiter.waiting()]).toEqual(['resolved', 0])
  limiter.close()
})
