/** Rates that follow a signal: on a fake clock, with real limiters. */
import { expect, test, vi } from 'vitest'
import { type Limit, RULE } from '../../src/algorithms/algorithm.ts'
import { rateOf } from '../../src/algorithms/at-rate.ts'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../../src/index.ts'
import { errorRate, followLoad, type RateChange } from '../../src/load/index.ts'
import { fakeClock } from '../../src/testing/fake-clock.ts'

const options = { min: '20/s', max: '100/s', from: 50, to: 150 } as const

test('linear between two levels, at most 10 % a second, never outside its bounds', () => {
  const clock = fakeClock()
  const limiter = createLimiter({ rate: gcra({ rate: '100/s', burst: 10 }), day: fixedWindow({ limit: 9, window: '1d' }) }, { clock })
  let level = 0
  const changes: RateChange[] = []
  const following = followLoad(limiter, { ...options, limit: 'rate', signal: () => level, clock, onChange: (event) => changes.push(event) })
  const random = seeded(3)
  let before = following.rate
  for (let second = 0; second < 600; second++) {
    if (second % 7 === 0) level = random() * 250
    clock.advanceMs(1_000)
    const { rate } = following
    const wanted = Math.max(20, Math.min(100, 100 - 0.8 * (level - 50)))
    expect(rate).toBeGreaterThanOrEqual(Math.max(20, before * 0.9 * 0.99) - 1e-9)
    expect(rate).toBeLessThanOrEqual(Math.min(100, before * 1.1 * 1.01) + 1e-9)
    // It is there, or went towards it.
    expect(Math.abs(rate / wanted - 1) < 0.011 || rate < wanted === rate > before || rate === before).toBe(true)
    before = rate
  }
  expect(changes.length).toBeGreaterThan(100)
  for (const { from, to, reason, limiter: name, limit } of changes) {
    expect([reason, name, limit]).toEqual([to < from ? 'more load' : 'less load', limiter.name, 'rate'])
  }
  const [rate, day] = limiter.scope().limits
  expect(rateOf((rate as { rule: Limit[typeof RULE] }).rule)).toBeCloseTo(before, 1)
  expect(day?.rule.figures).toEqual(fixedWindow({ limit: 9, window: '1d' })[RULE].figures)
})

test.each([
  gcra({ rate: '100/s', burst: 50 }),
  tokenBucket({ refill: '100/s', capacity: 50 }),
  leakyBucket({ leak: '100/s', capacity: 50 }),
  fixedWindow({ limit: 100, window: '1s' }),
  slidingWindow({ limit: 100, window: '1s' }),
  slidingLog({ limit: 100, window: '1s' }),
])('what keys have used is kept: %o', (limit) => {
  const clock = fakeClock(1_000)
  const limiter = createLimiter(limit as Limit, { clock })
  const following = followLoad(limiter, { ...options, signal: () => 1_000, clock, everyMs: 100 })
  let admitted = 0
  for (let k = 0; k < 3_000; k++) {
    clock.advanceMs(10)
    while (limiter.tryAcquire('key')) admitted += 1
  }
  expect(following.rate).toBeCloseTo(20)
  // From 100 a second down by a tenth a second to 20, for 30 seconds, and the burst: no more than
  // the rates allow.
  const allowed = Array.from({ length: 30 }, (_, second) => Math.max(20, 100 * 0.9 ** second)).reduce((sum, rate) => sum + rate, 0)
  expect(admitted).toBeLessThanOrEqual(allowed + 100)
  expect(admitted).toBeGreaterThanOrEqual(0.8 * allowed)
})

test('a signal that falls with the load; one that knows nothing; one that throws', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '1000/s', burst: 10 }), { clock })
  let read: () => number | undefined = () => undefined
  const following = followLoad(limiter, { min: '20/s', max: '100/s', from: 0.5, to: 0.1, signal: () => read(), clock })
  expect(following.rate).toBe(100)
  clock.advanceMs(5_000)
  expect([following.rate, following.signal]).toEqual([100, undefined])
  read = () => 0.3
  clock.advanceMs(60_000)
  expect(following.rate).toBeCloseTo(60)
  read = () => {
    throw new Error('no')
  }
  clock.advanceMs(60_000)
  expect(following.rate).toBeCloseTo(60)
  expect(warned.mock.calls[0]?.[0]).toMatch(/the signal of limiter 'unnamed-\d+' threw: Error: no/)
  warned.mockRestore()
  following.close()
  expect(clock.timers).toBe(0)
})

