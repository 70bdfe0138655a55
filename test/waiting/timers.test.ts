/**
 * Timers that fire early, late, or cannot wait that long; clocks that step back; processes that may
 * end.
 */
import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { type Clock, createLimiter, fixedWindow, gcra, leakyBucket, slidingLog, systemClock, tokenBucket } from '../../src/index.ts'
import { type FakeClock, fakeClock } from '../../src/testing/index.ts'
import { Random } from '../model/random.ts'
import { SEED } from '../model/trace.ts'
import { noUnhandledRejections, setUp, told, watched } from './support.ts'

noUnhandledRejections()

const DAY_MS = 86_400_000

/** Fires each timer up to a millisecond early, as runtimes do, but moves on in the end. */
function earlyClock(clock: FakeClock, random: Random): Clock {
  return {
    nowUs: () => clock.nowUs(),
    setTimer: (fn, us) => clock.setTimer(fn, Math.max(Math.min(us, 1), us - random.whole(0, 1_000))),
  }
}

describe('a timer that fires early', () => {
  test.each([
    ['gcra', gcra({ rate: '700/s', burst: 2 })],
    ['leakyBucket', leakyBucket({ capacity: 2, leak: '700/s' })],
    ['slidingLog', slidingLog({ limit: 2, window: '3ms' })],
    ['fixedWindow', fixedWindow({ limit: 2, window: '3ms' })],
  ])('serves nobody early at a %s, and nobody late', async (_, limit) => {
    const served = async (clockOf: (clock: FakeClock) => Clock) => {
      const clock = fakeClock()
      const limiter = createLimiter(limit, { clock: clockOf(clock) })
      const times: number[] = []
      for (let k = 0; k < 40; k++) void limiter.acquire('k', { cost: 1 + (k % 2) }).then(({ waitedMs }) => times.push(waitedMs))
      clock.setMs(1_000)
      await told()
      expect(clock.timers).toBe(0)
      return times
    }
    const random = new Random(SEED)
    const exact = await served((clock) => clock)
    expect(exact.length).toBe(40)
    for (let k = 0; k < 20; k++) expect(await served((clock) => earlyClock(clock, random))).toEqual(exact)
  })
})

describe('a wait of months', () => {
  test('is booked as far ahead as it may be, or stands outside until it can be', async () => {
    for (const maxAheadMs of [0, 60_000, 366 * DAY_MS]) {
      const { limiter, moveTo, clock } = setUp(gcra({ rate: '1/30d', burst: 1 }), { maxAheadMs })
      limiter.consume('k')
      const waits = [1, 2, 3].map(() => watched(limiter.acquire('k')))
      for (const [k, wait] of waits.entries()) {
        await moveTo((k + 1) * 30 * DAY_MS * 1000 - 1)
        expect(wait.end).toBe('waits')
        await moveTo((k + 1) * 30 * DAY_MS * 1000)
        expect(wait.end).toBe('resolved')
      }
      expect(clock.timers).toBe(0)
    }
  })

  test('with a deadline of a hundred years', async () => {
    const { limiter, moveTo, clock } = setUp(tokenBucket({ capacity: 1, refill: '1/300d' }), { maxAheadMs: 0 })
    limiter.consume('k')
    const wait = watched(limiter.acquire('k', { timeoutMs: 36_500 * DAY_MS }))
    const ever = watched(limiter.acquire('k', { timeoutMs: Number.MAX_VALUE }))
    await moveTo(300 * DAY_MS * 1000)
    expect([wait.end, ever.end, clock.timers]).toEqual(['resolved', 'waits', 1])
    limiter.close()
  })
})

describe('the timer of the system', () => {
  afterEach(() => {
    // In this order: the spies are on the fake timers.
    vi.restoreAllMocks()
    vi.useRealTimers()
  })

  const LONGEST_MS = 2 ** 31 - 1

  test('beyond what a runtime can wait is made of several', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    let fired = 0
    systemClock.setTimer(() => fired++, (2 * LONGEST_MS + 5) * 1000)
    vi.advanceTimersByTime(2 * LONGEST_MS)
    expect(fired).toBe(0)
    vi.advanceTimersByTime(4)
    expect(fired).toBe(0)
    vi.advanceTimersByTime(1)
    expect(fired).toBe(1)
    expect(setTimer.mock.calls.map(([, ms]) => ms)).toEqual([LONGEST_MS, LONGEST_MS, 5])
    vi.advanceTimersByTime(3 * LONGEST_MS)
    expect(fired).toBe(1)
  })

  test('can be stopped in every part, and fires never before its microseconds have passed', () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let fired = 0
    const stops = [0, 1, 2].map(() => systemClock.setTimer(() => fired++, (2 * LONGEST_MS + 5) * 1000))
    stops[0]?.()
    vi.advanceTimersByTime(LONGEST_MS + 1)
    stops[1]?.()
    vi.advanceTimersByTime(LONGEST_MS + 1)
    stops[2]?.()
    vi.advanceTimersByTime(3 * LONGEST_MS)
    expect([fired, vi.getTimerCount()]).toEqual([0, 0])
    systemClock.setTimer(() => fired++, 1_001)
    vi.advanceTimersByTime(1)
    expect(fired).toBe(0)
    vi.advanceTimersByTime(1)
    expect(fired).toBe(1)
  })

  test('of a limiter is never set for longer', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const limiter = createLimiter(gcra({ rate: '1/60d', burst: 1 }), { maxAheadMs: 366 * DAY_MS })
    limiter.consume('k')
    const wait = watched(limiter.acquire('k', { timeoutMs: 100 * DAY_MS }))
    await told()
    expect(setTimer.mock.calls.map(([, ms]) => ms)).toEqual([LONGEST_MS])
    // The clock of the process has not moved: whatever fires is too early.
    vi.advanceTimersByTime(200 * DAY_MS)
    await told()
    expect(wait.end).toBe('waits')
    expect(Math.max(...setTimer.mock.calls.map(([, ms]) => ms as number))).toBe(LONGEST_MS)
    limiter.close()
    await told()
    expect([wait.code, vi.getTimerCount()]).toEqual(['CLOSED', 0])
  })
})

