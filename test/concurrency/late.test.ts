/**
 * A call that is held up in the middle gives nothing back of what others used meanwhile: one limit
 * is never exceeded, however late a thread is.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { limitFrom } from '../../src/config/index.ts'
import { createLimiter, fixedWindow, gcra, leakyBucket, slidingLog, slidingWindow, tokenBucket } from '../../src/index.ts'
import { sharedStore } from '../../src/stores/shared-memory/index.ts'
import { Crew, gate } from './crew.ts'

const START_US = 1_700_000_000_000_000
const SECOND_US = 1_000_000

const THREE: Readonly<Record<string, Limit>> = {
  gcra: gcra({ rate: '3/s', burst: 3 }),
  tokenBucket: tokenBucket({ refill: '3/s', capacity: 3 }),
  leakyBucket: leakyBucket({ leak: '3/s', capacity: 3 }),
  fixedWindow: fixedWindow({ limit: 3, window: '1s' }),
  slidingWindow: slidingWindow({ limit: 3, window: '1s' }),
  slidingLog: slidingLog({ limit: 3, window: '1s' }),
}

/**
 * Two limiters on one handle, as of two threads. While the second reads its clock, it can be held
 * up: `whileReading` is called then, once.
 */
function twoThreads(limits: Limit | Readonly<Record<string, Limit>>) {
  const store = sharedStore({ maxKeys: 10, limits })
  const time = { nowUs: START_US, readings: 0, whileReading: () => {} }
  const setTimer = () => () => undefined
  const options = { name: 'late', maxAheadMs: 0 }
  const inTime = createLimiter(limits, { ...options, store, clock: { nowUs: () => time.nowUs, setTimer } })
  const clock = {
    nowUs() {
      const { nowUs, whileReading } = time
      time.readings += 1
      time.whileReading = () => {}
      whileReading()
      return nowUs
    },
    setTimer,
  }
  const late = createLimiter(limits, { ...options, store: sharedStore(store.handle), clock })
  const takeAll = () => {
    let taken = 0
    while (inTime.tryAcquire('k')) taken += 1
    return taken
  }
  return { time, inTime, late, takeAll }
}

describe.each([...Object.entries(THREE), ['all at once', THREE] as const])(
  '%s: a thread that is held up while it reads the clock',
  (_, limits) => {
    test.each(['tryAcquire', 'consume', 'peek', 'settle'] as const)('by %s', (verb) => {
      const { time, late, takeAll } = twoThreads(limits)
      const longAgo = { atMs: START_US / 1000 - 10_000, parts: late.peek('k').parts }
      expect(takeAll()).toBe(3)
      for (let round = 0; round < 5; round++) {
        let admitted = 0
        time.whileReading = () => {
          time.nowUs += 1.5 * SECOND_US
          admitted = takeAll()
        }
        // Of a call that was long ago there is nothing to give back.
        if (verb === 'settle') late.settle('k', 0, { of: longAgo })
        else late[verb]('k')
        expect(admitted + takeAll()).toBe(3)
      }
    })

    test('brings a new key', () => {
      const { time, late, takeAll } = twoThreads(limits)
      time.whileReading = () => {
        time.nowUs += 1.5 * SECOND_US
        expect(takeAll()).toBe(3)
      }
      expect(late.tryAcquire('k')).toBe(false)
      expect(takeAll()).toBe(0)
    })

    test('reads it once a call, whatever the call, and once more for each lost race', () => {
      const { time, inTime, late } = twoThreads(limits)
      const readings = (act: () => unknown) => {
        time.readings = 0
        act()
        return time.readings
      }
      expect(readings(() => late.tryAcquire('new'))).toBe(1)
      expect(readings(() => late.tryAcquire('new'))).toBe(1)
      expect(readings(() => late.consume('new'))).toBe(1)
      expect(readings(() => late.consume('new'))).toBe(1)
      expect(readings(() => late.consume('newer'))).toBe(1)
      expect(readings(() => late.peek('newest'))).toBe(1)
      expect(readings(() => late.refund('new'))).toBe(1)
      time.whileReading = () => inTime.tryAcquire('newer')
      expect(readings(() => late.tryAcquire('newer'))).toBe(2)
    })
  },
)

/**
 * A limit, and the times at which it was taken, in whole microseconds and in order: the first that
 * should not have been, or -1.
 */
type Judge = (timesUs: readonly number[]) => number

/** One permit every `intervalUs`, and `capacity` at once. */
const paced =
  (intervalUs: number, capacity: number): Judge =>
  (timesUs) => {
    let [levelUs, lastUs] = [0, 0]
    return timesUs.findIndex((timeUs) => {
      levelUs = Math.max(0, levelUs - (timeUs - lastUs)) + intervalUs
      lastUs = timeUs
      return levelUs > capacity * intervalUs
    })
  }

