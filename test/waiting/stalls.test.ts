/**
 * An event loop that stood still: waiters that came due meanwhile leave at the pace of the limit,
 * not all at once.
 */
import { describe, expect, test } from 'vitest'
import { type Clock, createLimiter, gcra, leakyBucket, memoryStore, type SyncStore, tokenBucket } from '../../src/index.ts'
import { SharedQueue } from '../../src/stores/queue/shared-queue.ts'
import { fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { SEED } from '../model/trace.ts'
import { mostEarly, noUnhandledRejections, told, watched } from './support.ts'

noUnhandledRejections()

const INTERVAL_MS = 10
const STALL_MS = 300
const LATENESS_MS = 10

/** A clock that can go on without its timers. */
function stallingClock() {
  const clock = fakeClock()
  let stalledUs = 0
  const stalling: Clock = { nowUs: () => clock.nowUs() + stalledUs, setTimer: (fn, us) => clock.setTimer(fn, us) }
  return {
    clock: stalling,
    stall: (ms: number) => {
      stalledUs += ms * 1000
    },
    /** Lets time go by, with all timers. */
    async run(ms: number) {
      for (let passed = 0; passed < ms; passed++) {
        clock.advanceMs(1)
        await told()
      }
    },
  }
}

/** The same memory, as if other processes used it too. */
function sharedMemory(): SyncStore {
  const memory = memoryStore()
  return { mode: 'sync', shared: true, queue: SharedQueue, open: (scope, nowUs) => memory.open(scope, nowUs) }
}

describe.each([
  ['gcra', gcra({ rate: '100/s', burst: 1 })],
  ['tokenBucket', tokenBucket({ capacity: 1, refill: '100/s' })],
  ['leakyBucket', leakyBucket({ capacity: 1_000, leak: '100/s' })],
])('%s', (_, limit) => {
  test.each([
    ['memory', memoryStore],
    ['memory that others share', sharedMemory],
  ])('on %s: after 300 ms without timers one leaves at once, and the others 10 ms apart', async (_name, storeOf) => {
    const { clock, stall, run } = stallingClock()
    const limiter = createLimiter(limit, { name: 'api', store: storeOf(), clock })
    const left: number[] = []
    for (let k = 0; k < 100; k++) void limiter.acquire('k').then(() => left.push(clock.nowUs() / 1000))
    await run(105)
    const before = left.length
    stall(STALL_MS)
    await run(2_000)
    expect(left.length).toBe(100)
    // A timer is late by a few milliseconds all the time, so as much is caught up with.
    expect(mostEarly(left.slice(before), INTERVAL_MS)).toBeLessThanOrEqual(LATENESS_MS + 1)
    limiter.close()
  })
})

test('a limit of 0 that callers cost nothing of does not hold them up', async () => {
  const { clock, stall, run } = stallingClock()
  const limiter = createLimiter({ paused: gcra({ rate: '1/s', burst: 0 }), pace: gcra({ rate: '100/s', burst: 1 }) }, { clock })
  const left: number[] = []
  const cost = { paused: 0, pace: 1 }
  for (let k = 0; k < 50; k++) void limiter.acquire('k', { cost }).then(() => left.push(clock.nowUs() / 1000))
  await run(105)
  stall(STALL_MS)
  await run(1_000)
  expect(left.length).toBe(50)
  expect(mostEarly(left.slice(11), INTERVAL_MS)).toBeLessThanOrEqual(LATENESS_MS + 1)
})

test('whose time passes because of a stall is told so at its deadline, and the others go on', async () => {
  const { clock, stall, run } = stallingClock()
  const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), { clock })
  const waits = Array.from({ length: 20 }, () => watched(limiter.acquire('k', { timeoutMs: 400 })))
  await run(45)
  stall(STALL_MS)
  await run(1_000)
  const ends = waits.map(({ end, code }) => code ?? end)
  expect(ends.slice(0, 5)).toEqual(Array(5).fill('resolved'))
  expect(ends.at(-1)).toBe('TIMEOUT')
  expect(new Set(ends)).toEqual(new Set(['resolved', 'TIMEOUT']))
  expect(limiter.waiting()).toBe(0)
})

test('timers that are a few milliseconds late cost nothing of the rate', async () => {
  const clock = fakeClock()
  const random = new Random(SEED)
  const late: Clock = { nowUs: () => clock.nowUs(), setTimer: (fn, us) => clock.setTimer(fn, us + random.whole(0, 9_000)) }
  const limiter = createLimiter(gcra({ rate: '100/s', burst: 1 }), { clock: late })
  let left = 0
  for (let k = 0; k < 1_000; k++)
    limiter.acquire('k').then(
      () => left++,
      () => {},
    )
  clock.setMs(5_000)
  await told()
  expect(left).toBeGreaterThanOrEqual(500)
  limiter.close()
  await told()
})
