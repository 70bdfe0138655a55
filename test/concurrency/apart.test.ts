/**
 * Threads whose clocks lie apart share a limit as if they had one clock: never more is admitted,
 * and never less.
 */
import { describe, expect, test } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { limitFrom } from '../../src/config/index.ts'
import {
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  systemClock,
  tokenBucket,
} from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Crew, gate } from './crew.ts'

const START_MS = 1_700_000_000_000

const THREE: Readonly<Record<string, Limit>> = {
  gcra: gcra({ rate: '3/s', burst: 3 }),
  tokenBucket: tokenBucket({ refill: '3/s', capacity: 3 }),
  leakyBucket: leakyBucket({ leak: '3/s', capacity: 3 }),
  fixedWindow: fixedWindow({ limit: 3, window: '1s' }),
  slidingWindow: slidingWindow({ limit: 3, window: '1s' }),
  slidingLog: slidingLog({ limit: 3, window: '1s' }),
}

/** Limiters on one memory, as of threads with a clock each. */
function threadsApart(limits: Limit, apartMs: readonly number[]) {
  const { handle } = sharedStore({ maxKeys: 10, limits })
  const clocks = apartMs.map((ms) => fakeClock(START_MS + ms))
  const limiters = clocks.map((clock) => createLimiter(limits, { name: 'apart', store: sharedStore(handle), clock, maxAheadMs: 0 }))
  return { clocks, limiters }
}

describe.each(Object.entries(THREE))('%s', (_, limits) => {
  test.each([
    [0, -5_000],
    [-5_000, 0],
    [0, -86_400_000, -1_200],
    [0, -700],
    [0, 5_000, -5_000],
  ])('admits as much as one thread would, with clocks at %i, %i and %i ms', (...apartMs: number[]) => {
    const { clocks, limiters } = threadsApart(limits, apartMs)
    // A clock that lies ahead is a step forward for all, when it is first read.
    const readAll = () => limiters.map((limiter) => limiter.peek('other'))
    readAll()
    const clock = fakeClock(START_MS)
    const alone = createLimiter(limits, { store: memoryStore(), clock, maxAheadMs: 0 })
    let [admitted, admittedAlone] = [0, 0]
    for (let step = 0; step < 2_000; step++) {
      for (const limiter of limiters) {
        if (limiter.tryAcquire('k')) admitted += 1
        if (alone.tryAcquire('k')) admittedAlone += 1
      }
      for (const each of [clock, ...clocks]) each.advanceMs(10)
    }
    expect(admittedAlone).toBeGreaterThan(50)
    // A fixed window may begin at another moment of the common time.
    expect(Math.abs(admitted - admittedAlone)).toBeLessThanOrEqual(limits === THREE.fixedWindow ? 3 : 0)
  })

  test('goes on when a thread lies far ahead: nobody waits for its time, and it gives back once', () => {
    const { clocks, limiters } = threadsApart(limits, [0, 3_600_000])
    const [one, ahead] = limiters as [(typeof limiters)[number], (typeof limiters)[number]]
    const takeAll = () => limiters.reduce((sum, limiter) => sum + [1, 2, 3, 4].filter(() => limiter.tryAcquire('k')).length, 0)
    expect([1, 2, 3, 4].filter(() => one.tryAcquire('k'))).toHaveLength(3)
    expect([1, 2, 3, 4].filter(() => ahead.tryAcquire('k'))).toHaveLength(3)
    for (let k = 0; k < 20; k++) expect(takeAll()).toBe(0)
    for (const clock of clocks) clock.advanceMs(2_000)
    expect(takeAll()).toBe(3)
  })

  test('takes a clock that steps back for one, as memory does: what is in use stays, and is free again in time', () => {
    const clock = fakeClock(START_MS)
    const limiters = [memoryStore(), sharedStore({ maxKeys: 10, limits })].map((store) =>
      createLimiter(limits, { name: 'steps', store, clock, maxAheadMs: 0 }),
    )
    const answers = () => limiters.map((limiter) => [limiter.consume('k', 1), limiter.peek('k', 3)])
    for (const stepMs of [0, 0.001, -0.5, 300, -200, 0, -3_600_000, 1, 999, -5_000, 2_000, 7_000_000, -1]) {
      clock.setMs(clock.nowUs() / 1000 + stepMs)
      const [inMemory, shared] = answers()
      expect(shared).toEqual(inMemory)
    }
  })

  test('gives nothing back where the one clock of all threads steps back', () => {
    const { clocks, limiters } = threadsApart(limits, [0, 0, 0])
    const takeAll = () => limiters.reduce((sum, limiter) => sum + [1, 2, 3, 4].filter(() => limiter.tryAcquire('k')).length, 0)
    expect(takeAll()).toBe(3)
    for (let k = 0; k < 10; k++) {
      for (const clock of clocks) clock.setMs(clock.nowUs() / 1000 - 60_000)
      expect(takeAll()).toBe(0)
    }
  })
})