test('a store that others share needs a share', () => {
  const clock = fakeClock()
  const store = { ...memoryStore(), shared: true } as ReturnType<typeof memoryStore>
  const limiter = { ...fakeLimiter(), store }
  expect(() => followLoad(limiter, { ...options, signal: () => 0, clock })).toThrow(/share: 1 \/ n/)
  const following = followLoad(limiter, { ...options, signal: () => 0, clock, share: 1 / 4 })
  clock.advanceMs(60_000)
  expect(following.rate).toBe(25)
})

test('ends with its limiter: a timer that fails would end the process', () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '100/s', burst: 10 }), { clock })
  let closed = 0
  const following = followLoad(limiter, { ...options, signal: { read: () => 1_000, close: () => (closed += 1) }, clock })
  clock.advanceMs(1_000)
  expect(following.rate).toBeCloseTo(90)
  limiter.close()
  clock.advanceMs(60_000)
  expect([following.rate, clock.timers, closed]).toEqual([90, 0, 1])
})

test('a limiter that refuses a rate is a warning, and the next rate is tried', () => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
  const clock = fakeClock()
  let isRefused = true
  const limiter = fakeLimiter()
  const update = (limits: never) => {
    if (isRefused) throw new Error('not now')
    limiter.update(limits)
  }
  const following = followLoad({ ...limiter, store: memoryStore(), update }, { ...options, signal: () => 1_000, clock })
  clock.advanceMs(3_000)
  expect(following.rate).toBe(100)
  expect(warned.mock.calls[0]?.[0]).toMatch(/limiter 'api' refused the rate of followLoad: Error: not now/)
  isRefused = false
  clock.advanceMs(1_000)
  expect(following.rate).toBeLessThan(100)
  warned.mockRestore()
})

test('a signal is followed by one limit at a time, and a limit follows one signal', () => {
  const clock = fakeClock()
  const limiter = createLimiter(gcra({ rate: '100/s', burst: 10 }), { clock })
  const other = createLimiter(gcra({ rate: '100/s', burst: 10 }), { clock })
  const signal = errorRate()
  const first = followLoad(limiter, { ...options, signal, clock })
  expect(() => followLoad(other, { ...options, signal, clock })).toThrow(/signal is followed already/)
  expect(() => followLoad(limiter, { ...options, signal: errorRate(), clock })).toThrow(/limit "default" follows the load already/)
  first.close()
  followLoad(limiter, { ...options, signal, clock }).close()
})

test.each([
  [concurrency({ max: 5 }), {}, /limit "default" is a concurrency, which has no rate/],
  [
    gcra({ rate: '100/s', burst: 1_000_000_000 }),
    { min: '1/d' },
    /followLoad min "1\/d": gcra burst 1000000000 must be at most 26120 at this rate/,
  ],
  [
    fixedWindow({ limit: 100, window: '366d' }),
    { max: '1000000/s' },
    /the limit of a window at this rate .* must be at most 1,000,000,000/,
  ],
  // It would be too long for a store to read.
  [slidingLog({ limit: 90_000, window: '1min' }), { max: '3000/s' }, /the limit of a window at this rate 180000 must be at most 100,000/],
])('refuses what %o can never be', (limit, wrong, message) => {
  const limiter = createLimiter(limit as Limit)
  const scope = limiter.scope()
  expect(() => followLoad(limiter, { ...options, signal: () => 0, ...wrong } as never)).toThrow(message)
  expect(limiter.scope()).toBe(scope)
})

function fakeLimiter() {
  const limiter = createLimiter(gcra({ rate: '100/s', burst: 10 }), { name: 'api' })
  return { name: 'api', scope: () => limiter.scope(), update: (limits: never) => limiter.update(limits) }
}

test.each([
  [{ min: '200/s' }, /min "200\/s" must be at most max \("100\/s"\)/],
  [{ min: 5 }, /followLoad min 5 must be permits per time/],
  [{ from: Number.NaN }, /from NaN must be a number/],
  [{ to: 50 }, /to 50 must be a number other than from \(50\)/],
  [{ signal: 5 }, /signal 5 must be a signal such as eventLoopDelay\(\)/],
  [{ share: 0 }, /share 0 must be above 0/],
  [{ everyMs: 1 }, /everyMs 1 must be from 10/],
  [{ limit: 'rate' }, /followLoad limit "rate" must be one of the limits: default/],
  [{ rate: '5/s' }, /followLoad "rate" is not an option/],
])('refuses %o before anything is touched', (wrong, message) => {
  const limiter = createLimiter(gcra({ rate: '500/s', burst: 10 }))
  const scope = limiter.scope()
  expect(() => followLoad(limiter, { ...options, signal: () => 0, ...wrong } as never)).toThrow(message)
  expect(limiter.scope()).toBe(scope)
})

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return state / 2_147_483_648
  }
}