const inAnyWindow =
  (limit: number, windowUs: number): Judge =>
  (timesUs) =>
    timesUs.findIndex((timeUs, k) => k >= limit && timeUs - (timesUs[k - limit] as number) < windowUs)

const inOrder = (times: readonly (readonly number[])[]) => times.flat().sort((a, b) => a - b)

test('the judges find what is too much, and nothing else', () => {
  expect(paced(1000, 2)([0, 0, 1000, 2000, 2999])).toBe(4)
  expect(paced(1000, 2)([0, 0, 1000, 2000, 3000])).toBe(-1)
  expect(inAnyWindow(2, 1000)([0, 500, 1000, 1499])).toBe(3)
  expect(inAnyWindow(2, 1000)([0, 500, 1000, 1500])).toBe(-1)
})

describe('more threads than processors, on a limit that refills all the time', () => {
  const THREADS = 10
  let crew: Crew
  beforeAll(() => {
    crew = new Crew(THREADS)
  })
  afterAll(() => crew.dismiss())

  test.each([
    { made: ['tokenBucket', { refill: '1000/s', capacity: 10 }], judge: paced(1000, 10), least: 500 },
    { made: ['leakyBucket', { leak: '1000/s', capacity: 10 }], judge: paced(1000, 10), least: 500 },
    { made: ['gcra', { rate: '1000/s', burst: 10 }], judge: paced(1000, 10), least: 500 },
    { made: ['slidingLog', { limit: 3, window: '20ms' }], judge: inAnyWindow(3, 20_000), least: 50 },
  ] as const)('$made.0 admits no more than it says, by the times of the decisions', async ({ made, judge, least }) => {
    const store = sharedStore({ maxKeys: 4, maxThreads: THREADS, limits: limitFrom({ type: made[0], ...made[1] }) })
    const order = { handle: store.handle, gate: gate(), limits: made, forMs: 2_000 }
    const timesUs = inOrder(await crew.work<number[]>(THREADS, 'admitted', order))
    expect(timesUs.length).toBeGreaterThan(least)
    expect(judge(timesUs)).toBe(-1)
  })

  test('permits that each thread takes and gives back by its decision leave nothing behind', async () => {
    const made = ['slidingLog', { limit: 8, window: '1h' }] as const
    const limits = limitFrom({ type: made[0], ...made[1] })
    const store = sharedStore({ maxKeys: 4, maxThreads: THREADS, limits })
    const order = { handle: store.handle, gate: gate(), limits: made, calls: 15_000 }
    const taken = await crew.work<number>(4, 'cancelled', order)
    expect(Math.min(...taken)).toBeGreaterThan(0)
    expect(createLimiter(limits, { name: 'crew', store }).peek('key').remaining).toBe(8)
  })
})

describe.skipIf(process.platform === 'win32')('a process that is stopped for longer than a window, and goes on, several times', () => {
  const WINDOW_MS = 100
  const STOPS = 16

  test.each([
    { made: ['slidingLog', { limit: 3, window: `${WINDOW_MS}ms` }], judge: inAnyWindow(3, WINDOW_MS * 1000) },
    { made: ['tokenBucket', { refill: '30/s', capacity: 3 }], judge: pacedBy(30, 3) },
  ] as const)('$made.0 admits no more than it says', async ({ made, judge }) => {
    const child = spawn(
      process.execPath,
      [new URL('stopped.process.mjs', import.meta.url).pathname, JSON.stringify({ made, threads: 8 })],
      {
        stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      },
    )
    try {
      await once(child, 'message')
      for (let stop = 0; stop < STOPS; stop++) {
        await pause(child, 'SIGSTOP', 1.5 * WINDOW_MS)
        await pause(child, 'SIGCONT', 60)
      }
      child.send('report')
      const [times] = (await once(child, 'message')) as [number[][]]
      const timesUs = inOrder(times)
      expect(timesUs.length).toBeGreaterThan(STOPS)
      expect(judge(timesUs)).toBe(-1)
    } finally {
      child.kill('SIGKILL')
    }
  })

  /**
   * So many a second. A permit may be no whole number of microseconds: the times are multiplied
   * instead.
   */
  function pacedBy(permits: number, capacity: number): Judge {
    const judge = paced(SECOND_US, capacity)
    return (timesUs) => judge(timesUs.map((timeUs) => timeUs * permits))
  }

  async function pause(child: ChildProcess, signal: 'SIGSTOP' | 'SIGCONT', ms: number): Promise<void> {
    child.kill(signal)
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
})
