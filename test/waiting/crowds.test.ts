/** Very many waiters: they cost one timer and one listener, and leave nothing behind. */
import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { fixedWindow, gcra, type Limit, leakyBucket, slidingLog, tokenBucket } from '../../src/index.ts'
import { noUnhandledRejections, setUp, told } from './support.ts'

noUnhandledRejections()

const MANY = 100_000
const KEYS = 20_000
const YEAR_MS = 366 * 86_400_000

const warnings: Error[] = []
const onWarning = (warning: Error) => warnings.push(warning)
beforeEach(() => {
  process.on('warning', onWarning)
})
afterEach(async () => {
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', onWarning)
  expect(warnings).toEqual([])
})

const LIMITS: readonly (readonly [name: string, limit: Limit, many: number])[] = [
  ['gcra', gcra({ rate: '100/s', burst: 5 }), MANY],
  ['tokenBucket', tokenBucket({ capacity: 5, refill: '100/s' }), 10_000],
  ['leakyBucket', leakyBucket({ capacity: 5, leak: '100/s' }), 10_000],
  ['gcra that books little ahead', gcra({ rate: '1/s', burst: 5 }), 10_000],
  ['fixedWindow', fixedWindow({ limit: 5, window: '1min' }), MANY],
  ['slidingLog', slidingLog({ limit: 5, window: '1min' }), 10_000],
]

async function countEnds(waits: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const ends = await Promise.allSettled(waits)
  return Object.fromEntries(
    [...new Set(ends.map(({ status }) => status))].map((status) => [status, ends.filter((end) => end.status === status).length]),
  )
}

describe.each(LIMITS)('a crowd at a %s', (name, limit, many) => {
  const begin = () => {
    const all = setUp<Limit>(limit, { maxAheadMs: name.includes('little') ? 10_000 : YEAR_MS, maxQueue: Number.POSITIVE_INFINITY })
    all.limiter.consume('k', 5)
    return { ...all, before: all.held() }
  }

  test(`${many} that leave by one signal leave no state, no timer, no listener and no permit behind`, async () => {
    const { limiter, held, clock, store, before } = begin()
    const gone = new AbortController()
    const waits = Array.from({ length: many }, (_, k) => limiter.acquire('k', { signal: gone.signal, cost: 1 + (k % 3) }))
    await told()
    expect([limiter.waiting('k'), clock.timers, getEventListeners(gone.signal, 'abort').length]).toEqual([many, 1, 1])
    gone.abort()
    expect(await countEnds(waits)).toEqual({ rejected: many })
    expect([limiter.waiting(), clock.timers, getEventListeners(gone.signal, 'abort').length]).toEqual([0, 0, 0])
    expect([held(), store.size]).toEqual([before, 1])
  })

  test('that leave one by one, the last first, the first first, or from the middle, do so too', async () => {
    const { limiter, held, clock, before } = begin()
    const controllers = Array.from({ length: 5_000 }, () => new AbortController())
    const waits = controllers.map(({ signal }, k) => limiter.acquire('k', { signal, cost: 1 + (k % 3) }))
    const order = controllers.map((_, k) => [(k * 7_919) % 5_000, k] as const).sort(([a], [b]) => a - b)
    await told()
    for (const [, k] of order) controllers[k]?.abort()
    expect(await countEnds(waits)).toEqual({ rejected: 5_000 })
    expect([limiter.waiting(), clock.timers, held()]).toEqual([0, 0, before])
  })
})

test('20,000 keys with one waiter each have one timer', async () => {
  const { limiter, clock } = setUp(gcra({ rate: '1/s', burst: 1 }))
  const waits: Promise<unknown>[] = []
  for (let k = 0; k < KEYS; k++) {
    limiter.consume(`${k}`)
    waits.push(limiter.acquire(`${k}`))
    if (k % 1_000 === 0) clock.advanceMs(0.001)
  }
  await told()
  expect([limiter.waiting(), limiter.waiting('77'), clock.timers]).toEqual([KEYS, 1, 1])
  clock.advanceMs(1_001)
  expect(await countEnds(waits)).toEqual({ fulfilled: KEYS })
  expect([limiter.waiting(), clock.timers]).toEqual([0, 0])
})

test('20,000 deadlines that pass outside end their waits, each at its time', async () => {
  const { limiter, clock, held } = setUp(fixedWindow({ limit: 20_000, window: '1h' }), { maxQueue: Number.POSITIVE_INFINITY })
  limiter.consume('k', 20_000)
  const before = held()
  const first = limiter.acquire('k', { cost: 20_000 })
  first.catch(() => {})
  let ended = 0
  const end = () => {
    ended += 1
  }
  // Deadlines beyond the end of the window, so that only those before them in line can keep them
  // from it.
  for (let k = 0; k < 20_000; k++) void limiter.acquire('k', { timeoutMs: 3_600_000 + ((k * 7_919) % 20_000) }).then(end, end)
  await told()
  expect([clock.timers, held(), limiter.waiting()]).toEqual([1, before, 20_001])
  clock.setMs(3_600_000)
  await told()
  clock.setMs(3_610_000)
  await told()
  expect(ended).toBeGreaterThan(0)
  clock.setMs(3_620_000)
  await told()
  expect([ended, limiter.waiting(), clock.timers]).toEqual([20_000, 0, 0])
})

test('5,000 booked ones are served one after the other, each at its time, also when every seventh leaves', async () => {
  const { limiter, clock } = setUp(gcra({ rate: '1000/s', burst: 1 }))
  limiter.consume('k')
  const gone = new AbortController()
  const times: number[] = []
  for (let k = 0; k < 5_000; k++) {
    const wait = limiter.acquire('k', k % 7 === 3 ? { signal: gone.signal } : {})
    wait.then(({ waitedMs }) => times.push(waitedMs)).catch(() => {})
  }
  clock.setMs(2_000)
  await told()
  gone.abort()
  clock.setMs(9_000)
  await told()
  // Two thousand were served before the others left; from then on nobody takes their places.
  expect(times).toEqual(Array.from({ length: 5_000 - 428 }, (_, k) => k + 1))
})
