/** A leaky bucket as a queue: however calls arrive, departures are evenly spaced. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fixedWindow, leakyBucket } from '../../src/index.ts'
import { SEED, traceCount } from '../model/trace.ts'
import { noUnhandledRejections, setUp, told } from './support.ts'

noUnhandledRejections()

interface Arrival {
  readonly afterUs: number
  readonly cost: number
}

const arrivals = fc.record({
  periodUs: fc.integer({ min: 1, max: 1_000_003 }),
  capacity: fc.integer({ min: 1, max: 9 }),
  isBooked: fc.boolean(),
  list: fc.array(fc.record({ afterUs: fc.oneof(fc.constant(0), fc.constant(0), fc.integer({ min: 0, max: 3 })), cost: fc.nat(99) }), {
    minLength: 5,
    maxLength: 40,
  }),
})

/**
 * When each departs, by definition: when it has arrived and the water of all before it has leaked.
 */
function departures(list: readonly Arrival[], periodUs: number): number[] {
  let leakedAtUs = 0
  let nowUs = 0
  return list.map(({ afterUs, cost }) => {
    nowUs += afterUs
    const turnUs = Math.max(leakedAtUs, nowUs)
    leakedAtUs = turnUs + cost * periodUs
    return turnUs
  })
}

describe('random bursts of mixed costs', () => {
  test('depart spaced by cost / leak, to the microsecond', async () => {
    const property = fc.asyncProperty(arrivals, async ({ periodUs, capacity, isBooked, list }) => {
      const { limiter, clock } = setUp(leakyBucket({ capacity, leak: { permits: 1, per: `${periodUs}us` } }), {
        maxAheadMs: isBooked ? periodUs : 0,
      })
      const scaled = list.map(({ afterUs, cost }) => ({ afterUs: afterUs * periodUs, cost: 1 + (cost % capacity) }))
      const seen: number[] = []
      const order: number[] = []
      for (const [k, { afterUs, cost }] of scaled.entries()) {
        clock.setUs(clock.nowUs() + afterUs)
        await told()
        const sinceUs = clock.nowUs()
        void limiter.acquire('k', { cost }).then(({ waitedMs }) => {
          seen[k] = sinceUs + Math.round(waitedMs * 1000)
          order.push(k)
        })
      }
      clock.setUs(clock.nowUs() + 1_000 * periodUs)
      await told()
      expect(seen).toEqual(departures(scaled, periodUs))
      expect(order).toEqual(list.map((_, k) => k))
    })
    await fc.assert(property, { seed: SEED, numRuns: traceCount(400) })
  })
})

test('the example: three at once, one every half second', async () => {
  const { limiter, moveTo } = setUp(leakyBucket({ capacity: 2, leak: '2/s' }))
  const times: number[] = []
  for (let k = 0; k < 5; k++) void limiter.acquire('k').then(({ waitedMs }) => times.push(waitedMs))
  await moveTo(10_000_000)
  expect(times).toEqual([0, 500, 1_000, 1_500, 2_000])
})

describe('with a window beside it', () => {
  test('departures are spaced too, and a leaving caller gives back both', async () => {
    const { limiter, moveTo, held } = setUp({
      queue: leakyBucket({ capacity: 5, leak: '1/s' }),
      hourly: fixedWindow({ limit: 6, window: '1h' }),
    })
    const gone = new AbortController()
    const times: number[] = []
    for (let k = 0; k < 4; k++) {
      const options = k === 3 ? { signal: gone.signal } : {}
      limiter
        .acquire('k', options)
        .then(({ waitedMs }) => times.push(waitedMs))
        .catch(() => {})
    }
    await told()
    gone.abort()
    await moveTo(500_000)
    expect([limiter.peek('k', 0).parts.hourly.remaining, held('k', 'queue')]).toEqual([3, expect.objectContaining({ water: 3 })])
    await moveTo(9_000_000)
    expect(times).toEqual([0, 1_000, 2_000])
  })
})