describe('a clock that steps back', () => {
  test.each([
    ['gcra', gcra({ rate: '1/s', burst: 1 })],
    ['tokenBucket', tokenBucket({ capacity: 1, refill: '1/s' })],
    ['slidingLog', slidingLog({ limit: 1, window: '1s' })],
  ])('serves nobody of a %s early, and loses nobody', async (_, limit) => {
    const { limiter, clock, moveTo } = setUp(limit)
    await moveTo(10_000_000)
    limiter.consume('k')
    const waits = [1, 2].map(() => watched(limiter.acquire('k')))
    await moveTo(10_900_000)
    await moveTo(10_100_000)
    await moveTo(10_999_999)
    expect(waits.map(({ end }) => end)).toEqual(['waits', 'waits'])
    await moveTo(11_000_000)
    expect(waits[0]?.end).toBe('resolved')
    for (let us = 11_000_000; us <= 20_000_000; us += 100_000) await moveTo(us)
    expect([waits[1]?.end, clock.timers]).toEqual(['resolved', 0])
  })
})

describe('a process', () => {
  function run(options: string, then: string) {
    const code = `
      import { createLimiter, gcra } from './dist/index.js'
      import { asyncStore } from './dist/stores/index.js'
      const limiter = createLimiter(gcra({ rate: '4/s', burst: 1 }), ${options})
      limiter.consume('k')
      process.on('exit', () => console.log('exit'))
      ${then}`
    const { status, signal, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
      timeout: 20_000,
      encoding: 'utf8',
    })
    return { status, signal, stdout: stdout.trim().split('\n'), stderr }
  }

  test('stays alive until all waiters are served', () => {
    const seen = run('{}', "limiter.acquire('k').then(() => console.log('served'))")
    expect(seen).toEqual({ status: 0, signal: null, stdout: ['served', 'exit'], stderr: '' })
  })

  // The first answer comes at once, and leaves the timer behind that watches over all of them.
  const REMOTE = `{ name: 'api', onStoreError: 'allow', storeTimeoutMs: TIMEOUT, store: asyncStore({
    shared: true, async apply([{ parts }]) {
      if (parts[0].key !== 'k') await new Promise(() => {})
    } }) }`

  test('ends when its decisions are made, however long they could have taken', () => {
    const seen = run(REMOTE.replace('TIMEOUT', '600_000'), "limiter.consume('k').then(() => console.log('answered'))")
    expect(seen).toEqual({ status: 0, signal: null, stdout: ['answered', 'exit'], stderr: '' })
  })

  test('stays alive until a decision that is not answered is given up', () => {
    const then = "await limiter.consume('k'); limiter.consume('lost').then(({ degraded }) => console.log(degraded))"
    const seen = run(REMOTE.replace('TIMEOUT', '300'), then)
    expect(seen).toEqual({ status: 0, signal: null, stdout: ['true', 'exit'], stderr: '' })
  })

  test('may end if it was told so', () => {
    const seen = run('{ unref: true }', "limiter.acquire('k').then(() => console.log('served'))")
    expect(seen).toEqual({ status: 0, signal: null, stdout: ['exit'], stderr: '' })
  })

  test('ends when nobody waits any longer', () => {
    const seen = run(
      '{ maxAheadMs: 9e8 }',
      `
      for (let k = 0; k < 1000; k++) limiter.acquire('k').catch(() => {})
      const gone = new AbortController()
      limiter.acquire('k', { signal: gone.signal, timeoutMs: 9e8 }).catch(() => console.log('left'))
      setTimeout(() => { gone.abort(); limiter.close() }, 50)`,
    )
    expect(seen).toEqual({ status: 0, signal: null, stdout: ['left', 'exit'], stderr: '' })
  })
})

describe('in real time', () => {
  test('no waiter departs early, and the order is kept', async () => {
    // 100 each second: after the burst of 5, one every 10 ms.
    const limiter = createLimiter(gcra({ rate: '100/s', burst: 5 }))
    const startUs = systemClock.nowUs()
    const departures: { k: number; us: number }[] = []
    await Promise.all(
      Array.from({ length: 105 }, (_, k) => limiter.acquire('k').then(() => departures.push({ k, us: systemClock.nowUs() }))),
    )
    expect(departures.map(({ k }) => k)).toEqual(Array.from({ length: 105 }, (_, k) => k))
    for (const { k, us } of departures) expect(us - startUs).toBeGreaterThanOrEqual(Math.max(0, k - 4) * 10_000)
    expect(limiter.waiting()).toBe(0)
  })

  test('a waiter in line departs no earlier than its window allows', async () => {
    const limiter = createLimiter(slidingLog({ limit: 10, window: '100ms' }))
    const admittedUs: number[] = []
    for (let k = 0; k < 60; k++) {
      const { atMs } = await limiter.acquire('k')
      admittedUs.push(Math.round(atMs * 1000))
      expect(systemClock.nowUs()).toBeGreaterThanOrEqual(admittedUs[k] as number)
    }
    for (let k = 0; k + 10 < admittedUs.length; k++) {
      expect((admittedUs[k + 10] as number) - (admittedUs[k] as number)).toBeGreaterThanOrEqual(100_000)
    }
  })
})