test('a thread with a clock of its own is brought in line with those that go by the common one', () => {
  const limits = gcra({ rate: '1/h', burst: 3 })
  const { handle } = sharedStore({ maxKeys: 10, limits })
  const clock = { nowUs: () => systemClock.nowUs() - 86_400_000_000, setTimer: systemClock.setTimer }
  const common = createLimiter(limits, { name: 'apart', store: sharedStore(handle) })
  const own = createLimiter(limits, { name: 'apart', store: sharedStore(handle), clock })
  let admitted = 0
  for (let k = 0; k < 1_000; k++) for (const limiter of [common, own]) if (limiter.tryAcquire('k')) admitted += 1
  // Once more, before the first thread of the common clock has heard of the other.
  expect(admitted).toBeLessThanOrEqual(6)
})

test('waits are as long as they were, in a thread whose clock was brought in line', async () => {
  const { clocks, limiters } = threadsApart(gcra({ rate: '1/s', burst: 1 }), [0, -60_000])
  const [one, behind] = limiters as [(typeof limiters)[number], (typeof limiters)[number]]
  one.consume('k')
  let waitedMs = -1
  const waits = behind.acquire('k').then((acquired) => {
    waitedMs = acquired.waitedMs
  })
  for (const clock of clocks) clock.advanceMs(999)
  await Promise.resolve()
  expect(waitedMs).toBe(-1)
  for (const clock of clocks) clock.advanceMs(1)
  await waits
  expect(waitedMs).toBe(1_000)
})

test('real threads with clocks of their own, judged by the times of their decisions', async () => {
  const THREADS = 4
  const crew = new Crew(THREADS)
  const made = ['tokenBucket', { refill: '1000/s', capacity: 10 }] as const
  try {
    const store = sharedStore({ maxKeys: 4, maxThreads: THREADS + 1, limits: limitFrom({ type: made[0], ...made[1] }) })
    const apartUs = [0, -3_600_000_000, -2_000_000, -300_000]
    const order = { handle: store.handle, gate: gate(), limits: made, forMs: 1_500, apartUs }
    const answers = await crew.work<{ admitted: number[]; refused: number[] }>(THREADS, 'decided', order)
    const admitted = answers.flatMap((each) => each.admitted).sort((a, b) => a - b)
    const refused = answers.flatMap((each) => each.refused).sort((a, b) => a - b)
    expect(Math.min(...answers.map((each) => each.admitted.length + each.refused.length))).toBeGreaterThan(100)
    expect(admitted.length).toBeGreaterThan(500)
    let [level, lastUs, most, least, k, ahead] = [0, 0, 0, 100, 0, 0]
    const drainTo = (us: number) => {
      level = Math.max(0, level - (us - lastUs) / 1000)
      lastUs = us
    }
    for (const us of refused) {
      for (; k < admitted.length && (admitted[k] as number) <= us; k++) {
        drainTo(admitted[k] as number)
        level += 1
        most = Math.max(most, level)
      }
      drainTo(us)
      // The latest time is written down to the millisecond, so another thread may have charged up to
      // that much later and before.
      for (ahead = Math.max(ahead, k); ahead < admitted.length && (admitted[ahead] as number) <= us + 1000; ahead++);
      least = Math.min(least, level + ahead - k)
    }
    console.log(`${admitted.length} admitted, ${refused.length} refused: at most ${most} of 10 in use, at least ${least} at a refusal`)
    // By as much as is free again within that millisecond.
    expect(most).toBeLessThanOrEqual(11)
    expect(least).toBeGreaterThan(9)
  } finally {
    await crew.dismiss()
  }
})
